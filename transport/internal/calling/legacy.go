package calling

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// legacyEra is the era of revisions 2025-11-25 and earlier, which open a session with a
// handshake.
type legacyEra struct {
	c            *caller
	version      mcp.Revision
	discovery    json.RawMessage // result of initialize in the form of server/discover
	capabilities mcp.ServerCapabilities
	tasks        bool // the server has the tasks of 2025-11-25

	levelLock chan struct{} // has room for one; guards level
	level     mcp.LoggingLevel

	subscriptionLock   chan struct{}   // has room for one; guards the two fields below
	subscriptionCounts map[string]int  // number of listeners for each subscribed URI
	countedGap         <-chan struct{} // gap of the session that subscriptionCounts belongs to

	mu        sync.Mutex
	listeners map[*exchange]mcp.SubscriptionFilter
	gap       chan struct{} // closed and replaced when changes may have been lost

	toolsLock    chan struct{}     // has room for one; held while the list of tools is read
	taskSupport  map[string]string // execution.taskSupport of tools; nil if unknown; guarded by mu
	toolsVersion int               // counts changes of the list of tools; guarded by mu
}

func newLegacyEra(c *caller, result mcpwire.InitializeResult, raw []byte) *legacyEra {
	l := &legacyEra{
		c: c, version: result.ProtocolVersion, listeners: map[*exchange]mcp.SubscriptionFilter{}, subscriptionCounts: map[string]int{},
		levelLock: make(chan struct{}, 1), subscriptionLock: make(chan struct{}, 1), gap: make(chan struct{}),
		toolsLock: make(chan struct{}, 1),
	}
	_ = mcp.Decode(result.Capabilities, &l.capabilities) // unreadable capabilities count as missing
	capabilities, offered := offerLegacyTasks(l.version, frames.OrEmptyObject(rawjson.Lookup(raw, "capabilities")))
	l.tasks = offered
	out := append([]byte(`{"supportedVersions":["`), l.version...)
	out = append(append(out, `"],"capabilities":`...), capabilities...)
	if instructions := rawjson.Lookup(raw, "instructions"); instructions != nil {
		out = append(append(out, `,"instructions":`...), instructions...)
	}
	out = append(append(out, `,"_meta":{"`+mcpwire.MetaServerInfo+`":`...), frames.OrEmptyObject(rawjson.Lookup(raw, "serverInfo"))...)
	l.discovery = append(out, "}}"...)
	return l
}

func (l *legacyEra) revision() mcp.Revision { return l.version }

func (l *legacyEra) overhead() int { return envelopeSize }

func (l *legacyEra) appendParams(dst []byte, req *mcp.Request, x *exchange) []byte {
	params := mcpwire.AdaptParams(l.version, req.Method, req.Params)
	own := rawjson.Lookup(params, "_meta")
	if !x.wantsProgress && own == nil {
		return append(dst, frames.OrEmptyObject(params)...)
	}
	dst = append(dst, `{"_meta":{`...)
	at := len(dst)
	if x.wantsProgress {
		dst = x.id.Append(append(dst, `"`+mcpwire.MetaProgressToken+`":`...))
	}
	comma := len(dst)
	if comma > at {
		dst = append(dst, ',')
	}
	dst, any := rawjson.AppendMembers(dst, own, isEdgeKey)
	if !any {
		dst = dst[:comma]
	}
	return frames.AppendMembers(append(dst, '}'), params, func(key []byte) bool { return string(key) == "_meta" })
}

func (l *legacyEra) interceptRequest(ctx context.Context, req *mcp.Request) (*mcp.Response, error, bool) {
	switch req.Method {
	case mcp.MethodDiscover:
		return &mcp.Response{Type: mcp.ResultComplete, Raw: l.discovery, Revision: l.version}, nil, true
	case mcp.MethodListen:
		res, err := l.serveListen(ctx, req)
		return res, err, true
	case mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource:
		l.awaitStream(ctx) // many servers send their questions there, and drop them without a stream
	}
	if req.LogLevel != "" && l.capabilities.Logging != nil {
		if err := l.setLevel(ctx, req.LogLevel); err != nil {
			return nil, fmt.Errorf("logging/setLevel: %w", err), true
		}
	}
	return l.interceptTask(ctx, req)
}

func (l *legacyEra) awaitStream(ctx context.Context) {
	if o, ok := l.c.carrier.(StreamOpener); ok {
		o.AwaitStream(ctx)
	}
}

// setLevel sets the session's log level to the level of a request, because legacy requests have
// none of their own.
func (l *legacyEra) setLevel(ctx context.Context, level mcp.LoggingLevel) error {
	select {
	case l.levelLock <- struct{}{}:
		defer func() { <-l.levelLock }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.level == level {
		return nil
	}
	params, err := mcp.Encode(mcpwire.SetLevelParams{Level: level})
	if err != nil {
		return err
	}
	if _, err := l.c.sendRequest(ctx, &mcp.Request{Method: mcpwire.MethodSetLevel, Params: params}, l); err != nil {
		return err
	}
	l.level = level
	return nil
}

func (l *legacyEra) findReceivers(n mcp.Notification, receivers []*exchange) []*exchange {
	if l.tasks && n.Method == mcp.NotificationToolsChanged {
		l.forgetTools()
	}
	if l.tasks && n.Method == mcpwire.NotificationTaskStatus {
		return l.findTaskWaiters(n, receivers)
	}
	l.c.mu.Lock()
	if x := l.c.findByProgressToken(n); x != nil {
		receivers = append(receivers, x)
	}
	receivers = l.c.findLogReceiver(n, receivers)
	l.c.mu.Unlock()
	if len(receivers) > 0 {
		return receivers
	}
	return l.findListeners(n, receivers)
}

func (l *legacyEra) answerQuestion(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return l.c.in.ServeMCP(ctx, req)
}
