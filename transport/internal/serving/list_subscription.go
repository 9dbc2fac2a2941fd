package serving

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Listen subscribes to list changes and writes them to out, on the caller's goroutine. It
// returns when ctx ends, when the handler ends the subscription, or at once if the handler takes
// none. onActive is called with the parameters of the acknowledgement when the subscription is
// active, before the first change, and may be called again. The caller must end ctx when it has
// ended the session.
func (s *Session) Listen(ctx context.Context, out Writer, onActive func(acknowledged json.RawMessage)) {
	if !s.beginWork() {
		return
	}
	defer s.work.Done()
	l := newListSubscription(s, out, onActive)
	defer l.closed.Store(true)
	if _, err := s.edge.callHandler(ctx, &l.req); err != nil && ctx.Err() == nil {
		s.edge.logger.Debug("the server takes no subscriptions", "err", err)
	}
}

// beginWork registers work that Wait waits for. It reports false if the session has ended.
func (s *Session) beginWork() bool {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// listSubscription is a subscription to list changes, and the peer of its request.
type listSubscription struct {
	req      mcp.Request
	out      Writer
	onActive func(json.RawMessage)
	closed   atomic.Bool
}

var allLists = []byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)

// newListSubscription is separate from Listen, and not inlined, to keep the stack small on which
// a subscription waits.
//
//go:noinline
func newListSubscription(s *Session, out Writer, onActive func(json.RawMessage)) *listSubscription {
	l := &listSubscription{out: out, onActive: onActive}
	l.req = mcp.Request{
		Method: mcp.MethodListen, Params: allLists, Revision: s.Revision, ClientCapabilities: s.Capabilities,
		ClientInfo: s.ClientInfo, Principal: s.principal, Peer: l,
	}
	return l
}

// Notify implements [mcp.Peer].
func (l *listSubscription) Notify(context.Context, mcp.Notification) error { return nil }

// Change implements [mcp.Peer]. It accepts changes after the end of the subscription's context,
// until the handler has returned.
func (l *listSubscription) Change(_ context.Context, change mcp.Notification) error {
	switch {
	case l.closed.Load():
		return mcp.ErrPeerGone
	case change.Method == mcp.NotificationAcknowledged:
		l.onActive(change.Params)
		return nil
	}
	return l.out.Write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
}
