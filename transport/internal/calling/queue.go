package calling

import (
	"bytes"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// maxQueue is the highest number of notifications that wait for a slow receiver.
const maxQueue = 1024

// notificationQueue holds the notifications for one receiver. When it is full, a notification
// equal to a queued one is dropped; otherwise the oldest is.
type notificationQueue struct {
	wake chan struct{} // has room for one; nil without a receiver

	mu       sync.Mutex
	inline   func(mcp.Notification) // push calls it in place of queueing; usually nil
	items    []mcp.Notification
	reusable []mcp.Notification // delivered slice for reuse; used by the delivering goroutine only
}

func (q *notificationQueue) push(n mcp.Notification) {
	q.mu.Lock()
	if q.inline != nil {
		defer q.mu.Unlock()
		q.inline(n)
		return
	}
	if len(q.items) >= maxQueue && !q.contains(n) {
		q.items = append(q.items[:0], q.items[1:]...)
	}
	if len(q.items) < maxQueue {
		q.items = append(q.items, n)
	}
	q.mu.Unlock()
	q.wakeReader()
}

// startInline calls notify, which must never wait, with the queued notifications. From then on,
// push calls it.
func (q *notificationQueue) startInline(notify func(mcp.Notification)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range q.items {
		notify(n)
	}
	q.items, q.inline = nil, notify
}

// stopInline waits until push has returned. From then on, push calls no function.
func (q *notificationQueue) stopInline() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inline = nil
}

func (q *notificationQueue) wakeReader() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *notificationQueue) contains(n mcp.Notification) bool {
	for _, item := range q.items {
		if item.Method == n.Method && bytes.Equal(item.Params, n.Params) {
			return true
		}
	}
	return false
}

// deliverAll calls notify with the queued notifications, in order, until the queue is empty.
func (q *notificationQueue) deliverAll(notify func(mcp.Notification)) {
	for {
		q.mu.Lock()
		items := q.items
		if len(items) > 0 {
			q.items, q.reusable = q.reusable[:0], nil
		}
		q.mu.Unlock()
		if len(items) == 0 {
			return
		}
		for _, n := range items {
			notify(n)
		}
		clear(items)
		q.reusable = items
	}
}
