package calling

import (
	"context"
	"maps"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// modernEra is the era of revisions 2026-07-28 and later, in which each request carries its own
// metadata.
type modernEra struct {
	c              *caller
	version        mcp.Revision
	meta           []byte // encoded members of _meta that every request has
	capabilitiesAt int    // offset in meta of the client capabilities, the last member

	mu        sync.Mutex
	discovery *mcp.Response // answer to the probe, for the first server/discover
}

func newModernEra(c *caller, version mcp.Revision) *modernEra {
	m := &modernEra{c: c, version: version}
	capabilities := c.opts.Capabilities
	if declared := mcpwire.Vocabulary(c.opts.Extensions).Declare(); declared != nil {
		delete(declared, mcpwire.ExtensionTasks) // declared by each request that may be answered with a task
		maps.Copy(declared, capabilities.Extensions)
		capabilities.Extensions = declared
	}
	m.meta = append(m.meta, `"`+mcpwire.MetaProtocolVersion+`":"`...)
	m.meta = append(append(m.meta, version...), '"')
	m.appendMember(mcpwire.MetaClientInfo, c.opts.Info)
	m.capabilitiesAt = len(m.meta) + len(`,"`+mcpwire.MetaClientCapabilities+`":`)
	m.appendMember(mcpwire.MetaClientCapabilities, capabilities)
	return m
}

func (m *modernEra) appendMember(name string, v any) {
	m.meta = append(append(append(m.meta, `,"`...), name...), `":`...)
	meta, err := mcp.AppendEncode(m.meta, v)
	if err != nil {
		panic(err) // unreachable: the options have been checked
	}
	m.meta = meta
}

func (m *modernEra) revision() mcp.Revision { return m.version }

func (m *modernEra) overhead() int { return envelopeSize + len(m.meta) }

func (m *modernEra) appendParams(dst []byte, req *mcp.Request, x *exchange) []byte {
	dst = append(dst, `{"_meta":{`...)
	if req.ClientCapabilities == nil {
		dst = append(dst, m.meta...)
	} else {
		dst = append(append(dst, m.meta[:m.capabilitiesAt]...), req.ClientCapabilities...)
	}
	if req.LogLevel != "" {
		dst = append(append(dst, `,"`+mcpwire.MetaLogLevel+`":"`...), req.LogLevel...)
		dst = append(dst, '"')
	}
	if x.wantsProgress {
		dst = x.id.Append(append(dst, `,"`+mcpwire.MetaProgressToken+`":`...))
	}
	return appendRest(dst, req.Params)
}

// appendRest appends the keys of the params' own _meta that the edge does not write, closes
// _meta, and appends the other params and the closing brace.
func appendRest(dst, params []byte) []byte {
	own := rawjson.Lookup(params, "_meta")
	if own == nil {
		return frames.AppendMembers(append(dst, '}'), params, nil)
	}
	dst = frames.AppendMembers(dst, own, isEdgeKey)
	dst = append(dst[:len(dst)-1], '}')
	return frames.AppendMembers(dst, params, func(key []byte) bool { return string(key) == "_meta" })
}

// isEdgeKey reports whether a key of a request's _meta is written by the edge, so that the same key
// of the caller's own _meta is dropped.
func isEdgeKey(key []byte) bool {
	switch string(key) {
	case mcpwire.MetaProgressToken, mcpwire.MetaProtocolVersion, mcpwire.MetaClientInfo, mcpwire.MetaClientCapabilities, mcpwire.MetaLogLevel, mcpwire.MetaSubscriptionID:
		return true
	}
	return false
}

func (m *modernEra) interceptRequest(_ context.Context, req *mcp.Request) (*mcp.Response, error, bool) {
	if req.Method != mcp.MethodDiscover {
		return nil, nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.discovery
	m.discovery = nil
	return first, nil, first != nil
}

func (m *modernEra) findReceivers(n mcp.Notification, receivers []*exchange) []*exchange {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if x := m.c.findByProgressToken(n); x != nil {
		return append(receivers, x)
	}
	if raw := rawjson.Lookup(rawjson.Lookup(n.Params, "_meta"), mcpwire.MetaSubscriptionID); raw != nil {
		if id, err := jsonrpc.ParseID(raw); err == nil && m.c.findSubscription(id) != nil {
			return append(receivers, m.c.findSubscription(id))
		}
		return receivers
	}
	return m.c.findLogReceiver(n, m.c.findByFilter(n, receivers))
}

// findSubscription returns the subscription with the id, or nil. The caller holds c.mu.
func (c *caller) findSubscription(id jsonrpc.ID) *exchange {
	if x := c.findExchange(id); x != nil && x.method == mcp.MethodListen {
		return x
	}
	return nil
}

// findByFilter appends the subscriptions with a filter that matches a change without a subscription
// id. The id is required, but mcp-go omits it on stdio. The caller holds c.mu.
func (c *caller) findByFilter(n mcp.Notification, receivers []*exchange) []*exchange {
	for _, x := range c.pending {
		if x.filter != nil && filterMatches(*x.filter, n) {
			receivers = append(receivers, x)
		}
	}
	return receivers
}

func (m *modernEra) answerQuestion(context.Context, *mcp.Request) (*mcp.Result, error) {
	return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "servers send no requests in revision %s", m.version)
}

// findByProgressToken returns the exchange that a progress notification belongs to, or nil. The
// caller holds c.mu.
func (c *caller) findByProgressToken(n mcp.Notification) *exchange {
	if n.Method != mcp.NotificationProgress {
		return nil
	}
	id, err := jsonrpc.ParseID(rawjson.Lookup(n.Params, "progressToken"))
	if err != nil {
		return nil
	}
	x := c.findExchange(id)
	if x == nil || x.notify != nil {
		return x
	}
	x.age.silent = 0
	return &c.unheard // x may be answered and reused before the notification is delivered
}

// findLogReceiver appends the exchange that a log message belongs to, if the message names it or
// only one has asked for log messages: on a shared channel, log messages name no request, except
// between replicas. The caller holds c.mu.
func (c *caller) findLogReceiver(n mcp.Notification, receivers []*exchange) []*exchange {
	if n.Method != mcp.NotificationMessage {
		return receivers
	}
	if id, ok := mcpwire.FindRequest(n.Params); ok {
		if x := c.findExchange(id); x != nil && x.wantsLogs && x.notify != nil {
			receivers = append(receivers, x)
		}
		return receivers
	}
	one := receivers
	for _, x := range c.pending {
		if x.wantsLogs && x.notify != nil {
			one = append(one, x)
		}
	}
	if len(one) != len(receivers)+1 {
		return receivers
	}
	return one
}
