package serving

import (
	"context"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Listen passes on changes of lists to out, on the caller's goroutine: until ctx ends, or the handler ends the subscription, or
// takes none. begun is called when the handler listens, before the first change, and may be called again. The caller ends ctx
// when it has ended the session.
func (s *Session) Listen(ctx context.Context, out Writer, begun func()) {
	if !s.beginWork() {
		return
	}
	defer s.work.Done()
	l := newListSubscription(s, out, begun)
	defer l.closed.Store(true)
	if _, err := s.edge.callHandler(ctx, &l.req); err != nil && ctx.Err() == nil {
		s.edge.logger.Debug("the server takes no subscriptions", "err", err)
	}
}

// beginWork begins work that Wait waits for, unless the session has ended.
func (s *Session) beginWork() bool {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// listSubscription is a subscription to changes of lists, and the peer of its request.
type listSubscription struct {
	req      mcp.Request
	out      Writer
	onActive func()
	closed   atomic.Bool
}

var allLists = []byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)

// newListSubscription is not part of Listen, on whose stack a subscription waits.
//
//go:noinline
func newListSubscription(s *Session, out Writer, begun func()) *listSubscription {
	l := &listSubscription{out: out, onActive: begun}
	l.req = mcp.Request{
		Method: mcp.MethodListen, Params: allLists, Revision: s.Revision, ClientCapabilities: s.Capabilities,
		ClientInfo: s.ClientInfo, Principal: s.principal, Peer: l,
	}
	return l
}

// Notify implements [mcp.Peer].
func (l *listSubscription) Notify(context.Context, mcp.Notification) error { return nil }

// Change implements [mcp.Peer]. What a handler has left to say when its ctx has ended is still taken.
func (l *listSubscription) Change(_ context.Context, change mcp.Change) error {
	switch {
	case l.closed.Load():
		return mcp.ErrPeerGone
	case change.Method == mcp.NotificationAcknowledged:
		l.onActive()
		return nil
	}
	return l.out.Write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
}
