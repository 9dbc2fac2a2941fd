package files

import (
	"errors"
	"fmt"
	"strings"
)

// replaceIn applies one replacement to text, a version of the document's text.
func (d *document) replaceIn(text string, e Replacement) (changed string, count int, err error) {
	old, with := d.adaptLineEnds(e.Old), d.adaptLineEnds(e.New)
	if old == with {
		return "", 0, errors.New("old and new are the same")
	}
	count = strings.Count(text, old)
	if count == 0 && d.ends == endsMixed {
		// The lines may be in a part of the file with CR LF.
		if crlf := toCRLF(toLF(old)); strings.Contains(text, crlf) {
			old, with = crlf, toCRLF(toLF(with))
			count = strings.Count(text, old)
		}
	}
	switch {
	case count == 0:
		return "", 0, newNotFoundError(text, old)
	case count > 1 && !e.All:
		return "", 0, fmt.Errorf("old occurs %d times, on the lines %s: include more surrounding lines, or set all to replace each occurrence", count, linesOf(text, old, 10))
	}
	return strings.ReplaceAll(text, old, with), count, nil
}

// linesOf lists the numbers of the lines on which the occurrences of part begin, at most the given
// number.
func linesOf(text, part string, most int) string {
	var numbers []string
	line, from := 1, 0
	for {
		at := strings.Index(text[from:], part)
		if at < 0 {
			return strings.Join(numbers, ", ")
		}
		if len(numbers) == most {
			return strings.Join(numbers, ", ") + ", …"
		}
		line += strings.Count(text[from:from+at], "\n")
		numbers = append(numbers, fmt.Sprint(line))
		line += strings.Count(part, "\n")
		from += at + len(part)
	}
}

// newNotFoundError returns the error for a text that the file does not contain. It shows the most
// similar part of the file.
func newNotFoundError(text, old string) error {
	if countInvalid(text) > 0 && strings.ContainsRune(old, '\uFFFD') {
		return errors.New("old contains U+FFFD, which stands for bytes of the file that are not UTF-8: choose an old without these bytes")
	}
	like := findSimilar(splitLines(text), splitLines(old))
	if like == nil {
		return errors.New("the file contains neither old nor a similar text: read the file again")
	}
	reason := "the most similar text is on"
	switch {
	case strings.HasSuffix(text, strings.TrimSuffix(old, "\n")):
		reason = "old ends with a line end, but the file does not, on"
	case like.onlyBlanks:
		reason = "a text that differs from it only in white space (indentation, tabs, trailing blanks, empty lines around it) is on"
	}
	return fmt.Errorf("the file does not contain old; %s %s:\n%s", reason, like.describePlace(), like)
}
