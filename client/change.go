package client

import (
	"encoding/json"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Change is something that a watch reports.
type Change struct {
	// Method is the notification's name, such as [mcp.NotificationToolsChanged]; empty for a gap.
	Method string
	// URI is the resource that was updated. It may be a part of the one that was asked for.
	URI string
	// Params are the notification's parameters, nil if it has none.
	Params json.RawMessage
	// Gap says that changes may have been missed, because the subscription was interrupted or too many changes came:
	// read anew what matters.
	Gap bool
}

// maxChanges bounds the changes that wait for the loop: beyond it, they become a gap.
const maxChanges = 1024

// changeQueue holds the changes that wait for the loop. What says the same as one that waits is not added.
type changeQueue struct {
	mu      sync.Mutex
	waiting []Change
	said    map[string]bool
	some    chan struct{} // holds a token while changes may wait
}

func newChangeQueue() *changeQueue {
	return &changeQueue{said: map[string]bool{}, some: make(chan struct{}, 1)}
}

func (q *changeQueue) put(n mcp.Notification) {
	change := Change{Method: n.Method, Params: n.Params}
	if n.Method == mcp.NotificationResourceUpdated {
		change.URI, _ = rawjson.String(rawjson.Lookup(n.Params, "uri"))
	}
	q.add(change)
}

// gap replaces what waits: everything has to be read anew in any case.
func (q *changeQueue) gap() {
	q.mu.Lock()
	q.reset()
	q.mu.Unlock()
	q.add(Change{Gap: true})
}

func (q *changeQueue) reset() { q.waiting, q.said = nil, map[string]bool{} }

func (q *changeQueue) add(change Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if key, same := change.key(); same {
		if q.said[key] {
			return
		}
		q.said[key] = true
	}
	if len(q.waiting) >= maxChanges {
		q.reset()
		change = Change{Gap: true}
	}
	q.waiting = append(q.waiting, change)
	select {
	case q.some <- struct{}{}:
	default:
	}
}

// key tells changes apart that say the same; those of extensions never do, since their parameters are news.
func (c Change) key() (key string, same bool) {
	switch c.Method {
	case "", mcp.NotificationToolsChanged, mcp.NotificationPromptsChanged, mcp.NotificationResourcesChanged:
		return c.Method, true
	case mcp.NotificationResourceUpdated:
		return c.Method + " " + c.URI, true
	}
	return "", false
}

// take returns the next change; ok is false when there is none and done is closed.
func (q *changeQueue) take(done <-chan struct{}) (change Change, ok bool) {
	for {
		if change, ok = q.next(); ok {
			return change, true
		}
		select {
		case <-q.some:
		case <-done:
			return q.next()
		}
	}
}

func (q *changeQueue) next() (change Change, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return change, false
	}
	change = q.waiting[0]
	q.waiting = q.waiting[1:]
	if key, same := change.key(); same {
		delete(q.said, key)
	}
	return change, true
}
