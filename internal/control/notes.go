package control

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
)

// notes collects the changes of a hub until a stream writes them.
type notes struct {
	due chan struct{} // holds a token when there is something to write

	mu      sync.Mutex
	waiting bool      // a timer is going to fill due
	changed bool      // the status has changed
	first   time.Time // when it changed first since the last take
	logged  []string
}

// followHub returns the notes of events, which end with their context.
func followHub(events iter.Seq[hub.Event]) *notes {
	n := &notes{due: make(chan struct{}, 1)}
	go func() {
		for e := range events {
			n.addEvent(e)
		}
	}()
	return n
}

func (n *notes) addEvent(e hub.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.Kind != hub.StderrWritten && !n.changed {
		n.changed, n.first = true, time.Now()
	}
	if e.Kind != hub.CatalogChanged && !slices.Contains(n.logged, e.Upstream) {
		n.logged = append(n.logged, e.Upstream)
	}
	if !n.waiting {
		n.waiting = true
		time.AfterFunc(statusInterval, func() { n.due <- struct{}{} })
	}
}

// take returns the changes since its last call: whether the status has changed, the servers with
// new logs, and the time of the first change of the status.
func (n *notes) take() (changed bool, logged []string, first time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	changed, logged, first = n.changed, n.logged, n.first
	n.changed, n.logged, n.waiting = false, nil, false
	return changed, logged, first
}
