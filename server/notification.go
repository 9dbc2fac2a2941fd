package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

var _ mcp.NotificationHandler = (*Server)(nil)

// notificationFuncs maps the methods of notifications to their functions.
type notificationFuncs struct {
	mu       sync.RWMutex
	byMethod map[string]func(context.Context, mcp.Notification) error
}

// OnNotification handles the clients' notifications of one method: of an extension, of the program,
// or roots/list_changed of legacy clients. fn is called in order of arrival, one notification at a
// time on each connection, and must not block. OnNotification panics if the method already has a
// function, and for notifications/cancelled and notifications/initialized, which transports handle.
func OnNotification[P any](s *Server, method mcp.NotificationMethod[P], fn func(ctx context.Context, params P)) {
	if method.Name == mcpwire.NotificationCancelled || method.Name == mcpwire.NotificationInitialized {
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

// Notify sends the client a notification of an extension or of the program, before the result of
// the handler's request. It refuses the protocol's own notifications: see [Progress], [Log] and
// [Server.Updated]. The error is [mcp.ErrPeerGone] once the handler has returned or the client has
// left. A client ignores notifications that it does not know.
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

// NotifyMCP implements [mcp.NotificationHandler]. Notifications without a function go to
// Options.OnNotification. Notifications that cannot be decoded are logged.
func (s *Server) NotifyMCP(ctx context.Context, n mcp.Notification) {
	if chain := s.chain.Load(); chain != nil {
		(*chain).(mcp.NotificationHandler).NotifyMCP(ctx, n) // its innermost handler implements it
		return
	}
	s.handleNotification(ctx, n)
}

func (s *Server) handleNotification(ctx context.Context, n mcp.Notification) {
	s.notifications.mu.RLock()
	take := s.notifications.byMethod[n.Method]
	s.notifications.mu.RUnlock()
	if take == nil {
		if s.opts.OnNotification != nil {
			s.opts.OnNotification(ctx, n)
		}
		return
	}
	if err := take(ctx, n); err != nil {
		s.opts.Logger.Warn("a notification cannot be read", "method", n.Method, "err", err)
	}
}
