package hub

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/internal/config/watch"
)

// watching has the files watched that a server is made of, and restarts it when one changes. The zero value watches nothing.
type watching struct {
	upstream *Upstream
	paths    []string
	watcher  *watch.Watcher // nil while nothing is watched
	work     sync.WaitGroup
}

// aim has these watched, from its return on.
func (w *watching) aim(paths []string) {
	if slices.Equal(paths, w.paths) {
		return
	}
	w.close()
	if w.paths = paths; len(paths) == 0 {
		return
	}
	u := w.upstream
	warn := func(err error) { u.hub.opts.Logger.Warn("its files are not watched", "server", u.name, "err", err) }
	watcher := watch.New(watch.Options{Warn: warn})
	if err := watcher.Set(watch.Targets{Globs: paths}); err != nil {
		warn(err)
	}
	w.watcher = watcher
	w.work.Go(func() {
		for changed := range watcher.Changes(context.Background()) { // until it is closed
			u.fileChanged(filepath.Base(changed[0].Path) + " was " + changed[0].Kind.String())
		}
	})
}

func (w *watching) close() {
	if w.watcher != nil {
		w.watcher.Close()
		w.work.Wait()
	}
	w.paths, w.watcher = nil, nil
}

// fileChanged restarts the server. While it starts the change is noted only: the start itself may write what is watched.
func (u *Upstream) fileChanged(cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch u.state.Status {
	case Removed:
	case Starting:
		u.noted = cause
	default:
		u.noting = false
		u.wanted = true
		u.order(cause)
	}
}

// takeNoted returns the cause of a restart that was noted while the server started; empty where there is none, or this start
// was made for one already: what is written by each start does not restart the server without end. u.mu is held.
func (u *Upstream) takeNoted() (cause string) {
	if !u.noting {
		cause = u.noted
	}
	u.noted, u.noting = "", cause != ""
	return cause
}
