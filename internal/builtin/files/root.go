package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// root is a folder that clients may use.
type root struct {
	*os.Root
	path string // absolute, with the symbolic links that the caller gave
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
		return nil, fmt.Errorf("files: the folder %q cannot be used: %w", folder, err)
	}
	opened, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("files: %q cannot be used as a folder: %w", folder, err)
	}
	return &root{opened, path, real}, nil
}

// closeNested closes the roots that are inside other roots, and returns the others.
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

// coversRoot reports whether the root at i is inside another one, or is the same as an earlier one.
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

// String returns the paths of the roots, for messages.
func (all roots) String() string {
	var paths []string
	for _, r := range all {
		paths = append(paths, shownName(r.path))
	}
	return strings.Join(paths, ", ")
}

// place is the position of a file or folder, which need not exist.
type place struct {
	root *root
	name string // relative to the root, clean, with the system's separators; "." for the root itself
}

func (p place) isRoot() bool { return p.name == "." }

// absolutePath returns the place's absolute path.
func (p place) absolutePath() string { return filepath.Join(p.root.path, p.name) }

// child returns the place with this name in the folder p.
func (p place) child(name string) place { return place{p.root, filepath.Join(p.name, name)} }

// parent returns the folder of p. The parent of a root is the root.
func (p place) parent() place { return place{p.root, filepath.Dir(p.name)} }

// slashPath returns p.name with slashes.
func (p place) slashPath() string { return filepath.ToSlash(p.name) }

// parsePath returns the place that a path in a tool's arguments means.
func (all roots) parsePath(path string) (place, error) {
	switch {
	case path == "":
		return place{}, errors.New("the path is empty: want a path such as src/main.go")
	case strings.IndexByte(path, 0) >= 0:
		return place{}, errors.New("the path contains a NUL character")
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

// findPlace returns the place of a clean absolute path. It returns false if the path is outside the
// roots.
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

// relativePath returns path relative to folder, and whether path is the folder or inside it. Both
// must be clean and absolute.
func relativePath(folder, path string) (string, bool) {
	name, err := filepath.Rel(folder, path)
	return name, err == nil && filepath.IsLocal(name)
}

// displayPath returns the path of a place for results: relative in the first root, absolute in the
// others, or a URI if the path is not UTF-8.
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

// shownName replaces invalid UTF-8 in a name, for messages.
func shownName(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
