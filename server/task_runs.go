package server

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/internal/tasks"
)

// taskRuns holds the tasks of a server: the store, and the runs of this process.
type taskRuns struct {
	store   tasks.Store
	closing chan struct{} // closed when the server closes

	mu      sync.Mutex // guards the rest
	running map[string]*taskRun
	claims  map[string]*taskClaim // by id
}

// taskClaim are the requests of this process that are about to begin a run of a task.
type taskClaim struct {
	pending     int
	isUncertain bool // the record may name this process as the runner although it has begun no run
}

func (t *taskRuns) init(store tasks.Store) {
	t.store, t.closing = store, make(chan struct{})
	t.running, t.claims = map[string]*taskRun{}, map[string]*taskClaim{}
}

// claim notes that a request is about to begin a run of a task. The caller must call the returned
// function when the run is added, or does not begin, with the error of the record's change.
func (t *taskRuns) claim(id string) (release func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.claims[id]
	if c == nil {
		c = new(taskClaim)
		t.claims[id] = c
	}
	c.pending++
	return func(err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		c.pending--
		if err != nil && !errors.Is(err, tasks.ErrUnknown) {
			c.isUncertain = true
		}
		if c.pending == 0 && (!c.isUncertain || len(t.claims) > maxUncertain) {
			delete(t.claims, id)
		}
	}
}

// maxUncertain bounds the uncertain claims of tasks that no client asks for any more.
const maxUncertain = 10_000

// hasLostRun reports whether a record may name this process as the runner although it has begun no
// run: the acknowledgement of the record was missing.
func (t *taskRuns) hasLostRun(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.claims[id]
	return c != nil && c.isUncertain && c.pending == 0 && t.running[id] == nil
}

func (t *taskRuns) addRun(run *taskRun) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		return errServerClosed
	}
	t.running[run.id] = run
	if c := t.claims[run.id]; c != nil {
		c.isUncertain = false
	}
	return nil
}

func (t *taskRuns) removeRun(run *taskRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[run.id] == run {
		delete(t.running, run.id)
	}
	if c := t.claims[run.id]; c != nil && c.pending == 0 {
		delete(t.claims, run.id)
	}
}

// runOf returns the run of a task in this process, or nil.
func (t *taskRuns) runOf(id string) *taskRun {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[id]
}

// runningIDs returns the tasks that this process runs.
func (t *taskRuns) runningIDs() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.running))
}

// cancelRun cancels the run of a task in this process, if it has one.
func (t *taskRuns) cancelRun(id string, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.running[id]; run != nil {
		run.cancel(cause)
	}
}

// isClosed reports whether the server has closed.
func (t *taskRuns) isClosed() bool {
	select {
	case <-t.closing:
		return true
	default:
		return false
	}
}

// close cancels all runs and refuses new ones.
func (t *taskRuns) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isClosed() {
		close(t.closing)
	}
	for _, run := range t.running {
		run.cancel(errServerClosed)
	}
}
