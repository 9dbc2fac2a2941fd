package files

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// applyPatch applies a unified diff to the document: all hunks or none.
func (d *document) applyPatch(diff string) (text string, count int, err error) {
	hunks, err := parseHunks(diff)
	if err != nil {
		return "", 0, err
	}
	lines := splitLines(d.text)
	ended := d.text == "" || strings.HasSuffix(d.text, "\n")
	changes := make([]lineChange, 0, len(hunks))
	for i, h := range hunks {
		at, err := d.findHunk(h, lines, ended)
		if err != nil {
			return "", 0, fmt.Errorf("hunk %d of %d (%s): %w", i+1, len(hunks), shownLine(h.header), err)
		}
		changes = append(changes, h.changeAt(lines, at))
	}
	slices.SortStableFunc(changes, func(a, b lineChange) int { return a.at - b.at })
	for i := 1; i < len(changes); i++ {
		if before := changes[i-1]; changes[i].at < before.at+before.n {
			return "", 0, fmt.Errorf("two hunks change line %d", changes[i].at+1)
		}
	}
	return assembleText(lines, changes, ended), len(hunks), nil
}

// lineChange replaces the n lines from index at on by other lines.
type lineChange struct {
	at, n int
	lines []string
	hunk  *hunk
}

// assembleText returns the changed text. ended reports whether the last line of the old text had a
// line end; the new text is the same in this, unless a hunk says otherwise.
func assembleText(lines []string, changes []lineChange, ended bool) string {
	var b strings.Builder
	at := 0
	write := func(lines []string) {
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
	}
	for _, c := range changes {
		write(lines[at:c.at])
		write(c.lines)
		if at = c.at + c.n; at == len(lines) && (c.hunk.oldEnds || c.hunk.newEnds) {
			ended = !c.hunk.newEnds
		}
	}
	write(lines[at:])
	if !ended {
		return strings.TrimSuffix(b.String(), "\n")
	}
	return b.String()
}

// changeAt returns the change of the hunk at the index where it matches. Context lines are copied
// from the file, because they may differ from the hunk's in their line ends.
func (h *hunk) changeAt(lines []string, at int) lineChange {
	c := lineChange{at: at, n: len(h.expectedLines()), hunk: h}
	from := at
	for _, l := range h.lines {
		switch l.op {
		case ' ':
			c.lines = append(c.lines, lines[from])
			from++
		case '-':
			from++
		case '+':
			c.lines = append(c.lines, l.text+h.lineEndBefore(lines, from))
		}
	}
	return c
}

// lineEndBefore returns "\r" if the previous line ends with it. An added line gets the same end, in
// a text with mixed line ends.
func (h *hunk) lineEndBefore(lines []string, from int) string {
	if near := max(from-1, 0); near < len(lines) && strings.HasSuffix(lines[near], "\r") {
		return "\r"
	}
	return ""
}

// findHunk returns the index at which a hunk matches: its line number or, if it does not match
// there, the only other index.
func (d *document) findHunk(h *hunk, lines []string, ended bool) (int, error) {
	want := h.expectedLines()
	if len(want) == 0 {
		return h.insertionLine(lines)
	}
	if h.oldEnds && ended {
		return 0, errors.New(`the diff says "No newline at end of file", but the file ends with a newline`)
	}
	var found []int
	for at := 0; at+len(want) <= len(lines); at++ {
		if h.oldEnds && at+len(want) < len(lines) || !slices.EqualFunc(lines[at:at+len(want)], want, d.sameLine) {
			continue
		}
		if at+1 == h.at {
			return at, nil
		}
		found = append(found, at)
	}
	switch len(found) {
	case 0:
		return 0, newNoMatchError(lines, want)
	case 1:
		return found[0], nil
	}
	var numbers []string
	for _, at := range found[:min(len(found), 10)] {
		numbers = append(numbers, fmt.Sprint(at+1))
	}
	return 0, fmt.Errorf("its lines occur %d times, from the lines %s on: include more context, or give the line number in its @@ header", len(found), strings.Join(numbers, ", "))
}

// sameLine compares a line of the file with a line of a diff. In a file with mixed line ends, a CR
// at the end does not count, because the diff may have lost it.
func (d *document) sameLine(have, want string) bool {
	return have == want || d.ends == endsMixed && strings.TrimSuffix(have, "\r") == strings.TrimSuffix(want, "\r")
}

// insertionLine returns the index at which a hunk without context belongs: after the line that its
// header names.
func (h *hunk) insertionLine(lines []string) (int, error) {
	switch {
	case len(lines) == 0:
		return 0, nil
	case hunkHeader().FindString(h.header) == "":
		return 0, errors.New("it has neither context nor a line number: include the surrounding lines")
	case h.at > len(lines):
		return 0, fmt.Errorf("line %d is after the end of the file, which has %d lines", h.at, len(lines))
	}
	return h.at, nil
}

// newNoMatchError returns the error for a hunk that matches nowhere. It shows the most similar part
// of the file.
func newNoMatchError(lines, want []string) error {
	like := findSimilar(lines, want)
	switch {
	case like == nil:
		return errors.New("the file contains neither its context and removed lines nor similar ones: read the file again")
	case like.onlyBlanks:
		return fmt.Errorf("its context differs from the file only in white space (indentation, tabs, trailing blanks, empty lines), on %s:\n%s", like.describePlace(), like)
	}
	return fmt.Errorf("the file does not contain its context and removed lines; the most similar lines are on %s:\n%s\nthe first line of the hunk that differs: %s",
		like.describePlace(), like, firstDifference(like.lines, trimEmpty(want)))
}

// firstDifference returns the first line of want that differs from the line of have at the same
// index.
func firstDifference(have, want []string) string {
	for i, line := range want {
		if i >= len(have) || have[i] != line {
			return shownLine(line)
		}
	}
	return ""
}
