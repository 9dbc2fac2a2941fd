package files

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// hunk is one change of a unified diff.
type hunk struct {
	header string
	at     int // the line of the file at which it begins, from 1; 0 if the header does not say
	lines  []hunkLine
	// oldEnds and newEnds report that the last line of the file lacks a line end, before and after
	// the change.
	oldEnds, newEnds bool
}

type hunkLine struct {
	op   byte // ' ', '-' or '+'
	text string
}

// expectedLines returns the lines that the hunk expects.
func (h *hunk) expectedLines() (lines []string) {
	for _, l := range h.lines {
		if l.op != '+' {
			lines = append(lines, l.text)
		}
	}
	return lines
}

var hunkHeader = lazyregexp.New(`^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// hunkReader parses a unified diff as models write it: counts may be wrong, line numbers missing,
// and the blank of an empty context line lost. Only the context must match, which findHunk checks.
type hunkReader struct {
	lines    []string
	n        int // the number of lines read
	hunks    []*hunk
	old, new int // the number of lines that, by its header, the current hunk still has
}

func parseHunks(diff string) ([]*hunk, error) {
	r := &hunkReader{lines: withoutFence(splitLines(toLF(diff)))}
	for r.n < len(r.lines) {
		if err := r.readLine(); err != nil {
			return nil, fmt.Errorf("line %d of the diff: %w", r.n+1, err)
		}
		r.n++
	}
	if len(r.hunks) == 0 {
		return nil, errors.New("the diff has no hunk: want a line such as @@ -12,5 +12,6 @@, then lines that begin with a blank, - or +")
	}
	for _, h := range r.hunks {
		if len(h.lines) == 0 {
			return nil, fmt.Errorf("the hunk %s has no lines", h.header)
		}
	}
	return r.hunks, nil
}

// withoutFence removes a Markdown code fence around a diff.
func withoutFence(lines []string) []string {
	first, last := 0, len(lines)-1
	for last > 0 && lines[last] == "" {
		last--
	}
	for first < last && lines[first] == "" {
		first++
	}
	if first < last && strings.HasPrefix(lines[first], "```") && strings.TrimSpace(lines[last]) == "```" {
		return lines[first+1 : last]
	}
	return lines
}

func (r *hunkReader) readLine() error {
	line := r.lines[r.n]
	inside := len(r.hunks) > 0
	switch {
	case r.startsFile():
		return r.readFileHeader()
	case strings.HasPrefix(line, "@@"):
		return r.startHunk(line)
	case !inside: // headers before the first file
		return nil
	case strings.HasPrefix(line, "diff --git "):
		return errSeveral
	}
	return r.readBodyLine(line)
}

var errSeveral = errors.New("a second file begins here: call edit once for each file")

// startsFile reports whether the next two lines are the header of a file. Lines inside a hunk can
// look the same, so startsFile also checks that the current hunk is complete.
func (r *hunkReader) startsFile() bool {
	next := func(n int, prefix string) bool {
		return r.n+n < len(r.lines) && strings.HasPrefix(r.lines[r.n+n], prefix)
	}
	return next(0, "--- ") && next(1, "+++ ") && r.old <= 0 && r.new <= 0
}

func (r *hunkReader) readFileHeader() error {
	if len(r.hunks) > 0 {
		return errSeveral
	}
	from, to := strings.TrimSpace(r.lines[r.n][4:]), strings.TrimSpace(r.lines[r.n+1][4:])
	r.n++
	switch {
	case from == "/dev/null":
		return errors.New("the diff creates a new file: use write instead")
	case to == "/dev/null":
		return errors.New("the diff deletes the file: use delete instead")
	}
	return nil
}

func (r *hunkReader) startHunk(header string) error {
	h := &hunk{header: header}
	r.hunks, r.old, r.new = append(r.hunks, h), 0, 0
	m := hunkHeader().FindStringSubmatch(header)
	if m == nil {
		return nil
	}
	var err error
	if h.at, err = strconv.Atoi(m[1]); err != nil {
		return fmt.Errorf("the line number in %s is too large", header)
	}
	r.old, r.new = parseCount(m[2]), parseCount(m[3])
	return nil
}

// parseCount reads a count of a header. A missing count means 1.
func parseCount(digits string) int {
	if digits == "" {
		return 1
	}
	n, _ := strconv.Atoi(digits)
	return n
}

func (r *hunkReader) readBodyLine(line string) error {
	h := r.hunks[len(r.hunks)-1]
	if strings.HasPrefix(line, `\`) { // No newline at end of file
		return h.noEnd()
	}
	if line == "" && r.isComplete() {
		return nil
	}
	if line == "" { // the blank was lost
		line = " "
	}
	switch line[0] {
	case ' ':
		r.old, r.new = r.old-1, r.new-1
	case '-':
		r.old--
	case '+':
		r.new--
	default:
		return fmt.Errorf("%q: want a line that begins with a blank, - or +", shownLine(line))
	}
	h.lines = append(h.lines, hunkLine{line[0], line[1:]})
	return nil
}

// isComplete reports whether the hunk has all lines that its header announces, and only empty lines
// follow until the next hunk. These do not belong to it.
func (r *hunkReader) isComplete() bool {
	if r.old > 0 || r.new > 0 {
		return false
	}
	for _, line := range r.lines[r.n:] {
		if line != "" {
			return strings.HasPrefix(line, "@@")
		}
	}
	return true
}

func (h *hunk) noEnd() error {
	if len(h.lines) == 0 {
		return errors.New("this line must follow a line of the hunk")
	}
	op := h.lines[len(h.lines)-1].op
	h.oldEnds = h.oldEnds || op != '+'
	h.newEnds = h.newEnds || op != '-'
	return nil
}

// shownLine cuts a line and replaces invalid UTF-8, for messages.
func shownLine(line string) string {
	if len(line) > maxShownLine {
		line = line[:wholeCharacters([]byte(line[:maxShownLine]))] + "…"
	}
	return replaceInvalid(line)
}
