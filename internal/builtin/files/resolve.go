package files

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// maxLinks bounds the symbolic links on the way to a place.
const maxLinks = 40

var (
	errOutside = errors.New("a symbolic link leads out of the allowed folder")
	errLinks   = errors.New("too many symbolic links, which may lead in a circle")
)

// resolveLinks follows the symbolic links of a path, so that a change replaces a link's target and
// not the link, and each file has one place. A missing path resolves to itself. Safety does not
// depend on it: every access at the place goes through the [os.Root] again.
func (p place) resolveLinks() (place, error) {
	at, rest := ".", splitPath(p.name)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			if at == "." {
				return p, errOutside
			}
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := p.root.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return place{p.root, filepath.Join(append([]string{next}, rest...)...)}, nil
		}
		if err != nil {
			return p, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := p.root.Readlink(next)
		switch links++; {
		case err != nil:
			return p, err
		case links > maxLinks:
			return p, errLinks
		case filepath.IsAbs(target) || filepath.VolumeName(target) != "":
			return p, errOutside
		}
		rest = append(splitPath(target), rest...)
	}
	return place{p.root, at}, nil
}

// splitPath splits a relative path.
func splitPath(path string) []string {
	var all []string
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if name != "" && name != "." {
			all = append(all, name)
		}
	}
	return all
}
