package server

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

var _ mcp.NotificationHandler = (*Server)(nil)

// notices are the takers of notifications, by method.
type notices struct {
	mu       sync.RWMutex
	byMethod map[string]func(context.Context, mcp.Notification) error
}

// OnNotification takes a client's notifications of one kind: those of an extension or of one's own, or roots/list_changed of
// a legacy client. Cancellation and the handshake never come here. fn is called in the order in which they come, one at a
// time on each connection, and must not block. It panics if the method is taken.
func OnNotification[P any](s *Server, method mcp.NotificationMethod[P], fn func(ctx context.Context, params P)) {
	s.notices.mu.Lock()
	defer s.notices.mu.Unlock()
	if s.notices.byMethod == nil {
		s.notices.byMethod = map[string]func(context.Context, mcp.Notification) error{}
	}
	if s.notices.byMethod[method.Name] != nil {
		panic("server: " + method.Name + " is taken already")
	}
	s.notices.byMethod[method.Name] = func(ctx context.Context, n mcp.Notification) error {
		var p P
		if err := mcp.Decode(n.Params, &p); err != nil {
			return err
		}
		fn(ctx, p)
		return nil
	}
}

// NotifyMCP implements [mcp.NotificationHandler]. A notification that nobody takes, or that cannot be read, is left alone:
// there is no answer to one.
func (s *Server) NotifyMCP(ctx context.Context, n mcp.Notification) {
	s.notices.mu.RLock()
	take := s.notices.byMethod[n.Method]
	s.notices.mu.RUnlock()
	if take == nil {
		return
	}
	if err := take(ctx, n); err != nil {
		s.opts.Logger.Warn("a notification cannot be read", "method", n.Method, "err", err)
	}
}
