package configured

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"

	"github.com/dowel-mcp/dowel/config"
	"github.com/dowel-mcp/dowel/config/watch"
)

// Changes watches the files, and those that definitions are made from besides (envFile and ${file:PATH}), loads them again as
// they change, and yields what was read, until ctx ends. One may listen at a time; what has changed since the last
// [Source.Load] counts.
func (s *Source) Changes(ctx context.Context, o watch.Options) iter.Seq[*config.Set] {
	return func(yield func(*config.Set) bool) {
		w := watch.New(o)
		defer w.Close()
		s.aim(&watching{watcher: w, warn: o.Warn})
		defer s.aim(nil)
		s.Load("they were looked at again")
		for changed := range w.Changes(ctx) {
			if !yield(s.Load(filepath.Base(changed[0].Path) + " was " + changed[0].Kind.String())) {
				return
			}
		}
	}
}

func (s *Source) aim(w *watching) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = w
}

// paths are those of all files that matter, whether they are there or not; s.mu is held.
func (s *Source) paths() []string {
	paths := slices.Sorted(maps.Keys(s.reads))
	for _, f := range s.set.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

// watching is a watcher, and what it watches; nil is none.
type watching struct {
	watcher *watch.Watcher
	paths   []string
	warn    func(error)
}

// aim has other paths watched, and reports whether they are others.
func (w *watching) aim(paths []string) bool {
	if w == nil || slices.Equal(paths, w.paths) {
		return false
	}
	w.paths = paths
	if err := w.watcher.Set(watch.Targets{Files: paths}); err != nil && w.warn != nil {
		w.warn(fmt.Errorf("the files are not watched: %w", err))
	}
	return true
}
