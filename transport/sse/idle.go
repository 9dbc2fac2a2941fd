package sse

import (
	"context"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// firstMessage bounds how long a client may hold a stream open before its first message.
const firstMessage = time.Minute

// idleTimer ends a session that is not used.
type idleTimer struct {
	mu           sync.Mutex
	limit        time.Duration // 0 means unlimited
	noMessageYet bool          // the client has sent nothing
	lastUsed     time.Time
	calls        int // in flight; counted only if limit is set
	timer        *time.Timer
}

func (i *idleTimer) start(ss *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.limit, i.noMessageYet, i.lastUsed = ss.server.opts.Sessions.Idle, true, time.Now()
	wait := firstMessage
	if i.limit > 0 {
		wait = min(wait, i.limit)
	}
	i.timer = time.AfterFunc(wait, func() { i.checkIdle(ss) })
}

func (i *idleTimer) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer.Stop()
}

func (i *idleTimer) noteMessage() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.noMessageYet, i.lastUsed = false, time.Now()
}

// checkIdle ends the session if it is idle. Otherwise it sets the timer to the earliest time when
// the session can be.
func (i *idleTimer) checkIdle(ss *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	left := i.limit
	if i.calls == 0 {
		left -= time.Since(i.lastUsed)
	}
	switch {
	case i.noMessageYet, left <= 0 && i.limit > 0:
		ss.cancel(errIdle)
	case i.limit > 0:
		i.timer.Reset(left)
	}
}

func (i *idleTimer) countCall(change int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls += change
	i.lastUsed = time.Now()
}

// countCalls returns a handler that counts the calls in flight, if sessions can be idle.
func (ss *session) countCalls(h mcp.Handler) mcp.Handler {
	if ss.server.opts.Sessions.Idle <= 0 {
		return h
	}
	return callCounter{h, &ss.idleTimer}
}

type callCounter struct {
	mcp.Handler
	idle *idleTimer
}

// ServeMCP implements [mcp.Handler]. A subscription does not count, because it lasts as long as the
// session.
func (w callCounter) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method != mcp.MethodListen {
		w.idle.countCall(1)
		defer w.idle.countCall(-1)
	}
	return w.Handler.ServeMCP(ctx, req)
}

// NotifyMCP implements [mcp.NotificationHandler] if the handler does.
func (w callCounter) NotifyMCP(ctx context.Context, n mcp.Notification) {
	if h, ok := w.Handler.(mcp.NotificationHandler); ok {
		h.NotifyMCP(ctx, n)
	}
}
