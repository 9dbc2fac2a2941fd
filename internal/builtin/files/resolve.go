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

// resolve follows the symbolic links on the way to a place, so that what is at a link is replaced and not the link, and
// one file has one place. What does not exist resolves to itself. Whether the way stays inside does not depend on
// this: what is done at the place goes through the [os.Root] again.
func (p place) resolve() (place, error) {
	at, rest := ".", elements(p.name)
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
		rest = append(elements(target), rest...)
	}
	return place{p.root, at}, nil
}

// elements splits a relative path.
func elements(path string) []string {
	var all []string
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if name != "" && name != "." {
			all = append(all, name)
		}
	}
	return all
}
