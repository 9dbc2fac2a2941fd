package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// marks returns the lines around the part of a file that a make target writes.
func marks(target string) (begin, end string) {
	return "<!-- what follows is written by make " + target + " -->\n", "<!-- what precedes is written by make " + target + " -->\n"
}

// WriteFile replaces the text between the two marks of a make target by the page. If the file does
// not exist or is empty, it writes the marks too. A file without the marks is not changed: the
// error names them.
func WriteFile(name, target string, page []byte) error {
	before, after, err := readAround(name, target)
	if err != nil {
		return err
	}
	begin, end := marks(target)
	return os.WriteFile(name, slices.Concat(before, []byte(begin+"\n"), page, []byte("\n"+end), after), 0o644)
}

// Check returns the error that WriteFile would return if the file can be written.
func Check(name, target string) error {
	_, _, err := readAround(name, target)
	return err
}

// readAround returns the text of a file before its first mark and after its second.
func readAround(name, target string) (before, after []byte, err error) {
	begin, end := marks(target)
	old, err := os.ReadFile(name)
	if len(old) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		return nil, nil, nil
	}
	before, rest, begun := bytes.Cut(old, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if err == nil && (!begun || !ended) {
		err = fmt.Errorf("%s does not have the lines %q and %q, between which the tables go", name, begin, end)
	}
	return before, after, err
}
