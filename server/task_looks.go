package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
)

// taskLooks looks at tasks that other replicas may have changed, and keeps the states that clients
// hear of in their order. The zero value is ready to use.
type taskLooks struct {
	mu      sync.Mutex      // guards the rest of this group and the next one
	late    map[string]bool // ids of tasks that could not be read; they are read again
	isTimed bool            // a timer reads them

	isSearching  bool // lookForOrphans looks at all tasks
	searchesNext bool // and begins again at the end

	announcing sync.Mutex        // guards announced, and is held while clients are notified
	announced  map[string]uint64 // the newest version that clients have heard of, by task
}

const (
	// lookPause is how long the tasks that could not be read wait. The store has no leader then, or
	// the connection to it is lost.
	lookPause = time.Second
	// looksAtOnce is at how many tasks lookAtEach looks at once: a look waits for the store.
	looksAtOnce = 16
	// maxErrors is how many errors may concern single tasks. After more of them, the store refuses
	// all.
	maxErrors = 3
	// maxAnnounced bounds the tasks whose versions are remembered.
	maxAnnounced = 10_000
)

// lookAtTasks looks at tasks that other replicas may have changed: it notifies the clients that
// listen to them, and cancels the runs in this process that are over.
func (s *Server) lookAtTasks(ids []string) { s.lookAtEach(ids, s.lookAtTask) }

// lookAtEach calls look for each task, for looksAtOnce of them at once. After an error of the store
// it looks at the task again later. After maxErrors it leaves all others for later, too.
func (s *Server) lookAtEach(ids []string, look func(id string) error) {
	var next, errs atomic.Int64
	var looking sync.WaitGroup
	for range min(looksAtOnce, len(ids)) {
		looking.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(ids) && !s.tasks.isClosed(); i = int(next.Add(1)) - 1 {
				if errs.Load() < maxErrors && !mayLookAgain(look(ids[i])) {
					continue
				}
				errs.Add(1)
				s.lookLater(ids[i : i+1])
			}
		})
	}
	looking.Wait()
}

// mayLookAgain reports whether a look has failed and another one may succeed. An unknown task has
// expired.
func mayLookAgain(err error) bool {
	return err != nil && !errors.Is(err, tasks.ErrUnknown) && !errors.Is(err, tasks.ErrClosed)
}

func (s *Server) lookAtTask(id string) error {
	run, listener := s.tasks.runOf(id), s.subscriptions.listenerOfTask(id)
	if run == nil && listener == nil {
		return nil
	}
	r, err := s.tasks.store.Load(context.Background(), id)
	if err != nil {
		return err
	}
	if run != nil {
		run.checkRecord(r)
	}
	if listener == nil {
		return nil
	}
	s.announceTaskHere(r)
	if r.Runner != tasks.NoRunner {
		return nil // the store would have to be asked whether the runner is gone
	}
	return s.takeOverFor(r, s.tasks.store.IsGone)
}

// lookLater looks at tasks after [lookPause].
func (s *Server) lookLater(ids []string) {
	l := &s.taskLooks
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		setIn(&l.late, id, true)
	}
	if l.isTimed {
		return
	}
	l.isTimed = true
	time.AfterFunc(lookPause, func() {
		l.mu.Lock()
		late := slices.Collect(maps.Keys(l.late))
		l.late, l.isTimed = nil, false
		l.mu.Unlock()
		s.lookAtTasks(late)
		s.searchOrphans(late)
	})
}

// announce calls notify unless clients have heard of a later version of the task already: two looks
// may overtake each other.
func (l *taskLooks) announce(r *tasks.Record, notify func()) {
	l.announcing.Lock()
	defer l.announcing.Unlock()
	if r.Version < l.announced[r.ID] {
		return
	}
	if len(l.announced) >= maxAnnounced {
		l.announced = nil
	}
	setIn(&l.announced, r.ID, r.Version)
	notify()
}
