package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

var _ mcp.NotificationHandler = (*Server)(nil)

// notificationFuncs are the takers of notifications, by method.
type notificationFuncs struct {
	mu       sync.RWMutex
	byMethod map[string]func(context.Context, mcp.Notification) error
}

// OnNotification takes a client's notifications of one kind: those of an extension or of one's own, or roots/list_changed of
// a legacy client. fn is called in the order in which they come, one at a time on each connection, and must not block. It
// panics if the method is taken, or is notifications/cancelled or notifications/initialized, which transports keep to
// themselves.
func OnNotification[P any](s *Server, method mcp.NotificationMethod[P], fn func(ctx context.Context, params P)) {
	if method.Name == mcp.NotificationCancelled || method.Name == mcp.NotificationInitialized {
		panic("server: " + method.Name + " never comes here: cancellation ends a handler's context, and the handshake is the transport's")
	}
	s.notifications.mu.Lock()
	defer s.notifications.mu.Unlock()
	if s.notifications.byMethod == nil {
		s.notifications.byMethod = map[string]func(context.Context, mcp.Notification) error{}
	}
	if s.notifications.byMethod[method.Name] != nil {
		panic("server: " + method.Name + " is taken already")
	}
	s.notifications.byMethod[method.Name] = func(ctx context.Context, n mcp.Notification) error {
		var p P
		if err := mcp.Decode(n.Params, &p); err != nil {
			return err
		}
		fn(ctx, p)
		return nil
	}
}

// Notify sends the client a notification of an extension, or of one's own, before the result of the request that the handler
// works on. The protocol's own are refused: see [Progress], [Log] and [Server.Updated]. The error is [mcp.ErrPeerGone] once
// the handler has returned or the client is gone. A client that does not know the notification ignores it.
func Notify[P any](ctx context.Context, method mcp.NotificationMethod[P], params P) error {
	if _, taken := protocolNames[method.Name]; taken {
		return fmt.Errorf("server: %s is a notification of the protocol", method.Name)
	}
	c := callFrom(ctx)
	if c == nil {
		return fmt.Errorf("server: %s: only a handler can notify the client of its request", method.Name)
	}
	raw, err := mcp.Encode(&params)
	if err == nil && !rawjson.IsObject(raw) {
		err = errors.New("the parameters must be an object")
	}
	if err != nil {
		return fmt.Errorf("server: %s: %w", method.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sendNotification(method.Name, raw)
}

// NotifyMCP implements [mcp.NotificationHandler]. A notification that nobody takes, or that cannot be read, is left alone:
// there is no answer to one.
func (s *Server) NotifyMCP(ctx context.Context, n mcp.Notification) {
	if chain := s.chain.Load(); chain != nil {
		(*chain).(mcp.NotificationHandler).NotifyMCP(ctx, n) // its core is one
		return
	}
	s.handleNotification(ctx, n)
}

func (s *Server) handleNotification(ctx context.Context, n mcp.Notification) {
	s.notifications.mu.RLock()
	take := s.notifications.byMethod[n.Method]
	s.notifications.mu.RUnlock()
	if take == nil {
		return
	}
	if err := take(ctx, n); err != nil {
		s.opts.Logger.Warn("a notification cannot be read", "method", n.Method, "err", err)
	}
}
