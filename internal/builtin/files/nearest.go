package files

import (
	"fmt"
	"strings"
)

// likeness is the part of a file that is most like a text that is not in it.
type likeness struct {
	line       int // from 1
	lines      []string
	cut        bool // there are more of them
	onlyBlanks bool // it differs in white space only
}

const (
	maxShownLines  = 30
	maxShownLine   = 300
	minLikeness    = 0.4    // of the best line, for anything to count as like it
	maxLikenessSum = 2e5    // lines of the file times lines of the text that are compared
	maxHave        = 50_000 // lines of the file that are compared
)

// mostLike finds the lines that are most like those wanted, nil if nothing is.
func mostLike(have, want []string) *likeness {
	want, have = trimEmpty(want), have[:min(len(have), maxHave)]
	if len(want) == 0 || len(have) == 0 {
		return nil
	}
	at, blanks := sameButBlanks(have, want), true
	if at < 0 {
		at, blanks = mostSimilar(have, want), false
	}
	if at < 0 {
		return nil
	}
	l := &likeness{line: at + 1, onlyBlanks: blanks}
	end := min(at+len(want), len(have))
	if end-at > maxShownLines {
		end, l.cut = at+maxShownLines, true
	}
	l.lines = have[at:end]
	return l
}

// trimEmpty leaves out empty lines around others.
func trimEmpty(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// sameButBlanks returns the index of lines that differ from want only in blanks, or -1.
func sameButBlanks(have, want []string) int {
	squeezed := func(lines []string) []string {
		all := make([]string, len(lines))
		for i, line := range lines {
			all[i] = strings.Join(strings.Fields(line), " ")
		}
		return all
	}
	from, to := squeezed(have), squeezed(want)
	for at := 0; at+len(to) <= len(from); at++ {
		n := 0
		for n < len(to) && from[at+n] == to[n] {
			n++
		}
		if n == len(to) {
			return at
		}
	}
	return -1
}

// mostSimilar finds the window with the most similar lines, -1 if none has any.
func mostSimilar(have, want []string) int {
	if n := int(maxLikenessSum) / len(have); len(want) > n {
		want = want[:max(n, 1)]
	}
	wanted := make([]pairs, len(want))
	for i, line := range want {
		wanted[i] = pairsOf(line)
	}
	best, at := 0.0, -1
	scores := make([]float64, len(have)) // by where the window begins
	for h, line := range have {
		p := pairsOf(line)
		for w := range wanted {
			if h >= w {
				scores[h-w] += wanted[w].similarity(p)
			}
		}
	}
	for i, score := range scores {
		if score > best {
			best, at = score, i
		}
	}
	if best < minLikeness {
		return -1
	}
	return at
}

// pairs are the pairs of neighbouring characters of a line without blanks around it, each as often
// as it is there.
type pairs struct {
	text  string
	count map[[2]byte]int
	n     int
}

func pairsOf(line string) pairs {
	line = strings.TrimSpace(line)
	p := pairs{text: line, count: map[[2]byte]int{}}
	line = line[:min(len(line), maxShownLine)]
	for i := 1; i < len(line); i++ {
		p.count[[2]byte{line[i-1], line[i]}]++
		p.n++
	}
	return p
}

// similarity is how alike two lines are, from 0 to 1: Dice's measure. Empty lines and brackets
// alone say nothing.
func (p pairs) similarity(other pairs) float64 {
	if p.n == 0 || other.n == 0 {
		return 0
	}
	if p.text == other.text {
		return 1
	}
	common := 0
	for pair, n := range p.count {
		common += min(n, other.count[pair])
	}
	share := 2 * float64(common) / float64(p.n+other.n)
	if share < 0.3 { // by chance
		return 0
	}
	return share
}

func (l *likeness) describePlace() string {
	if n := len(l.lines); n > 1 {
		return fmt.Sprintf("lines %d to %d", l.line, l.line+n-1)
	}
	return fmt.Sprintf("line %d", l.line)
}

// String shows the lines as they are, so that they can be taken over.
func (l *likeness) String() string {
	var b strings.Builder
	for _, line := range l.lines {
		if len(line) > maxShownLine {
			line = line[:wholeCharacters([]byte(line[:maxShownLine]))] + "…"
		}
		b.WriteString(replaceInvalid(line) + "\n")
	}
	if l.cut {
		b.WriteString("…\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// splitLines returns the lines of a text without their ends.
func splitLines(text string) []string {
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
