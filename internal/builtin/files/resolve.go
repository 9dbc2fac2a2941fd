package files

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// maxLinks bounds the number of symbolic links that resolveLinks follows for one path.
const maxLinks = 40

var (
	errOutside = errors.New("a symbolic link leads out of the allowed folder")
	errLinks   = errors.New("the path has too many symbolic links; they may form a loop")
)

// resolveLinks follows the symbolic links of a path. So a change replaces the target of a link and
// not the link, and each file has only one place. The part of a path that does not exist stays as
// it is. The protection of files outside the root does not depend on resolveLinks: every access
// goes through the [os.Root].
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

// splitPath returns the elements of a relative path, without empty elements and ".".
func splitPath(path string) []string {
	var all []string
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if name != "" && name != "." {
			all = append(all, name)
		}
	}
	return all
}
