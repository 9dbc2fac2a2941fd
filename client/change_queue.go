package client

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// Change is one change that a [Watch] reports.
type Change struct {
	// Method is the notification's name, such as [mcp.NotificationToolsChanged]; empty for a gap.
	Method string
	// URI is the updated resource. It may be a part of the resource that was subscribed to.
	URI string
	// Params are the notification's parameters, nil if it has none.
	Params json.RawMessage
	// Gap reports that changes may have been missed, because the subscription was interrupted or
	// too many changes arrived: read again whatever matters.
	Gap bool
}

// maxChanges bounds the changes that wait for the loop. If more arrive, a gap replaces them all.
const maxChanges = 1024

// changeQueue holds the changes that wait for the loop of [Watch.Changes]. A change equal to a
// waiting one is not added.
type changeQueue struct {
	mu      sync.Mutex
	waiting []Change // from next on
	next    int
	queued  map[changeKey]bool // of the waiting changes
	ended   bool
	ready   chan struct{} // holds a token while changes may wait, or the end
}

func newChangeQueue() *changeQueue {
	return &changeQueue{queued: map[changeKey]bool{}, ready: make(chan struct{}, 1)}
}

// addGap replaces the waiting changes by a gap, since the reader must read everything again anyway.
func (q *changeQueue) addGap() {
	q.mu.Lock()
	q.dropWaiting()
	q.mu.Unlock()
	q.addChange(Change{Gap: true})
}

func (q *changeQueue) dropWaiting() { q.waiting, q.next, q.queued = nil, 0, map[changeKey]bool{} }

// endChanges marks the end: nextChange returns the waiting changes and then ok false.
func (q *changeQueue) endChanges() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.wakeReader()
}

func (q *changeQueue) wakeReader() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *changeQueue) addChange(change Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if key, ok := change.dedupKey(); ok {
		if q.queued[key] {
			return
		}
		q.queued[key] = true
	}
	if len(q.waiting)-q.next >= maxChanges {
		q.dropWaiting()
		change = Change{Gap: true}
	}
	q.waiting = append(q.waiting, change)
	q.wakeReader()
}

// changeKey is shared by equal changes.
type changeKey struct{ method, uri string }

// dedupKey returns the key of a change. ok is false for changes of extensions, because their
// parameters may differ in meaning.
func (c Change) dedupKey() (key changeKey, ok bool) {
	switch c.Method {
	case "", mcp.NotificationToolsChanged, mcp.NotificationPromptsChanged, mcp.NotificationResourcesChanged:
		return changeKey{method: c.Method}, true
	case mcp.NotificationResourceUpdated:
		return changeKey{c.Method, c.URI}, true
	}
	return changeKey{}, false
}

// nextChange waits for the next change. ok is false at the end.
func (q *changeQueue) nextChange() (change Change, ok bool) {
	for {
		change, ok, ended := q.tryNext()
		if ok || ended {
			return change, ok
		}
		<-q.ready // a receive costs half as much as a select over two channels
	}
}

func (q *changeQueue) tryNext() (change Change, ok, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == len(q.waiting) {
		return change, false, q.ended
	}
	change = q.waiting[q.next]
	q.waiting[q.next] = Change{}
	q.next++
	q.reclaimSpace()
	if key, ok := change.dedupKey(); ok {
		delete(q.queued, key)
	}
	return change, true, false
}

// reclaimSpace reuses the space of the changes that were read. After a burst it releases the large
// array.
func (q *changeQueue) reclaimSpace() {
	const usual = 16
	switch {
	case q.next < len(q.waiting) && q.next < maxChanges:
	case len(q.waiting) > usual:
		q.waiting, q.next = slices.Clone(q.waiting[q.next:]), 0
	default:
		q.waiting, q.next = q.waiting[:0], 0
	}
}
