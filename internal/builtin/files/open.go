package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

func isEnd(err error) bool { return errors.Is(err, io.EOF) }

// folderError reports a folder where a file was expected.
type folderError struct{ shown string }

func (e *folderError) Error() string { return e.shown + " is a folder: use list to see its contents" }

// openFile opens a file for reading. It refuses everything else: opening a pipe would block, and
// opening a device may have side effects.
func (s *Server) openFile(p place) (*os.File, fs.FileInfo, error) {
	info, err := p.root.Stat(p.name)
	if err == nil {
		err = s.checkRegular(p, info)
	}
	if err != nil {
		return nil, nil, s.explainError(p, err)
	}
	f, err := p.root.OpenFile(p.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, s.explainError(p, err)
	}
	// Another process may have replaced the file since Stat.
	if info, err = f.Stat(); err == nil {
		err = s.checkRegular(p, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, s.explainError(p, err)
	}
	return f, info, nil
}

// checkRegular fails unless the place is a regular file.
func (s *Server) checkRegular(p place, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return &folderError{s.roots.displayPath(p)}
	}
	return fmt.Errorf("%s is not a file (kind: %s): it cannot be read or written", s.roots.displayPath(p), kindOf(info.Mode()))
}

// openFolder opens a folder for listing.
func (p place) openFolder() (*os.File, error) {
	return p.root.OpenFile(p.name, os.O_RDONLY|nonblock|directory, 0)
}

// Kinds of directory entries.
const (
	kindFile   = "file"
	kindFolder = "folder"
	kindLink   = "link"
)

// kindOf returns the kind of an entry with this mode.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return kindFile
	case mode.IsDir():
		return kindFolder
	case mode&fs.ModeSymlink != 0:
		return kindLink
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "other"
}

// bytesText formats a number of bytes with a unit.
func bytesText(n int64) string {
	const unit = 1024
	if n < 10*unit {
		return fmt.Sprintf("%d bytes", n)
	}
	size, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB"}
	for len(names) > 1 && size >= unit {
		size, names = size/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %s", size, names[0])
}
