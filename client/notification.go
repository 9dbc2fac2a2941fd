package client

import (
	"log/slog"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// NotificationHandler takes notifications that belong to no call and no watch. Make a typed one with [OnNotification].
type NotificationHandler struct {
	// Method is the notification's name; empty takes all.
	Method string
	// Handle is called for one notification at a time, in the order in which they came.
	Handle func(mcp.Notification)
}

// OnNotification returns a handler of notifications of one method. Those whose parameters cannot be read are passed
// over.
func OnNotification[P any](method mcp.NotificationMethod[P], f func(P)) NotificationHandler {
	return NotificationHandler{Method: method.Name, Handle: func(n mcp.Notification) { _ = decodeAndPass(n, f) }}
}

// handleNotification takes what the transport has no other place for.
func (c *Client) handleNotification(n mcp.Notification) {
	c.invalidate(n)
	if n.Method == mcp.NotificationElicitationCompleted {
		c.urlElicitations.completeElicitation(n)
	}
	if len(c.opts.Notifications) > 0 || c.opts.OnLog != nil && n.Method == mcp.NotificationMessage {
		c.notifications.add(n)
	}
}

// invalidate drops what a notification makes invalid of what the client holds.
func (c *Client) invalidate(n mcp.Notification) {
	c.cache.invalidate(n)
	if n.Method == mcp.NotificationToolsChanged {
		c.outputSchemas.clear()
	}
}

func (c *Client) deliverNotification(n mcp.Notification) {
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
	for _, h := range c.opts.Notifications {
		if h.Method == "" || h.Method == n.Method {
			h.Handle(n)
		}
	}
}

// maxQueuedNotifications bounds the notifications that wait for their handler: beyond it, the oldest is dropped.
const maxQueuedNotifications = 1024

// notificationQueue hands notifications on, in order, without holding up the connection. Its goroutine lives while there are any.
type notificationQueue struct {
	handle func(mcp.Notification)
	logger *slog.Logger

	mu      sync.Mutex
	queue   []mcp.Notification
	running bool
	closed  bool
	work    sync.WaitGroup
}

func (b *notificationQueue) add(n mcp.Notification) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if len(b.queue) == maxQueuedNotifications {
		b.logger.Warn("a notification is dropped: their handler is too slow", "method", b.queue[0].Method)
		b.queue = b.queue[1:]
	}
	b.queue = append(b.queue, n)
	if !b.running {
		b.running = true
		b.work.Go(b.run)
	}
}

func (b *notificationQueue) run() {
	for {
		b.mu.Lock()
		if len(b.queue) == 0 || b.closed {
			b.running = false
			b.mu.Unlock()
			return
		}
		n := b.queue[0]
		b.queue = b.queue[1:]
		b.mu.Unlock()
		b.handle(n)
	}
}

// close drops what waits, and waits for the handler that runs.
func (b *notificationQueue) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.work.Wait()
}
