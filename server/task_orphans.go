package server

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/internal/tasks"
)

// lookForOrphans takes over the tasks that a client listens to and no process runs. It is called
// when replicas are gone. A call during another one returns at once, and the other one begins again
// at its end.
func (s *Server) lookForOrphans() {
	if !s.taskLooks.beginSearch() {
		return
	}
	for isDue := true; isDue; isDue = s.taskLooks.endSearch() {
		s.searchOrphans(s.subscriptions.taskIDs())
	}
}

// beginSearch reports whether the caller is to search. Otherwise another goroutine searches, and is
// to begin again.
func (l *taskLooks) beginSearch() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isSearching {
		l.searchesNext = true
		return false
	}
	l.isSearching = true
	return true
}

// endSearch reports whether the caller is to begin again.
func (l *taskLooks) endSearch() (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	again, l.searchesNext = l.searchesNext, false
	l.isSearching = again
	return again
}

// searchOrphans takes over those of the tasks that a client listens to and no process runs.
func (s *Server) searchOrphans(ids []string) {
	runners := knownRunners{store: s.tasks.store}
	s.lookAtEach(ids, func(id string) error {
		if s.subscriptions.listenerOfTask(id) == nil {
			return nil
		}
		r, err := s.tasks.store.Load(context.Background(), id)
		if err != nil {
			return err
		}
		return s.takeOverFor(r, runners.isGone)
	})
}

// knownRunners remembers during one search which processes are there: to know that, the store may
// have to ask over the network.
type knownRunners struct {
	store tasks.Store

	mu    sync.Mutex
	there map[string]bool // guarded by mu
}

func (k *knownRunners) isGone(runner string) bool {
	k.mu.Lock()
	isThere := k.there[runner]
	k.mu.Unlock()
	if isThere {
		return false
	}
	if k.store.IsGone(runner) {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	setIn(&k.there, runner, true)
	return false
}

// takeOverFor takes a task over if no process runs it, as for a request of a client that listens to
// it and may see it.
func (s *Server) takeOverFor(r *tasks.Record, isGone func(runner string) bool) error {
	if r.Status != tasks.Working || !s.hasNoRun(r, isGone) {
		return nil
	}
	for _, l := range s.subscriptions.listenersOfTask(r.ID) {
		if s.showsTaskTo(l.request, r) {
			_, err := s.takeOver(l.request.ctx, l.request.req, r)
			return err
		}
	}
	return nil
}

// showsTaskTo reports whether a client that listens to a task may still see it. A panic of
// [Options].Visible hides the task.
func (s *Server) showsTaskTo(l *taskListen, r *tasks.Record) (isShown bool) {
	defer func() {
		if p := recover(); p != nil {
			_ = s.panicError(l.ctx, l.req, p) // which is logged
			isShown = false
		}
	}()
	return s.showsTask(l.ctx, l.req.Principal, r)
}
