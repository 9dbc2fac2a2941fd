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

// subscription is the peer of a session's own subscription.
type subscription struct {
	session *session
	acked   chan mcp.SubscriptionFilter // the acknowledged filter; closed when the subscription has ended
	ctx     context.Context             // of the subscription
	uri     string                      // of the resource; empty for lists
	cancel  context.CancelFunc          // of the subscription to a resource

	mu        sync.Mutex // orders what is sent for the subscription
	closed    bool
	holdsBack bool // until the handshake has ended
	held      []mcp.Change
}

// watchLists starts to listen to changes of lists, which are held back until the client has ended the handshake. What it
// returns is ready once the handler listens, or does not.
func (ss *session) watchLists() <-chan mcp.SubscriptionFilter {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	l := &subscription{session: ss, acked: make(chan mcp.SubscriptionFilter, 1), holdsBack: true}
	if ss.closed {
		close(l.acked)
		return l.acked
	}
	ctx, cancel := context.WithCancel(ss.base)
	ss.lists, ss.cancelLists = l, cancel
	ss.runSubscription(ctx, l, nil, mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
	return l.acked
}

// releaseLists passes on changes of lists from now on.
func (ss *session) releaseLists() {
	ss.mu.Lock()
	l := ss.lists
	ss.mu.Unlock()
	if l != nil {
		l.releaseHeld()
	}
}

// runSubscription runs a subscription against the handler, as a modern client would. The header is that of the request that it is for.
func (ss *session) runSubscription(ctx context.Context, l *subscription, header map[string][]string, f mcp.SubscriptionFilter) {
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
		defer ss.forgetSubscription(l)
		defer l.closeSubscription()
		if _, err := ss.edge.callHandler(ctx, req); err != nil && ctx.Err() == nil {
			ss.edge.logger.Debug("the server takes no subscriptions", "err", err)
		}
	}()
}

func (l *subscription) closeSubscription() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	close(l.acked)
}

func (l *subscription) Notify(context.Context, mcp.Notification) error { return nil }

func (l *subscription) Change(_ context.Context, change mcp.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.ctx.Err() != nil {
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
	if l.holdsBack {
		l.holdBack(change)
		return nil
	}
	return l.session.out.Write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
}

// holdBack keeps one change of each kind.
func (l *subscription) holdBack(change mcp.Change) {
	for _, held := range l.held {
		if held.Method == change.Method {
			return
		}
	}
	l.held = append(l.held, change)
}

// releaseHeld sends what was held back, and holds back no more.
func (l *subscription) releaseHeld() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, change := range l.held {
		_ = l.session.out.Write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
	}
	l.holdsBack, l.held = false, nil
}

func readURI(params []byte) (string, *mcp.Error) {
	uri, _ := rawjson.String(rawjson.Lookup(params, "uri"))
	if uri == "" {
		return "", mcp.InvalidParams("uri must be a non-empty string")
	}
	return uri, nil
}

// subscribe passes on changes of one resource, if the handler agrees.
func (ss *session) subscribe(ctx context.Context, params []byte, header map[string][]string) *mcp.Error {
	uri, refused := readURI(params)
	if refused != nil {
		return refused
	}
	l, refused := ss.startSubscription(uri, header)
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

// startSubscription starts the subscription to a resource; nil without an error means that there is one.
func (ss *session) startSubscription(uri string, header map[string][]string) (*subscription, *mcp.Error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if _, subscribed := ss.resources[uri]; subscribed || ss.closed {
		return nil, nil
	}
	if len(ss.resources) >= maxSubscriptions {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "more than %d resources are subscribed to", maxSubscriptions)
	}
	ctx, cancel := context.WithCancel(ss.base)
	l := &subscription{session: ss, acked: make(chan mcp.SubscriptionFilter, 1), uri: uri, cancel: cancel}
	if ss.resources == nil {
		ss.resources = map[string]*subscription{}
	}
	ss.resources[uri] = l
	ss.runSubscription(ctx, l, header, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
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

// forgetSubscription forgets the subscription that l was, which the handler has ended: the client may subscribe again.
func (ss *session) forgetSubscription(l *subscription) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if l.uri != "" && ss.resources[l.uri] == l {
		l.cancel()
		delete(ss.resources, l.uri)
	}
}
