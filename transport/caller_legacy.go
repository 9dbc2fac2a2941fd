package transport

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// legacyCaller speaks revisions that open a session with a handshake.
type legacyCaller struct {
	c            *caller
	version      mcp.Revision
	discovery    mcp.Object // what the handshake told, as server/discover would
	capabilities mcp.ServerCapabilities

	setting chan struct{} // has room for the call that sets the level
	level   mcp.LoggingLevel

	subscribing chan struct{}  // holds a token while somebody subscribes or unsubscribes
	resources   map[string]int // subscriptions of listeners, by URI; of who holds the token

	mu        sync.Mutex
	listeners map[*exchange]mcp.SubscriptionFilter
}

func newLegacyCaller(c *caller, result mcp.InitializeResult, raw []byte) *legacyCaller {
	l := &legacyCaller{
		c: c, version: result.ProtocolVersion, listeners: map[*exchange]mcp.SubscriptionFilter{}, resources: map[string]int{},
		setting: make(chan struct{}, 1), subscribing: make(chan struct{}, 1),
	}
	_ = mcp.Decode(result.Capabilities, &l.capabilities) // what cannot be read is not offered
	out := append([]byte(`{"supportedVersions":["`), l.version...)
	out = append(append(out, `"],"capabilities":`...), orEmpty(rawjson.Lookup(raw, "capabilities"))...)
	if instructions := rawjson.Lookup(raw, "instructions"); instructions != nil {
		out = append(append(out, `,"instructions":`...), instructions...)
	}
	out = append(append(out, `,"_meta":{"`+mcp.MetaServerInfo+`":`...), orEmpty(rawjson.Lookup(raw, "serverInfo"))...)
	l.discovery = append(out, "}}"...)
	return l
}

func orEmpty(raw []byte) []byte {
	if raw == nil {
		return []byte("{}")
	}
	return raw
}

func (l *legacyCaller) revision() mcp.Revision { return l.version }

func (l *legacyCaller) overhead() int { return envelopeSize }

func (l *legacyCaller) appendParams(dst []byte, req *mcp.Request, x *exchange) []byte {
	params := mcp.AdaptParams(l.version, req.Method, req.Params)
	own := rawjson.Lookup(params, "_meta")
	if !x.steps && own == nil {
		return append(dst, orEmpty(params)...)
	}
	dst = append(dst, `{"_meta":{`...)
	at := len(dst)
	if x.steps {
		dst = x.id.Append(append(dst, `"`+mcp.MetaProgressToken+`":`...))
	}
	comma := len(dst)
	if comma > at {
		dst = append(dst, ',')
	}
	dst, any := rawjson.AppendMembers(dst, own, edgeKey)
	if !any {
		dst = dst[:comma]
	}
	return appendMembers(append(dst, '}'), params, func(key []byte) bool { return string(key) == "_meta" })
}

func (l *legacyCaller) roundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error, bool) {
	switch req.Method {
	case mcp.MethodDiscover:
		return &mcp.Response{Type: mcp.ResultComplete, Raw: l.discovery, Revision: l.version}, nil, true
	case mcp.MethodListen:
		res, err := l.listen(ctx, req)
		return res, err, true
	}
	if req.LogLevel != "" && l.capabilities.Logging != nil {
		if err := l.setLevel(ctx, req.LogLevel); err != nil {
			return nil, fmt.Errorf("logging/setLevel: %w", err), true
		}
	}
	return nil, nil, false
}

// setLevel makes the session's level that of the request: legacy revisions have one for all.
func (l *legacyCaller) setLevel(ctx context.Context, level mcp.LoggingLevel) error {
	select {
	case l.setting <- struct{}{}:
		defer func() { <-l.setting }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.level == level {
		return nil
	}
	params, err := mcp.Encode(mcp.SetLevelParams{Level: level})
	if err != nil {
		return err
	}
	if _, err := l.c.exchange(ctx, &mcp.Request{Method: mcp.MethodSetLevel, Params: params}, l); err != nil {
		return err
	}
	l.level = level
	return nil
}

func (l *legacyCaller) notification(n mcp.Notification, takers []*exchange) []*exchange {
	l.c.mu.Lock()
	if x := l.c.progressing(n); x != nil {
		takers = append(takers, x)
	}
	takers = l.c.logging(n, takers)
	l.c.mu.Unlock()
	if len(takers) > 0 {
		return takers
	}
	return l.listening(n, takers)
}

func (l *legacyCaller) request(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return l.c.in.ServeMCP(ctx, req)
}

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
	f.ResourceSubscriptions = l.subscribe(ctx, x, f)
	defer l.leave(ctx, x, f.ResourceSubscriptions)
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
		case <-l.c.base.Done():
			x.queue.deliver(x.notify)
			return nil, context.Cause(l.c.base)
		}
	}
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

// subscribe enters the listener and subscribes to its resources; it returns those that the server agreed to.
func (l *legacyCaller) subscribe(ctx context.Context, x *exchange, f mcp.SubscriptionFilter) (agreed []string) {
	l.listener(x, f)
	if len(f.ResourceSubscriptions) == 0 || l.take(ctx) != nil {
		return nil
	}
	defer l.give()
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

func (l *legacyCaller) listener(x *exchange, f mcp.SubscriptionFilter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners[x] = f
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
func (l *legacyCaller) leave(ctx context.Context, x *exchange, agreed []string) {
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
