package serving

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxSubscriptions bounds the resources that one legacy session may subscribe to.
const maxSubscriptions = 1024

// listener is the peer of a session's own subscription.
type listener struct {
	session *session
	acked   chan mcp.SubscriptionFilter // the acknowledged filter; closed when the subscription has ended
	ctx     context.Context             // of the subscription
	uri     string                      // of the resource; empty for lists
	cancel  context.CancelFunc          // of the subscription to a resource

	mu    sync.Mutex // orders what is sent for the subscription
	over  bool
	holds bool // until the handshake has ended
	held  []mcp.Change
}

// watchLists starts to listen to changes of lists, which are held back until the client has ended the handshake. What it
// returns is ready once the handler listens, or does not.
func (ss *session) watchLists() <-chan mcp.SubscriptionFilter {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	l := &listener{session: ss, acked: make(chan mcp.SubscriptionFilter, 1), holds: true}
	if ss.closed {
		close(l.acked)
		return l.acked
	}
	ctx, cancel := context.WithCancel(ss.base)
	ss.lists, ss.listening = l, cancel
	ss.listen(ctx, l, nil, mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
	return l.acked
}

// begin passes on changes of lists from now on.
func (ss *session) begin() {
	ss.mu.Lock()
	l := ss.lists
	ss.mu.Unlock()
	if l != nil {
		l.release()
	}
}

// listen runs a subscription against the handler, as a modern client would. The header is that of the request that it is for.
func (ss *session) listen(ctx context.Context, l *listener, header map[string][]string, f mcp.SubscriptionFilter) {
	params, err := mcp.Encode(mcp.ListenParams{Notifications: f})
	if err != nil {
		panic(err) // a filter made of booleans and strings
	}
	req := &mcp.Request{
		Method: mcp.MethodListen, Params: params, Revision: ss.Revision, ClientCapabilities: ss.Capabilities,
		ClientInfo: ss.ClientInfo, Principal: ss.principal, Header: header, Peer: l,
	}
	l.ctx = ctx
	ss.wg.Add(1)
	go func() {
		defer ss.wg.Done()
		defer ss.over(l)
		defer l.end()
		if _, err := ss.edge.invoke(ctx, req); err != nil && ctx.Err() == nil {
			ss.edge.logger.Debug("the server takes no subscriptions", "err", err)
		}
	}()
}

func (l *listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	close(l.acked)
}

func (l *listener) Notify(context.Context, mcp.Notification) error { return nil }

func (l *listener) Change(_ context.Context, change mcp.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.ctx.Err() != nil {
		return mcp.ErrPeerGone
	}
	if change.Method == mcp.NotificationAcknowledged {
		var p mcp.AcknowledgedParams
		if err := mcp.Decode(change.Params, &p); err != nil {
			return err
		}
		select {
		case l.acked <- p.Notifications:
		default: // acknowledged again
		}
		return nil
	}
	if l.holds {
		l.hold(change)
		return nil
	}
	return l.session.out.Write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
}

// hold keeps one change of each kind.
func (l *listener) hold(change mcp.Change) {
	for _, held := range l.held {
		if held.Method == change.Method {
			return
		}
	}
	l.held = append(l.held, change)
}

// release sends what was held back, and holds back no more.
func (l *listener) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, change := range l.held {
		_ = l.session.out.Write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
	}
	l.holds, l.held = false, nil
}

func uriOf(params []byte) (string, *mcp.Error) {
	uri, _ := rawjson.String(rawjson.Lookup(params, "uri"))
	if uri == "" {
		return "", mcp.InvalidParams("uri must be a non-empty string")
	}
	return uri, nil
}

// subscribe passes on changes of one resource, if the handler agrees.
func (ss *session) subscribe(ctx context.Context, params []byte, header map[string][]string) *mcp.Error {
	uri, refused := uriOf(params)
	if refused != nil {
		return refused
	}
	l, refused := ss.reserve(uri, header)
	if l == nil {
		return refused
	}
	select {
	case f, ok := <-l.acked:
		if ok && len(f.ResourceSubscriptions) > 0 {
			return nil
		}
		ss.unsubscribe(uri)
		if !ok {
			return mcp.MethodNotFound(mcp.MethodSubscribe)
		}
		return mcp.ResourceNotFound(uri)
	case <-ctx.Done():
		ss.unsubscribe(uri)
		return mcp.Errorf(jsonrpc.CodeInternal, "cancelled")
	}
}

// reserve starts the subscription to a resource; nil without an error means that there is one.
func (ss *session) reserve(uri string, header map[string][]string) (*listener, *mcp.Error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if _, subscribed := ss.resources[uri]; subscribed || ss.closed {
		return nil, nil
	}
	if len(ss.resources) >= maxSubscriptions {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "more than %d resources are subscribed to", maxSubscriptions)
	}
	ctx, cancel := context.WithCancel(ss.base)
	l := &listener{session: ss, acked: make(chan mcp.SubscriptionFilter, 1), uri: uri, cancel: cancel}
	if ss.resources == nil {
		ss.resources = map[string]*listener{}
	}
	ss.resources[uri] = l
	ss.listen(ctx, l, header, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	return l, nil
}

func (ss *session) unsubscribe(uri string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if l := ss.resources[uri]; l != nil {
		l.cancel()
		delete(ss.resources, uri)
	}
}

// over forgets the subscription that l was, which the handler has ended: the client may subscribe again.
func (ss *session) over(l *listener) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if l.uri != "" && ss.resources[l.uri] == l {
		l.cancel()
		delete(ss.resources, l.uri)
	}
}
