package cluster

import "github.com/nats-io/nats.go/jetstream"

// stateWatch is the watch of the bucket with the keys and the leases. The goroutine of follow owns
// it.
type stateWatch struct {
	jetstream.KeyWatcher
	updates   <-chan jetstream.KeyValueEntry // nil if the watch has ended
	opened    chan jetstream.KeyWatcher      // receives the next watch, or nil if it cannot be opened
	isOpening bool
}

func newStateWatch(first jetstream.KeyWatcher) *stateWatch {
	return &stateWatch{KeyWatcher: first, updates: first.Updates(), opened: make(chan jetstream.KeyWatcher, 1)}
}

// keepWatching opens a new watch if the last one brings nothing: it has ended after an error that
// the client of NATS does not try again, or has lost its place at the NATS server, as after an
// outage. The client notices a lost place after ten seconds, and so long no replica counts as gone.
// keepWatching does not wait for the NATS server, because the lease must be renewed meanwhile.
func (c *Cluster) keepWatching(w *stateWatch) {
	if w.isOpening || c.checkConnected() != nil || !c.missesRenewal() || !c.startWork() {
		return
	}
	w.isOpening = true
	go func() {
		defer c.running.Done()
		next, err := c.state.WatchAll(c.ctx) // it waits for at most five seconds
		if err != nil {
			next = nil // the next tick tries again
		}
		w.opened <- next // it ends with c.ctx if follow has ended
	}()
}

// replaceWatch uses the next watch, unless it is nil.
func (c *Cluster) replaceWatch(w *stateWatch, next jetstream.KeyWatcher) {
	w.isOpening = false
	if next == nil {
		return
	}
	former := w.KeyWatcher
	w.KeyWatcher, w.updates = next, next.Updates()
	if c.startWork() {
		go func() {
			defer c.running.Done()
			_ = former.Stop() // waits for an answer of the NATS server
		}()
	}
}
