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

// listening appends the subscriptions that a change belongs to.
func (l *legacyCaller) listening(n mcp.Notification, takers []*exchange) []*exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	for x, f := range l.listeners {
		if wants(f, n) {
			takers = append(takers, x)
		}
	}
	return takers
}

func wants(f mcp.SubscriptionFilter, n mcp.Notification) bool {
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
			if uri == subscribed || within(uri, subscribed) {
				return true
			}
		}
	}
	return false
}

// within reports whether a URI is a part of the resource that was subscribed to, which servers may say has changed.
func within(uri, subscribed string) bool {
	rest, ok := strings.CutPrefix(uri, subscribed)
	return ok && (strings.HasSuffix(subscribed, "/") || strings.ContainsRune("/?#", rune(rest[0])))
}

// listen gives a session's notifications the form of a subscription, until ctx or the connection ends.
func (l *legacyCaller) listen(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("%s: %v", req.Method, err)
	}
	x := &exchange{method: req.Method, notify: req.Notify, queue: queue{wake: make(chan struct{}, 1)}}
	if x.notify == nil {
		x.notify = func(mcp.Notification) {}
	}
	f := l.agree(p.Notifications)
	gap := l.listener(x, f)
	f.ResourceSubscriptions = l.subscribe(ctx, x, f, gap)
	defer l.leave(ctx, x, f.ResourceSubscriptions, gap)
	acknowledged, err := mcp.Encode(mcp.AcknowledgedParams{Notifications: f})
	if err != nil {
		return nil, err
	}
	x.notify(mcp.Notification{Method: mcp.NotificationAcknowledged, Params: acknowledged})
	for {
		select {
		case <-x.queue.wake:
			x.queue.deliver(x.notify)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-gap:
			return nil, errGap
		case <-l.c.base.Done():
			x.queue.deliver(x.notify)
			return nil, context.Cause(l.c.base)
		}
	}
}

var errGap = fmt.Errorf("%w: the stream of notifications was interrupted, and changes may have been missed", mcp.ErrConnection)

// interrupted ends what listens: its changes may have been lost, and the server may have forgotten what it subscribed to.
func (l *legacyCaller) interrupted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.gap)
	l.gap = make(chan struct{})
}

// agree keeps what the server offers of what is asked for.
func (l *legacyCaller) agree(f mcp.SubscriptionFilter) mcp.SubscriptionFilter {
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

// subscribe subscribes to the resources of a listener; it returns those that the server agreed to.
func (l *legacyCaller) subscribe(ctx context.Context, x *exchange, f mcp.SubscriptionFilter, gap <-chan struct{}) (agreed []string) {
	if len(f.ResourceSubscriptions) == 0 || l.take(ctx) != nil {
		return nil
	}
	defer l.give()
	if l.counted != gap {
		l.resources, l.counted = map[string]int{}, gap
	}
	for _, uri := range f.ResourceSubscriptions {
		if l.resources[uri] == 0 && l.tell(ctx, mcp.MethodSubscribe, uri) != nil {
			continue
		}
		l.resources[uri]++
		agreed = append(agreed, uri)
	}
	f.ResourceSubscriptions = agreed
	l.listener(x, f)
	return agreed
}

// listener enters a listener; the gap that it returns ends it.
func (l *legacyCaller) listener(x *exchange, f mcp.SubscriptionFilter) (gap <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners[x] = f
	return l.gap
}

// take makes the caller the only one that subscribes and unsubscribes, until give: what is counted is what was agreed to.
func (l *legacyCaller) take(ctx context.Context) error {
	select {
	case l.subscribing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *legacyCaller) give() { <-l.subscribing }

func (l *legacyCaller) tell(ctx context.Context, method, uri string) error {
	params, err := mcp.Encode(mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return err
	}
	_, err = l.c.exchange(ctx, &mcp.Request{Method: method, Params: params}, l)
	return err
}

// leave removes the listener and the subscriptions that nobody else has.
func (l *legacyCaller) leave(ctx context.Context, x *exchange, agreed []string, gap <-chan struct{}) {
	const patience = 2 * time.Second
	l.mu.Lock()
	delete(l.listeners, x)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if len(agreed) == 0 || l.take(ctx) != nil {
		return
	}
	defer l.give()
	if l.counted != gap {
		return // others have subscribed anew
	}
	for _, uri := range agreed {
		if l.resources[uri]--; l.resources[uri] > 0 {
			continue
		}
		delete(l.resources, uri)
		if l.c.base.Err() == nil && ctx.Err() == nil {
			_ = l.tell(ctx, mcp.MethodUnsubscribe, uri) // a server that refuses goes on sending what nobody takes
		}
	}
}
