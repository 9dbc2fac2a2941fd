package client

import (
	"log/slog"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// handleNotification handles a notification that the transport cannot assign to a call.
func (c *Client) handleNotification(n mcp.Notification) {
	c.invalidate(n)
	if n.Method == mcpwire.NotificationElicitationCompleted {
		c.urlElicitations.completeElicitation(n)
	}
	if c.opts.OnNotification != nil || c.opts.OnLog != nil && n.Method == mcp.NotificationMessage {
		c.notifications.enqueue(n)
	}
}

// invalidate drops the results and schemas that a notification makes stale. It returns the URI of
// an updated resource, or "" for another change.
func (c *Client) invalidate(n mcp.Notification) (uri string) {
	if n.Method == mcp.NotificationResourceUpdated {
		uri, _ = rawjson.String(rawjson.Lookup(n.Params, "uri"))
	}
	c.cache.invalidate(n.Method, uri)
	if n.Method == mcp.NotificationToolsChanged {
		c.outputSchemas.clear()
	}
	return uri
}

func (c *Client) deliverNotification(n mcp.Notification) {
	c.conn.callbacks.Add(1)
	defer c.conn.callbacks.Add(-1)
	defer func() {
		if p := recover(); p != nil {
			c.opts.Logger.Error("a handler of notifications panicked", "server", c.serverName(), "method", n.Method, "panic", p)
		}
	}()
	if c.opts.OnLog != nil && n.Method == mcp.NotificationMessage {
		if err := decodeAndPass(n, c.opts.OnLog); err != nil {
			c.opts.Logger.Warn("a log message cannot be read", "server", c.serverName(), "err", err)
		}
	}
	if c.opts.OnNotification != nil {
		c.opts.OnNotification(n)
	}
}

// maxQueuedNotifications bounds the notifications that wait for their handler. If more arrive, the
// oldest is dropped.
const maxQueuedNotifications = 1024

// notificationQueue calls the handler in order without blocking the connection. Its goroutine exits
// when the queue is empty.
type notificationQueue struct {
	handle func(mcp.Notification)
	logger *slog.Logger

	mu      sync.Mutex
	queue   []mcp.Notification
	running bool
	closed  bool
	work    sync.WaitGroup
}

func (q *notificationQueue) enqueue(n mcp.Notification) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if len(q.queue) == maxQueuedNotifications {
		q.logger.Warn("dropped a notification: its handler is too slow", "method", q.queue[0].Method)
		q.queue = q.queue[1:]
	}
	q.queue = append(q.queue, n)
	if !q.running {
		q.running = true
		q.work.Go(q.deliverAll)
	}
}

func (q *notificationQueue) deliverAll() {
	for {
		q.mu.Lock()
		if len(q.queue) == 0 || q.closed {
			q.running = false
			q.mu.Unlock()
			return
		}
		n := q.queue[0]
		q.queue = q.queue[1:]
		q.mu.Unlock()
		q.handle(n)
	}
}

// closeQueue drops the waiting notifications and waits for the running handler.
func (q *notificationQueue) closeQueue() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.work.Wait()
}
