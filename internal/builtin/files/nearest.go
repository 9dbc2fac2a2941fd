package files

import (
	"fmt"
	"strings"
)

// likeness is the part of a file that is most similar to a missing text.
type likeness struct {
	line       int // the number of its first line, from 1
	lines      []string
	cut        bool // the part has more lines than maxShownLines
	onlyBlanks bool // it differs from the missing text in white space only
}

const (
	maxShownLines  = 30
	maxShownLine   = 300    // bytes of a line that are shown
	minLikeness    = 0.4    // the least sum of the similarities of the lines, from 0 to 1 each
	maxComparisons = 2e5    // lines of the file times lines of the text that are compared
	maxHave        = 50_000 // lines of the file that are compared
)

// findSimilar returns the part of have that is most similar to want, or nil if none is similar.
func findSimilar(have, want []string) *likeness {
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

// trimEmpty removes empty lines at the beginning and the end.
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

// mostSimilar returns the index in have at which the lines most similar to want begin, or -1 if
// their similarity is below minLikeness.
func mostSimilar(have, want []string) int {
	if n := int(maxComparisons) / len(have); len(want) > n {
		want = want[:max(n, 1)]
	}
	wanted := make([]pairs, len(want))
	for i, line := range want {
		wanted[i] = pairsOf(line)
	}
	best, at := 0.0, -1
	scores := make([]float64, len(have)) // scores[i] is the similarity of want to the lines from i on
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

// pairs is a line without blanks around it, and the pairs of neighbouring bytes in it.
type pairs struct {
	text  string
	count map[[2]byte]int // the number of occurrences of each pair
	n     int             // the number of all pairs
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

// similarity returns the similarity of two lines, from 0 to 1: the Sørensen–Dice coefficient of
// their pairs. Lines of less than two characters, such as a bracket, count as not similar.
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
	if share < 0.3 { // unrelated lines of code have this much in common
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

// String returns the lines unchanged, so that a model can copy them. Long lines are cut.
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
