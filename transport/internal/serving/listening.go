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
	if !s.enter() {
		return
	}
	defer s.work.Done()
	l := newListening(s, out, begun)
	defer l.over.Store(true)
	if _, err := s.edge.invoke(ctx, &l.req); err != nil && ctx.Err() == nil {
		s.edge.logger.Debug("the server takes no subscriptions", "err", err)
	}
}

// enter begins work that Wait waits for, unless the session has ended.
func (s *Session) enter() bool {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// listening is a subscription to changes of lists, and the peer of its request.
type listening struct {
	req   mcp.Request
	out   Writer
	begun func()
	over  atomic.Bool
}

var allLists = []byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)

// newListening is not part of Listen, on whose stack a subscription waits.
//
//go:noinline
func newListening(s *Session, out Writer, begun func()) *listening {
	l := &listening{out: out, begun: begun}
	l.req = mcp.Request{
		Method: mcp.MethodListen, Params: allLists, Revision: s.Revision, ClientCapabilities: s.Capabilities,
		ClientInfo: s.ClientInfo, Principal: s.principal, Peer: l,
	}
	return l
}

// Notify implements [mcp.Peer].
func (l *listening) Notify(context.Context, mcp.Notification) error { return nil }

// Change implements [mcp.Peer]. What a handler has left to say when its ctx has ended is still taken.
func (l *listening) Change(_ context.Context, change mcp.Change) error {
	switch {
	case l.over.Load():
		return mcp.ErrPeerGone
	case change.Method == mcp.NotificationAcknowledged:
		l.begun()
		return nil
	}
	return l.out.Write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
}
