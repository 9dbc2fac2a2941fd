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

// Changes watches the files, and the files that definitions read (envFile and ${file:PATH}), until
// ctx ends. After a change it loads all files again and yields the result. It first loads changes
// since the last [Source.Load], which it does not yield; nor does it yield the load after a file's
// grace. Only one iteration may run at a time.
func (s *Source) Changes(ctx context.Context, o watch.Options) iter.Seq[*config.Set] {
	return func(yield func(*config.Set) bool) {
		w := watch.New(o)
		defer w.Close()
		watching := &fileWatch{watcher: w, warn: o.Warn}
		s.setWatch(watching)
		defer watching.stopTimers()
		defer s.setWatch(nil)
		s.Load("the files were read again")
		for changed := range w.Changes(ctx) {
			if !yield(s.Load(describeChange(changed))) {
				return
			}
		}
	}
}

// setWatch makes w the watch of the source; nil removes it.
func (s *Source) setWatch(w *fileWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = w
}

// watchedPaths returns the paths of the configuration files and of the files that definitions read,
// including files that do not exist. s.mu is held.
func (s *Source) watchedPaths() []string {
	paths := slices.Sorted(maps.Keys(s.reads))
	for _, f := range s.set.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

// fileWatch watches files, and runs a timer for each file that is in its grace. On a nil fileWatch,
// watchPaths does nothing.
type fileWatch struct {
	watcher *watch.Watcher
	paths   []string
	warn    func(error)
	timers  map[string]*time.Timer // by path
	work    sync.WaitGroup         // the timers that have not ended
}

// runLater calls do after a time, unless the path already has a timer. Source.mu is held.
func (w *fileWatch) runLater(path string, after time.Duration, do func()) {
	if w.timers[path] != nil {
		return
	}
	if w.timers == nil {
		w.timers = map[string]*time.Timer{}
	}
	w.work.Add(1)
	w.timers[path] = time.AfterFunc(after, func() {
		defer w.work.Done()
		do()
	})
}

// stopTimers stops the timers, and waits for the calls of fired timers. The calls take
// Source.mu, so the caller must not hold it. The watch must be removed from the source first, so
// that no new timer starts.
func (w *fileWatch) stopTimers() {
	for _, timer := range w.timers {
		if timer.Stop() {
			w.work.Done()
		}
	}
	w.work.Wait()
}

// watchPaths watches these paths only. It reports whether they differ from the previous ones.
// Source.mu is held.
func (w *fileWatch) watchPaths(paths []string) bool {
	if w == nil || slices.Equal(paths, w.paths) {
		return false
	}
	w.paths = paths
	if err := w.watcher.Set(watch.Targets{Files: paths}); err != nil && w.warn != nil {
		w.warn(fmt.Errorf("cannot watch the configuration files for changes: %w", err))
	}
	return true
}
