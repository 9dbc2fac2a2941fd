package hub

import (
	"context"
	"path/filepath"

	"github.com/dowel-mcp/dowel/config/watch"
)

// watchPaths restarts the server when a file changes that it is made of.
func (u *Upstream) watchPaths(ctx context.Context) {
	paths := u.Definition().WatchPaths
	if len(paths) == 0 {
		return
	}
	w := watch.New(watch.Options{Warn: func(err error) { u.hub.opts.Logger.Warn("its files are not watched", "server", u.name, "err", err) }})
	defer w.Close()
	if err := w.Set(watch.Targets{Globs: paths}); err != nil {
		u.hub.opts.Logger.Warn("its files are not watched", "server", u.name, "err", err)
		return
	}
	for changed := range w.Changes(ctx) {
		u.Restart(filepath.Base(changed[0].Path) + " was " + changed[0].Kind.String())
		return // the next connection watches again
	}
}
