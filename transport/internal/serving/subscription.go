package serving

import (
	"context"
	"errors"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxSubscriptions is the highest number of resources that one session may subscribe to.
const maxSubscriptions = 1024

// subscription is a subscription that a session makes at the handler for its client, and the peer
// of its request.
type subscription struct {
	session *session
	acked   chan mcp.SubscriptionFilter // receives the acknowledged filter; closed when the subscription has ended
	ctx     context.Context             // ends with the subscription
	uri     string                      // of the resource; empty for lists
	cancel  context.CancelFunc          // ends a subscription to a resource
	refusal error                       // with which the handler has ended the subscription; valid after acked is closed

	mu        sync.Mutex // held while a frame is written, which keeps the order of frames
	closed    bool
	holdsBack bool // collects changes in held until the handshake is over
	held      []mcp.Notification
}

// watchLists subscribes to list changes and holds them back until the client has finished the
// handshake. The returned channel is ready when the handler has accepted or refused the
// subscription.
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

// releaseLists sends the list changes that were held back, and later ones at once.
func (ss *session) releaseLists() {
	ss.mu.Lock()
	l := ss.lists
	ss.mu.Unlock()
	if l != nil {
		l.releaseHeld()
	}
}

// runSubscription starts a subscription at the handler, as a modern client would make it. header
// is the header of the client's request that caused it.
func (ss *session) runSubscription(ctx context.Context, l *subscription, header map[string][]string, f mcp.SubscriptionFilter) {
	params, err := mcp.Encode(mcp.ListenParams{Notifications: f})
	if err != nil {
		panic(err) // unreachable: a filter has only booleans and strings
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
		if _, l.refusal = ss.edge.callHandler(ctx, req); l.refusal != nil && ctx.Err() == nil {
			ss.edge.logger.Debug("the server takes no subscriptions", "err", l.refusal)
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

func (l *subscription) Change(_ context.Context, change mcp.Notification) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.ctx.Err() != nil {
		return mcp.ErrPeerGone
	}
	if change.Method == mcp.NotificationAcknowledged {
		var p mcp.ListenParams
		if err := mcp.Decode(change.Params, &p); err != nil {
			return err
		}
		select {
		case l.acked <- p.Notifications:
		default: // acknowledged before
		}
		return nil
	}
	if l.holdsBack {
		l.holdBack(change)
		return nil
	}
	return l.session.out.Write(encodeNotification(change))
}

// TryChange implements [mcpwire.Announcer].
func (l *subscription) TryChange(change mcp.Notification) bool { return l.announce(change, true) }

// DeliverChange implements [mcpwire.Announcer].
func (l *subscription) DeliverChange(change mcp.Notification) bool { return l.announce(change, false) }

func (l *subscription) announce(change mcp.Notification, mayWrite bool) bool {
	w := newTryWriter(l.session.out, mayWrite)
	if w.isUseless() || !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	return !l.closed && l.ctx.Err() == nil && !l.holdsBack && w.try(encodeNotification(change))
}

func encodeNotification(n mcp.Notification) []byte {
	const envelope = 64 // bytes
	return jsonrpc.AppendNotification(make([]byte, 0, envelope+len(n.Method)+len(n.Params)), n.Method, n.Params)
}

// holdBack keeps the first change of each method.
func (l *subscription) holdBack(change mcp.Notification) {
	for _, held := range l.held {
		if held.Method == change.Method {
			return
		}
	}
	l.held = append(l.held, change)
}

// releaseHeld sends the changes that were held back, and stops holding changes back.
func (l *subscription) releaseHeld() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, change := range l.held {
		_ = l.session.out.Write(encodeNotification(change))
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

// subscribe handles resources/subscribe. It returns an error if the handler does not accept the
// subscription.
func (ss *session) subscribe(ctx context.Context, params []byte, header map[string][]string) *mcp.Error {
	uri, refused := readURI(params)
	if refused != nil {
		return refused
	}
	l, refused := ss.startSubscription(uri, header)
	if l == nil {
		return refused
	}
	return ss.awaitSubscription(ctx, l)
}

// awaitSubscription waits until the handler accepts a subscription that has started. It returns an
// error if the handler does not, or if ctx ends first; then it ends the subscription.
func (ss *session) awaitSubscription(ctx context.Context, l *subscription) (refused *mcp.Error) {
	select {
	case f, ok := <-l.acked:
		if ok && len(f.ResourceSubscriptions) > 0 {
			return nil
		}
		ss.forgetSubscription(l)
		if !ok {
			return ss.subscribeError(l.refusal)
		}
		refused = mcp.ResourceNotFound(l.uri) // the acknowledgement gives no reason
		refused.Message = "the server accepts no subscription to " + l.uri
		return refused
	case <-ctx.Done():
		ss.forgetSubscription(l)
		return mcp.Errorf(jsonrpc.CodeInternal, "cancelled")
	}
}

// subscribeError returns the error of resources/subscribe for the error of subscriptions/listen. A
// handler without that method, and one that has ended the subscription without an error, takes no
// subscriptions.
func (ss *session) subscribeError(err error) *mcp.Error {
	answer, isAnswer := errors.AsType[*mcp.Error](err)
	if err == nil || isAnswer && answer.Code == jsonrpc.CodeMethodNotFound {
		return mcp.MethodNotFound(mcpwire.MethodSubscribe)
	}
	_, refused := ss.encodeError(&mcp.Request{Method: mcpwire.MethodSubscribe, Revision: ss.Revision}, err)
	return refused
}

// startSubscription starts the subscription to a resource. It returns nil without an error if the
// client has subscribed before.
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

// forgetSubscription ends and removes a subscription that is of no use, so that the client may
// subscribe again. It does nothing if the client has done that already.
func (ss *session) forgetSubscription(l *subscription) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if l.uri != "" && ss.resources[l.uri] == l {
		l.cancel()
		delete(ss.resources, l.uri)
	}
}
