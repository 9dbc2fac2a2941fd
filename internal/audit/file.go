package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// File is the file of an audit log. Several processes may append to the same file. A File is safe
// for concurrent use.
type File struct {
	path string
	file io.WriteCloser

	mu     sync.Mutex
	isTorn bool // the file may end within a line; guarded by mu
}

// OpenFile opens a file to append to it. It makes the file and its folder, for the user alone, if
// there are none.
func OpenFile(path string) (*File, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		var file *os.File
		if file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			return &File{path: path, file: file}, nil
		}
	}
	return nil, fmt.Errorf("the audit log %s cannot be written: %w", path, err)
}

// Write implements [io.Writer] for one line. After a failed write, as on a full disk, the next line
// does not continue the part that was written.
func (f *File) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := line
	if f.isTorn {
		text = append([]byte("\n"), line...)
	}
	n, err := f.file.Write(text)
	f.isTorn = err != nil && (f.isTorn || n > 0)
	if err != nil {
		return 0, err
	}
	return len(line), nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// WriteAll returns a writer that passes each line to all writers in their order, also if some of
// them fail.
func WriteAll(all ...io.Writer) io.Writer { return writers(all) }

type writers []io.Writer

// Write implements [io.Writer].
func (w writers) Write(line []byte) (int, error) {
	var errs []error
	for _, one := range w {
		if _, err := one.Write(line); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	return len(line), nil
}
