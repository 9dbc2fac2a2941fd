package transport

import (
	"context"
	"fmt"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
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

	subscribing chan struct{}   // holds a token while somebody subscribes or unsubscribes; what follows is of who holds it
	resources   map[string]int  // subscriptions of listeners, by URI
	counted     <-chan struct{} // the gap that ends what is counted there

	mu        sync.Mutex
	listeners map[*exchange]mcp.SubscriptionFilter
	gap       chan struct{} // closed, and another made, when changes may have been lost
}

func newLegacyCaller(c *caller, result mcp.InitializeResult, raw []byte) *legacyCaller {
	l := &legacyCaller{
		c: c, version: result.ProtocolVersion, listeners: map[*exchange]mcp.SubscriptionFilter{}, resources: map[string]int{},
		setting: make(chan struct{}, 1), subscribing: make(chan struct{}, 1), gap: make(chan struct{}),
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
	if len(raw) == 0 {
		return []byte("{}")
	}
	return raw
}

func (l *legacyCaller) revision() mcp.Revision { return l.version }

func (l *legacyCaller) overhead() int { return envelopeSize }

func (l *legacyCaller) appendParams(dst []byte, req *mcp.Request, x *exchange) []byte {
	params := mcpwire.AdaptParams(l.version, req.Method, req.Params)
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
