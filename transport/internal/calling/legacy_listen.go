package calling

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// This file gives the change notifications of a legacy session the form of subscriptions.

// findListeners appends the subscriptions that a change belongs to.
func (l *legacyEra) findListeners(n mcp.Notification, receivers []*exchange) []*exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	for x, f := range l.listeners {
		if filterMatches(f, n) {
			receivers = append(receivers, x)
		}
	}
	return receivers
}

func filterMatches(f mcp.SubscriptionFilter, n mcp.Notification) bool {
	switch n.Method {
	case mcp.NotificationToolsChanged:
		return f.ToolsListChanged
	case mcp.NotificationPromptsChanged:
		return f.PromptsListChanged
	case mcp.NotificationResourcesChanged:
		return f.ResourcesListChanged
	case mcp.NotificationResourceUpdated:
		uri, _ := rawjson.String(rawjson.Lookup(n.Params, "uri"))
		for _, subscribed := range f.ResourceSubscriptions {
			if uri == subscribed || isPartOf(uri, subscribed) {
				return true
			}
		}
	}
	return false
}

// isPartOf reports whether uri is below the subscribed URI. Servers may report a change of a part
// of a resource.
func isPartOf(uri, subscribed string) bool {
	rest, ok := strings.CutPrefix(uri, subscribed)
	return ok && (strings.HasSuffix(subscribed, "/") || strings.ContainsRune("/?#", rune(rest[0])))
}

// serveListen answers subscriptions/listen from the session's notifications. It returns when ctx
// or the connection ends, or when changes may have been lost.
func (l *legacyEra) serveListen(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("%s: %v", req.Method, err)
	}
	x := &exchange{method: req.Method, notify: req.Notify, inline: l.c.callsInline(ctx, req), queue: notificationQueue{wake: make(chan struct{}, 1)}}
	defer x.queue.stopInline()
	if x.notify == nil {
		x.notify = func(mcp.Notification) {}
	}
	l.awaitStream(ctx)
	f := l.limitFilter(p.Notifications)
	gap := l.addListener(x, f)
	f.ResourceSubscriptions = l.subscribeResources(ctx, x, f, gap)
	defer l.removeListener(ctx, x, f.ResourceSubscriptions, gap)
	acknowledged, err := mcp.Encode(mcp.ListenParams{Notifications: f})
	if err != nil {
		return nil, err
	}
	x.notify(mcp.Notification{Method: mcp.NotificationAcknowledged, Params: acknowledged})
	if x.inline {
		x.queue.startInline(x.notify)
	}
	for {
		select {
		case <-x.queue.wake:
			x.queue.deliverAll(x.notify)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-gap:
			return nil, errGap
		case <-l.c.base.Done():
			x.queue.deliverAll(x.notify)
			return nil, context.Cause(l.c.base)
		}
	}
}

var errGap = fmt.Errorf("%w: the stream of notifications was interrupted, and changes may have been missed", mcp.ErrConnection)

// interruptListeners ends all subscriptions, because changes may have been lost and the server
// may have forgotten its subscriptions.
func (l *legacyEra) interruptListeners() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.gap)
	l.gap = make(chan struct{})
	l.taskSupport = nil
	l.toolsVersion++
}

// limitFilter returns the part of f that the server offers.
func (l *legacyEra) limitFilter(f mcp.SubscriptionFilter) mcp.SubscriptionFilter {
	c := l.capabilities
	agreed := mcp.SubscriptionFilter{
		ToolsListChanged:     f.ToolsListChanged && c.Tools != nil && c.Tools.ListChanged,
		PromptsListChanged:   f.PromptsListChanged && c.Prompts != nil && c.Prompts.ListChanged,
		ResourcesListChanged: f.ResourcesListChanged && c.Resources != nil && c.Resources.ListChanged,
	}
	if c.Resources != nil && c.Resources.Subscribe {
		agreed.ResourceSubscriptions = f.ResourceSubscriptions
	}
	return agreed
}

// subscribeResources subscribes to the resources of a listener and returns the URIs that the
// server accepted.
func (l *legacyEra) subscribeResources(ctx context.Context, x *exchange, f mcp.SubscriptionFilter, gap <-chan struct{}) (agreed []string) {
	if len(f.ResourceSubscriptions) == 0 || l.lockSubscriptions(ctx) != nil {
		return nil
	}
	defer l.unlockSubscriptions()
	if l.countedGap != gap {
		l.subscriptionCounts, l.countedGap = map[string]int{}, gap
	}
	for _, uri := range f.ResourceSubscriptions {
		if l.subscriptionCounts[uri] == 0 {
			if err := l.sendSubscription(ctx, mcpwire.MethodSubscribe, uri); err != nil {
				mcpwire.NoteRefusal(ctx, uri, err)
				continue
			}
		}
		l.subscriptionCounts[uri]++
		agreed = append(agreed, uri)
	}
	f.ResourceSubscriptions = agreed
	l.addListener(x, f)
	return agreed
}

// addListener registers a listener. It returns the gap whose closing must end the listener.
func (l *legacyEra) addListener(x *exchange, f mcp.SubscriptionFilter) (gap <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners[x] = f
	return l.gap
}

// lockSubscriptions gives the caller exclusive use of the subscriptions, until
// unlockSubscriptions. A channel is used as the lock so that waiting ends with ctx.
func (l *legacyEra) lockSubscriptions(ctx context.Context) error {
	select {
	case l.subscriptionLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *legacyEra) unlockSubscriptions() { <-l.subscriptionLock }

func (l *legacyEra) sendSubscription(ctx context.Context, method, uri string) error {
	params, err := mcp.Encode(mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return err
	}
	_, err = l.c.sendRequest(ctx, &mcp.Request{Method: method, Params: params}, l)
	return err
}

// removeListener removes a listener and the subscriptions that no other listener needs.
func (l *legacyEra) removeListener(ctx context.Context, x *exchange, agreed []string, gap <-chan struct{}) {
	const unsubscribeTimeout = 2 * time.Second
	l.mu.Lock()
	delete(l.listeners, x)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTimeout)
	defer cancel()
	if len(agreed) == 0 || l.lockSubscriptions(ctx) != nil {
		return
	}
	defer l.unlockSubscriptions()
	if l.countedGap != gap {
		return // the subscriptions belong to a new session
	}
	for _, uri := range agreed {
		if l.subscriptionCounts[uri]--; l.subscriptionCounts[uri] > 0 {
			continue
		}
		delete(l.subscriptionCounts, uri)
		if l.c.base.Err() == nil && ctx.Err() == nil {
			_ = l.sendSubscription(ctx, mcpwire.MethodUnsubscribe, uri) // if the server refuses, its changes are ignored
		}
	}
}
