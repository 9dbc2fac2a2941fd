package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// What stands around the part of a file that is written by a program.
const (
	begin = "<!-- what follows is written by make bench -->\n"
	end   = "<!-- what precedes is written by make bench -->\n"
)

// WriteFile puts the page between the two marks of a file, or makes the file, marks and all. A file without them is left alone:
// the error says what it lacks.
func WriteFile(name string, page []byte) error {
	before, after, err := around(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, slices.Concat(before, []byte(begin+"\n"), page, []byte("\n"+end), after), 0o644)
}

// Check returns the error that WriteFile would.
func Check(name string) error {
	_, _, err := around(name)
	return err
}

// around is what stands around the marks of a file.
func around(name string) (before, after []byte, err error) {
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
