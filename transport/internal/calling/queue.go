package calling

import (
	"bytes"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// maxQueue bounds the notifications that wait for a slow listener.
const maxQueue = 1024

// queue holds notifications on their way to one listener. When it is full, one that repeats another is dropped, else the
// oldest.
type queue struct {
	wake chan struct{} // nil where nobody listens; has room for one

	mu    sync.Mutex
	items []mcp.Notification
	spare []mcp.Notification // memory that has been delivered; of who delivers
}

func (q *queue) push(n mcp.Notification) {
	q.mu.Lock()
	if len(q.items) >= maxQueue && !q.holds(n) {
		q.items = append(q.items[:0], q.items[1:]...)
	}
	if len(q.items) < maxQueue {
		q.items = append(q.items, n)
	}
	q.mu.Unlock()
	q.rouse()
}

func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) holds(n mcp.Notification) bool {
	for _, item := range q.items {
		if item.Method == n.Method && bytes.Equal(item.Params, n.Params) {
			return true
		}
	}
	return false
}

// deliver hands over what waits, in order, until nothing is left.
func (q *queue) deliver(notify func(mcp.Notification)) {
	for {
		q.mu.Lock()
		items := q.items
		if len(items) > 0 {
			q.items, q.spare = q.spare[:0], nil
		}
		q.mu.Unlock()
		if len(items) == 0 {
			return
		}
		for _, n := range items {
			notify(n)
		}
		clear(items)
		q.spare = items
	}
}
