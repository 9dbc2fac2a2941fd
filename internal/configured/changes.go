package configured

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/watch"
)

// Changes watches the files, and those that definitions are made from besides (envFile and ${file:PATH}), loads them again as
// they change, and yields what was read then, until ctx ends. One may listen at a time. What has changed since the last
// [Source.Load] is loaded first, and nothing is yielded for that, nor for a file that has been missing for a while.
func (s *Source) Changes(ctx context.Context, o watch.Options) iter.Seq[*config.Set] {
	return func(yield func(*config.Set) bool) {
		w := watch.New(o)
		defer w.Close()
		watching := &watching{watcher: w, warn: o.Warn}
		s.aim(watching)
		defer watching.end()
		defer s.aim(nil)
		s.Load("they were looked at again")
		for changed := range w.Changes(ctx) {
			if !yield(s.Load(describeChange(changed))) {
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
	due     map[string]*time.Timer // what is to be done later, by file
	work    sync.WaitGroup
}

// later has something done about a file after a while, unless that is due already; the source is locked.
func (w *watching) later(path string, after time.Duration, do func()) {
	if w.due[path] != nil {
		return
	}
	if w.due == nil {
		w.due = map[string]*time.Timer{}
	}
	w.work.Add(1)
	w.due[path] = time.AfterFunc(after, func() {
		defer w.work.Done()
		do()
	})
}

// end forgets what is due, and waits for what is being done. The source is not locked, and does not know it any more.
func (w *watching) end() {
	for _, timer := range w.due {
		if timer.Stop() {
			w.work.Done()
		}
	}
	w.work.Wait()
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
