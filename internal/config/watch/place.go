package watch

import (
	"os"
	"path/filepath"
	"strings"
)

// places are where something can happen that matters.
type places struct {
	folders map[string]bool // to be watched
	names   map[string]bool // in them: files, links, and folders that are still to come
	trees   map[string]bool // those of folders in which everything matters
}

func newPlaces() places {
	return places{map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

// concern reports whether what happens at path matters.
func (p *places) concern(path string) bool { return p.names[path] || p.trees[filepath.Dir(path)] }

// maxSteps bounds the elements of a path with those of the links that it leads through.
const maxSteps = 1000

// follow adds what decides where path leads: the folder that the file is in or, if that is not there, the one where it would
// begin; and each symbolic link on the way, in its folder.
func (p *places) follow(path string) {
	at, rest := root(path)
	for steps := 0; len(rest) > 0 && steps < maxSteps; steps++ {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		link := ""
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			link, err = os.Readlink(next)
		}
		if err != nil || link != "" || len(rest) == 0 {
			p.folders[at], p.names[at], p.names[next] = true, true, true
		}
		switch {
		case err != nil:
			return
		case link == "":
			at = next
		case filepath.IsAbs(link):
			start, elements := root(link)
			at, rest = start, append(elements, rest...)
		default:
			rest = append(elements(link), rest...)
		}
	}
}

// root splits an absolute path into where it starts and its elements.
func root(path string) (string, []string) {
	volume := filepath.VolumeName(path)
	return volume + string(filepath.Separator), elements(path[len(volume):])
}

func elements(path string) []string {
	return strings.FieldsFunc(filepath.ToSlash(path), func(r rune) bool { return r == '/' })
}
