package skills

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// watcher compares a folder with its earlier state while a client listens.
type watcher struct {
	mu        sync.Mutex // guards the fields below
	listeners int
	stop      chan struct{} // closed to end the loop; nil if none runs
	closed    bool
	work      sync.WaitGroup
}

// watchSubscriptions is a middleware that watches the folder while clients listen. The watch begins
// before the server acknowledges a subscription, so no later change is missed.
func (f *Folder) watchSubscriptions(s *server.Server) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodListen && f.startWatch(s) {
				defer f.endWatch()
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

// startWatch counts a listener, and starts the loop for the first one. It returns false after
// close.
func (f *Folder) startWatch(s *server.Server) bool {
	w := &f.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	if w.listeners++; w.listeners == 1 {
		before, err := f.scan()
		if err != nil {
			before = &snapshot{}
		}
		stop := make(chan struct{})
		w.stop = stop
		w.work.Go(func() { f.followChanges(s, before, stop) })
	}
	return true
}

func (f *Folder) endWatch() {
	w := &f.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listeners--; w.listeners == 0 && w.stop != nil {
		close(w.stop)
		w.stop = nil
	}
}

// stopLoop ends the loop and waits for it.
func (w *watcher) stopLoop() {
	w.mu.Lock()
	w.closed = true
	if w.stop != nil {
		close(w.stop)
		w.stop = nil
	}
	w.mu.Unlock()
	w.work.Wait()
}

// followChanges tells clients about changes until stop is closed.
func (f *Folder) followChanges(s *server.Server, before *snapshot, stop <-chan struct{}) {
	poll := time.NewTicker(f.opts.Poll)
	defer poll.Stop()
	for {
		select {
		case <-stop:
			return
		case <-poll.C:
		}
		now, err := f.scan()
		if err != nil {
			continue // the folder may come back
		}
		now.tellChanges(s, before)
		before = now
	}
}

// tellChanges reports the differences between two states. A change of an entry is a change of the
// list: it tells clients to read the entries of skills again.
func (now *snapshot) tellChanges(s *server.Server, before *snapshot) {
	same := slices.EqualFunc(now.skills, before.skills, func(a, b *Skill) bool {
		return a.URI == b.URI && string(a.Frontmatter) == string(b.Frontmatter) && slices.Equal(a.Files, b.Files)
	})
	if same {
		return
	}
	s.ListChanged(server.KindResource)
	for uri, old := range before.files {
		if f := now.files[uri]; f == nil || f.digest != old.digest {
			s.Updated(uri)
		}
	}
}
