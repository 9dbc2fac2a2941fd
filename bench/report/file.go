package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// The marks around the generated part of a file.
const (
	begin = "<!-- what follows is written by make bench -->\n"
	end   = "<!-- what precedes is written by make bench -->\n"
)

// WriteFile replaces the text between the two marks of a file by the page. If the file does not
// exist or is empty, it writes the marks too. A file without the marks is not changed: the error
// names them.
func WriteFile(name string, page []byte) error {
	before, after, err := readAround(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, slices.Concat(before, []byte(begin+"\n"), page, []byte("\n"+end), after), 0o644)
}

// Check returns the error that WriteFile would return if the file can be written.
func Check(name string) error {
	_, _, err := readAround(name)
	return err
}

// readAround returns the text of a file before its first mark and after its second.
func readAround(name string) (before, after []byte, err error) {
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
