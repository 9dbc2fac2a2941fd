package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
)

// explainError rewrites an error at a place so that a model can act on it. Unknown errors stay,
// without the names of system calls.
func (s *Server) explainError(p place, err error) error {
	shown := s.roots.displayPath(p)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no such file or folder: %s%s", shown, s.suggestPaths(p))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: the permissions of the file system do not allow it", shown)
	case errors.Is(err, errOutside), isEscape(err):
		return fmt.Errorf("%s: %w; allowed are %s", shown, errOutside, s.roots)
	case notFolder(err):
		return fmt.Errorf("%s: a part of the path is a file, not a folder%s", shown, s.suggestPaths(p))
	case isSystem(err):
		return fmt.Errorf("%s: %w", shown, rootCause(err))
	}
	return err
}

// isEscape reports the error of an [os.Root] for a path that leads outside. Package os does not
// export it.
func isEscape(err error) bool {
	return strings.Contains(rootCause(err).Error(), "path escapes from parent")
}

func isSystem(err error) bool { return rootCause(err) != err }

// rootCause is the reason within an error of the file system.
func rootCause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

const (
	maxSuggestions = 3
	// maxCompared bounds the names that a name which is not there is compared with.
	maxCompared = 2000
)

// suggestPaths suggests paths for one that does not exist: similar names in the deepest existing
// folder, else the contents of that folder.
func (s *Server) suggestPaths(p place) string {
	missing := p.name
	at := p
	for !at.isRoot() {
		missing, at = filepath.Base(at.name), at.parent()
		if info, err := at.root.Stat(at.name); err == nil && info.IsDir() {
			break
		}
	}
	names, err := at.firstNames(maxCompared)
	if err != nil {
		return ""
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(p.name, at.name), string(filepath.Separator))
	if at.isRoot() {
		rest = p.name
	}
	rest = strings.TrimPrefix(rest, missing)
	var meant []string
	for _, name := range nearestNames(missing, names) {
		meant = append(meant, s.roots.displayPath(at.child(name+rest)))
	}
	if len(meant) > 0 {
		return "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return "; the folder " + s.roots.displayPath(at) + " has " + listSome(names, 10)
}

// nearestNames returns the names that are like one, the likest first.
func nearestNames(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var all []candidate
	wanted := strings.ToLower(name)
	stem := strings.TrimSuffix(wanted, filepath.Ext(wanted))
	for _, n := range names {
		if len(n) > 2*len(name)+8 {
			continue
		}
		lower := strings.ToLower(n)
		d := near.Distance(wanted, lower)
		if stem != "" && strings.TrimSuffix(lower, filepath.Ext(lower)) == stem {
			d = min(d, 1) // another kind of file
		}
		if d <= max(len(name)/3, 1) {
			all = append(all, candidate{n, d})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.distance - b.distance })
	var likest []string
	for _, c := range all[:min(len(all), maxSuggestions)] {
		likest = append(likest, c.name)
	}
	return likest
}

// listSome lists the first of many names.
func listSome(names []string, most int) string {
	if len(names) == 0 {
		return "nothing in it"
	}
	var shown []string
	for _, n := range names[:min(len(names), most)] {
		shown = append(shown, shownName(n))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// firstNames returns the names in a folder, sorted, the first of them in the order of the system
// where there are too many.
func (p place) firstNames(most int) ([]string, error) {
	f, err := p.openFolder()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(most)
	if len(names) == 0 && err != nil && !isEnd(err) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}
