package hub

import "slices"

// fileWatch restarts an upstream when one of its watched files changes. Only the goroutine of
// [Upstream.runUpstream] uses it. The zero value with an upstream watches nothing.
type fileWatch struct {
	upstream *Upstream
	paths    []string
	stop     func() // nil while nothing is watched
}

// watchPaths watches paths, and nothing else, from its return on.
func (w *fileWatch) watchPaths(paths []string) {
	if slices.Equal(paths, w.paths) {
		return
	}
	w.stopWatch()
	w.paths = paths
	u := w.upstream
	if len(paths) == 0 || u.hub.opts.Watch == nil {
		return
	}
	w.stop = u.hub.opts.Watch(paths, u.fileChanged, func(err error) {
		u.hub.opts.Logger.Warn("cannot watch files", "server", u.name, "err", err)
	})
}

// stopWatch stops the watch.
func (w *fileWatch) stopWatch() {
	if w.stop != nil {
		w.stop()
	}
	w.paths, w.stop = nil, nil
}

// fileChanged restarts the server. While the server starts, fileChanged only notes the cause,
// because the start itself may write the watched file.
func (u *Upstream) fileChanged(cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch u.state.Status {
	case Removed:
	case Starting:
		u.fileCause = cause
	default:
		u.restartedByFile = false
		u.neededByCall = true
		u.requestRestart(cause)
	}
}

// takeFileCause returns the cause of a restart that was noted while the server started, or "" if
// none was noted. It also returns "" if this start is itself such a restart: a server that writes a
// watched file at every start must not restart forever. u.mu is held.
func (u *Upstream) takeFileCause() (cause string) {
	if !u.restartedByFile {
		cause = u.fileCause
	}
	u.fileCause, u.restartedByFile = "", cause != ""
	return cause
}
