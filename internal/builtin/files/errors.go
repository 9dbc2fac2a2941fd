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

// explainError turns an error of the file system into a message on which a model can act. Errors of
// other kinds are returned unchanged.
func (s *Server) explainError(p place, err error) error {
	shown := s.roots.displayPath(p)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no such file or folder: %s%s", shown, s.suggestPaths(p))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: the file system's permissions do not allow this", shown)
	case errors.Is(err, errOutside), isEscape(err):
		return fmt.Errorf("%s: %w; the allowed folders are %s", shown, errOutside, s.roots)
	case notFolder(err):
		return fmt.Errorf("%s: a part of the path is a file, not a folder%s", shown, s.suggestPaths(p))
	case isSystem(err):
		return fmt.Errorf("%s: %w", shown, rootCause(err))
	}
	return err
}

// isEscape reports whether err is the error of an [os.Root] for a path that leads outside. Package
// os does not export that error, so isEscape compares its text.
func isEscape(err error) bool {
	return strings.Contains(rootCause(err).Error(), "path escapes from parent")
}

func isSystem(err error) bool { return rootCause(err) != err }

// rootCause returns the error without the operation and path of package os.
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
	// maxCompared is the number of names in a folder that are compared with a missing name.
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
	var similar []string
	for _, name := range nearestNames(missing, names) {
		similar = append(similar, s.roots.displayPath(at.child(name+rest)))
	}
	if len(similar) > 0 {
		return "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return "; the folder " + s.roots.displayPath(at) + " contains " + listNames(names, 10)
}

// nearestNames returns at most maxSuggestions names that are similar to name, the most similar
// first.
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
			d = min(d, 1) // only the extension differs
		}
		if d <= max(len(name)/3, 1) {
			all = append(all, candidate{n, d})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.distance - b.distance })
	var nearest []string
	for _, c := range all[:min(len(all), maxSuggestions)] {
		nearest = append(nearest, c.name)
	}
	return nearest
}

// listNames lists at most the given number of names and says how many more there are.
func listNames(names []string, most int) string {
	if len(names) == 0 {
		return "nothing"
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

// firstNames returns at most the given number of names in a folder, sorted. If the folder has more,
// the operating system chooses which.
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
