package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A root is a folder that clients may use.
type root struct {
	*os.Root
	path string // absolute
}

// roots are the allowed folders. Paths that are not absolute are relative to the first one that has
// the file.
type roots []root

func openRoots(folders []string) (all roots, err error) {
	if len(folders) == 0 {
		folders = []string{"."}
	}
	for _, folder := range folders {
		path, err := filepath.Abs(folder)
		if err != nil {
			return nil, errors.Join(err, all.closeAll())
		}
		opened, err := os.OpenRoot(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%q cannot be used as a folder: %w", folder, err), all.closeAll())
		}
		all = append(all, root{opened, path})
	}
	return all, nil
}

func (all roots) closeAll() error {
	var errs []error
	for _, r := range all {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// openFile opens a regular file in one of the roots. If no root has it, the error wraps
// [fs.ErrNotExist].
func (all roots) openFile(path string) (*os.File, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("%q is not a path: want one such as sales/2024.csv", path)
	}
	for _, r := range all {
		name := filepath.FromSlash(path)
		if filepath.IsAbs(name) {
			var err error
			if name, err = filepath.Rel(r.path, name); err != nil {
				continue
			}
		}
		f, err := r.openRegular(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errOutside):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return f, nil
	}
	return nil, fmt.Errorf("%s is not in the allowed folders: %w", path, fs.ErrNotExist)
}

var errOutside = errors.New("the path leads out of the folder")

// openRegular opens a file without waiting for the other side of a pipe.
func (r root) openRegular(name string) (*os.File, error) {
	if !filepath.IsLocal(name) {
		return nil, errOutside
	}
	f, err := r.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
