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

// explain says in words that a model can act on what went wrong at a place. What it does not know it passes on, without
// the names of system calls.
func (s *Server) explain(p place, err error) error {
	shown := s.roots.show(p)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no such file or folder: %s%s", shown, s.suggest(p))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: the permissions of the file system do not allow it", shown)
	case errors.Is(err, errOutside), escapes(err):
		return fmt.Errorf("%s: %w; allowed are %s", shown, errOutside, s.roots)
	case notFolder(err):
		return fmt.Errorf("%s: a part of the path is a file, not a folder%s", shown, s.suggest(p))
	case isSystem(err):
		return fmt.Errorf("%s: %w", shown, cause(err))
	}
	return err
}

// escapes reports the error of an [os.Root] for what is outside, which has no name in package os.
func escapes(err error) bool { return strings.Contains(cause(err).Error(), "path escapes from parent") }

func isSystem(err error) bool { return cause(err) != err }

// cause is the reason within an error of the file system.
func cause(err error) error {
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

// suggest says what may have been meant by a path that is not there: names that are near, in the folder where the path ends to
// exist; else what that folder has.
func (s *Server) suggest(p place) string {
	missing := p.name
	at := p
	for !at.isRoot() {
		missing, at = filepath.Base(at.name), at.folder()
		if info, err := at.root.Stat(at.name); err == nil && info.IsDir() {
			break
		}
	}
	names, err := at.names(maxCompared)
	if err != nil {
		return ""
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(p.name, at.name), string(filepath.Separator))
	if at.isRoot() {
		rest = p.name
	}
	rest = strings.TrimPrefix(rest, missing)
	var meant []string
	for _, name := range nearest(missing, names) {
		meant = append(meant, s.roots.show(at.in(name+rest)))
	}
	if len(meant) > 0 {
		return "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return "; the folder " + s.roots.show(at) + " has " + some(names, 10)
}

// nearest returns the names that are like one, the likest first.
func nearest(name string, names []string) []string {
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

// some lists the first of many names.
func some(names []string, most int) string {
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

// names returns the names in a folder, sorted, the first of them in the order of the system where there are too many.
func (p place) names(most int) ([]string, error) {
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
