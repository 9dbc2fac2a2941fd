package files

import (
	"errors"
	"fmt"
	"strings"
)

// replaceIn makes one replacement in a text of the document.
func (d *document) replaceIn(text string, e Replacement) (changed string, count int, err error) {
	old, put := d.adaptLineEnds(e.Old), d.adaptLineEnds(e.New)
	if old == put {
		return "", 0, errors.New("old and new are the same")
	}
	count = strings.Count(text, old)
	if count == 0 && d.ends == endsMixed {
		// The lines may be among those with the other ending.
		if crlf := toCRLF(toLF(old)); strings.Contains(text, crlf) {
			old, put = crlf, toCRLF(toLF(put))
			count = strings.Count(text, old)
		}
	}
	switch {
	case count == 0:
		return "", 0, notThere(text, old)
	case count > 1 && !e.All:
		return "", 0, fmt.Errorf("old is there %d times, on the lines %s: take in more lines around the one you mean, or set all to replace each", count, linesOf(text, old, 10))
	}
	return strings.ReplaceAll(text, old, put), count, nil
}

// linesOf lists the lines on which something begins.
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

// notThere returns the error for a text that the file does not contain, with the most similar part
// of the file.
func notThere(text, old string) error {
	if countInvalid(text) > 0 && strings.ContainsRune(old, '\uFFFD') {
		return errors.New("old holds U+FFFD, which stands for bytes of the file that are not UTF-8: choose old without them")
	}
	like := mostLike(splitLines(text), splitLines(old))
	if like == nil {
		return errors.New("old is not in the file, nor anything like it: read the file again")
	}
	reason := "the most similar is on"
	switch {
	case strings.HasSuffix(text, strings.TrimSuffix(old, "\n")):
		reason = "the file ends without the line end that old has, on"
	case like.onlyBlanks:
		reason = "what differs from it in blanks only (indentation, tabs, blanks at the end, empty lines around it) is on"
	}
	return fmt.Errorf("old is not in the file; %s %s:\n%s", reason, like.describePlace(), like)
}
