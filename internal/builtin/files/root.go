package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// root is a folder that may be used.
type root struct {
	*os.Root
	path string // absolute, as it was given
	real string // without symbolic links
}

// roots are the allowed folders, none of them inside another.
type roots []*root

func openRoots(folders []string) (all roots, err error) {
	if len(folders) == 0 {
		folders = []string{"."}
	}
	for _, folder := range folders {
		r, err := openRoot(folder)
		if err != nil {
			return nil, errors.Join(err, all.closeAll())
		}
		all = append(all, r)
	}
	return all.closeNested(), nil
}

func openRoot(folder string) (*root, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("files: the folder %q: %w", folder, err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("files: there is no folder %q that could be used: %w", folder, err)
	}
	opened, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("files: %q is no folder that could be used: %w", folder, err)
	}
	return &root{opened, path, real}, nil
}

// closeNested closes and leaves out the roots inside other roots.
func (all roots) closeNested() (kept roots) {
	for i, r := range all {
		if all.coversRoot(i) {
			r.Close()
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// coversRoot reports whether the root at i is inside another, or is there already.
func (all roots) coversRoot(i int) bool {
	for j, other := range all {
		if _, inside := relativePath(other.real, all[i].real); inside && j != i && (j < i || other.real != all[i].real) {
			return true
		}
	}
	return false
}

func (all roots) closeAll() error {
	var errs []error
	for _, r := range all {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// String names the roots.
func (all roots) String() string {
	var paths []string
	for _, r := range all {
		paths = append(paths, shownName(r.path))
	}
	return strings.Join(paths, ", ")
}

// place is where a file or folder is, or could be.
type place struct {
	root *root
	name string // relative to the root, clean, with the system's separators; "." for the root itself
}

func (p place) isRoot() bool { return p.name == "." }

// absolutePath is the place's absolute path.
func (p place) absolutePath() string { return filepath.Join(p.root.path, p.name) }

// child returns the place of that name in a folder.
func (p place) child(name string) place { return place{p.root, filepath.Join(p.name, name)} }

// parent returns the place that a place is in.
func (p place) parent() place { return place{p.root, filepath.Dir(p.name)} }

// slashPath is the name within the root with slashes.
func (p place) slashPath() string { return filepath.ToSlash(p.name) }

// parsePath finds the place that a tool's argument means, which need not exist.
func (all roots) parsePath(path string) (place, error) {
	switch {
	case path == "":
		return place{}, errors.New("the path is empty: give one such as src/main.go")
	case strings.IndexByte(path, 0) >= 0:
		return place{}, errors.New("the path holds a NUL, which no path can")
	}
	given := path
	if strings.HasPrefix(path, scheme) {
		var ok bool
		if path, ok = pathOf(path); !ok {
			return place{}, fmt.Errorf("%q is not a file:// URI with an absolute path", given)
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(all[0].path, path)
	}
	p, ok := all.findPlace(filepath.Clean(path))
	if !ok {
		return place{}, fmt.Errorf("%s is outside the allowed folders: %s", shownName(given), all)
	}
	return p, nil
}

// findPlace finds the place of a clean absolute path.
func (all roots) findPlace(path string) (place, bool) {
	for _, r := range all {
		for _, start := range []string{r.path, r.real} {
			if name, ok := relativePath(start, path); ok {
				return place{r, name}, true
			}
		}
	}
	return place{}, false
}

// relativePath returns path relative to a folder, if it is the folder or in it. Both are clean and
// absolute.
func relativePath(folder, path string) (string, bool) {
	name, err := filepath.Rel(folder, path)
	return name, err == nil && filepath.IsLocal(name)
}

// displayPath returns the path by which results name a place.
func (all roots) displayPath(p place) string {
	path := p.absolutePath()
	if p.root == all[0] {
		path = p.name
	}
	if !utf8.ValidString(path) {
		return uriOf(p.absolutePath())
	}
	return filepath.ToSlash(path)
}

// shownName makes a name fit for a message.
func shownName(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
