package calling

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// What a legacy session tells of changes, in the form of subscriptions.

// findListeners appends the subscriptions that a change belongs to.
func (l *legacyEra) findListeners(n mcp.Notification, takers []*exchange) []*exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	for x, f := range l.listeners {
		if filterMatches(f, n) {
			takers = append(takers, x)
		}
	}
	return takers
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

// isPartOf reports whether a URI is a part of the resource that was subscribed to, which servers may say has changed.
func isPartOf(uri, subscribed string) bool {
	rest, ok := strings.CutPrefix(uri, subscribed)
	return ok && (strings.HasSuffix(subscribed, "/") || strings.ContainsRune("/?#", rune(rest[0])))
}

// serveListen gives a session's notifications the form of a subscription, until ctx or the connection ends.
func (l *legacyEra) serveListen(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("%s: %v", req.Method, err)
	}
	x := &exchange{method: req.Method, notify: req.Notify, queue: notificationQueue{wake: make(chan struct{}, 1)}}
	if x.notify == nil {
		x.notify = func(mcp.Notification) {}
	}
	f := l.limitFilter(p.Notifications)
	gap := l.addListener(x, f)
	f.ResourceSubscriptions = l.subscribeResources(ctx, x, f, gap)
	defer l.removeListener(ctx, x, f.ResourceSubscriptions, gap)
	acknowledged, err := mcp.Encode(mcp.AcknowledgedParams{Notifications: f})
	if err != nil {
		return nil, err
	}
	x.notify(mcp.Notification{Method: mcp.NotificationAcknowledged, Params: acknowledged})
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

// interruptListeners ends what listens: its changes may have been lost, and the server may have forgotten what it subscribed to.
func (l *legacyEra) interruptListeners() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.gap)
	l.gap = make(chan struct{})
}

// limitFilter keeps what the server offers of what is asked for.
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

// subscribeResources subscribes to the resources of a listener; it returns those that the server agreed to.
func (l *legacyEra) subscribeResources(ctx context.Context, x *exchange, f mcp.SubscriptionFilter, gap <-chan struct{}) (agreed []string) {
	if len(f.ResourceSubscriptions) == 0 || l.lockSubscriptions(ctx) != nil {
		return nil
	}
	defer l.unlockSubscriptions()
	if l.countedGap != gap {
		l.subscriptionCounts, l.countedGap = map[string]int{}, gap
	}
	for _, uri := range f.ResourceSubscriptions {
		if l.subscriptionCounts[uri] == 0 && l.sendSubscription(ctx, mcp.MethodSubscribe, uri) != nil {
			continue
		}
		l.subscriptionCounts[uri]++
		agreed = append(agreed, uri)
	}
	f.ResourceSubscriptions = agreed
	l.addListener(x, f)
	return agreed
}

// addListener enters a listener; the gap that it returns ends it.
func (l *legacyEra) addListener(x *exchange, f mcp.SubscriptionFilter) (gap <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners[x] = f
	return l.gap
}

// lockSubscriptions makes the caller the only one that subscribes and unsubscribes, until give: what is counted is what was agreed to.
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

// removeListener removes the listener and the subscriptions that nobody else has.
func (l *legacyEra) removeListener(ctx context.Context, x *exchange, agreed []string, gap <-chan struct{}) {
	const patience = 2 * time.Second
	l.mu.Lock()
	delete(l.listeners, x)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if len(agreed) == 0 || l.lockSubscriptions(ctx) != nil {
		return
	}
	defer l.unlockSubscriptions()
	if l.countedGap != gap {
		return // others have subscribed anew
	}
	for _, uri := range agreed {
		if l.subscriptionCounts[uri]--; l.subscriptionCounts[uri] > 0 {
			continue
		}
		delete(l.subscriptionCounts, uri)
		if l.c.base.Err() == nil && ctx.Err() == nil {
			_ = l.sendSubscription(ctx, mcp.MethodUnsubscribe, uri) // a server that refuses goes on sending what nobody takes
		}
	}
}
