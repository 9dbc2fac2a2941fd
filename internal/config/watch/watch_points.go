package watch

import (
	"os"
	"path/filepath"
	"strings"
)

// watchPoints are the folders and paths at which a change may affect a target.
type watchPoints struct {
	folders map[string]bool // folders to watch
	names   map[string]bool // paths in these folders: files, links, and folders that do not exist yet
	trees   map[string]bool // folders in which every path is relevant
}

func newWatchPoints() watchPoints {
	return watchPoints{map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

// isRelevant reports whether a change at path may affect a target.
func (p *watchPoints) isRelevant(path string) bool {
	return p.names[path] || p.trees[filepath.Dir(path)]
}

// maxSteps limits the elements of a path, including the elements of links on the way.
const maxSteps = 1000

// followPath adds the points that decide where path leads: the folder of the file, or the deepest
// existing folder on the way to it, and each symbolic link on the way.
func (p *watchPoints) followPath(path string) {
	at, rest := splitRoot(path)
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
			start, elements := splitRoot(link)
			at, rest = start, append(elements, rest...)
		default:
			rest = append(splitElements(link), rest...)
		}
	}
}

// splitRoot splits an absolute path into its root and its elements.
func splitRoot(path string) (string, []string) {
	volume := filepath.VolumeName(path)
	return volume + string(filepath.Separator), splitElements(path[len(volume):])
}

func splitElements(path string) []string {
	return strings.FieldsFunc(filepath.ToSlash(path), func(r rune) bool { return r == '/' })
}
