package sse

import (
	"context"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// firstMessage is how long a client may hold a stream open without ever sending anything.
const firstMessage = time.Minute

// idle ends a session that is not used.
type idle struct {
	mu    sync.Mutex
	limit time.Duration // 0: none
	first bool          // nothing has come yet
	used  time.Time
	calls int // in flight; counted only where there is a limit
	timer *time.Timer
}

func (i *idle) begin(ss *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.limit, i.first, i.used = ss.server.opts.SessionIdle, true, time.Now()
	wait := firstMessage
	if i.limit > 0 {
		wait = min(wait, i.limit)
	}
	i.timer = time.AfterFunc(wait, func() { i.look(ss) })
}

func (i *idle) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer.Stop()
}

func (i *idle) use() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.first, i.used = false, time.Now()
}

// look ends the session, or looks again when it may be due.
func (i *idle) look(ss *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	left := i.limit
	if i.calls == 0 {
		left -= time.Since(i.used)
	}
	switch {
	case i.first, left <= 0 && i.limit > 0:
		ss.cancel(errIdle)
	case i.limit > 0:
		i.timer.Reset(left)
	}
}

func (i *idle) call(change int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls += change
	i.used = time.Now()
}

// watched counts the calls of a session that may be idle.
func (ss *session) watched(h mcp.Handler) mcp.Handler {
	if ss.server.opts.SessionIdle <= 0 {
		return h
	}
	return watched{h, &ss.idle}
}

type watched struct {
	mcp.Handler
	idle *idle
}

// ServeMCP implements [mcp.Handler]. A subscription is no call: it lasts as long as the session.
func (w watched) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method != mcp.MethodListen {
		w.idle.call(1)
		defer w.idle.call(-1)
	}
	return w.Handler.ServeMCP(ctx, req)
}

// NotifyMCP implements [mcp.NotificationHandler] as far as the handler does.
func (w watched) NotifyMCP(ctx context.Context, n mcp.Notification) {
	if h, ok := w.Handler.(mcp.NotificationHandler); ok {
		h.NotifyMCP(ctx, n)
	}
}
