package calling

import (
	"context"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"maps"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// modernCaller speaks revisions that convey their metadata with each request.
type modernCaller struct {
	c       *caller
	version mcp.Revision
	meta    []byte // the members of _meta that every request carries
	able    int    // where in meta the capabilities begin, which are the last

	mu    sync.Mutex
	first *mcp.Response // what the probe was answered: the first server/discover is
}

func newModernCaller(c *caller, version mcp.Revision) *modernCaller {
	m := &modernCaller{c: c, version: version}
	capabilities := c.opts.Capabilities
	if declared := c.opts.Vocabulary.Declare(); declared != nil {
		maps.Copy(declared, capabilities.Extensions)
		capabilities.Extensions = declared
	}
	m.meta = append(m.meta, `"`+mcp.MetaProtocolVersion+`":"`...)
	m.meta = append(append(m.meta, version...), '"')
	m.add(mcp.MetaClientInfo, c.opts.Info)
	m.able = len(m.meta) + len(`,"`+mcp.MetaClientCapabilities+`":`)
	m.add(mcp.MetaClientCapabilities, capabilities)
	return m
}

func (m *modernCaller) add(name string, v any) {
	m.meta = append(append(append(m.meta, `,"`...), name...), `":`...)
	meta, err := mcp.AppendEncode(m.meta, v)
	if err != nil {
		panic(err) // structs of strings and objects that options have been checked for
	}
	m.meta = meta
}

func (m *modernCaller) revision() mcp.Revision { return m.version }

func (m *modernCaller) overhead() int { return envelopeSize + len(m.meta) }

func (m *modernCaller) appendParams(dst []byte, req *mcp.Request, x *exchange) []byte {
	dst = append(dst, `{"_meta":{`...)
	if req.ClientCapabilities == nil {
		dst = append(dst, m.meta...)
	} else {
		dst = append(append(dst, m.meta[:m.able]...), req.ClientCapabilities...)
	}
	if req.LogLevel != "" {
		dst = append(append(dst, `,"`+mcp.MetaLogLevel+`":"`...), req.LogLevel...)
		dst = append(dst, '"')
	}
	if x.steps {
		dst = x.id.Append(append(dst, `,"`+mcp.MetaProgressToken+`":`...))
	}
	return appendRest(dst, req.Params)
}

// appendRest closes _meta, with the keys of the params' own _meta that are not the protocol's, and appends the other
// members and the closing brace.
func appendRest(dst, params []byte) []byte {
	own := rawjson.Lookup(params, "_meta")
	if own == nil {
		return frames.AppendMembers(append(dst, '}'), params, nil)
	}
	dst = frames.AppendMembers(dst, own, edgeKey)
	dst = append(dst[:len(dst)-1], '}')
	return frames.AppendMembers(dst, params, func(key []byte) bool { return string(key) == "_meta" })
}

// edgeKey reports whether a key of a request's _meta is the edge's to write.
func edgeKey(key []byte) bool {
	return string(key) == mcp.MetaProgressToken || strings.HasPrefix(string(key), "io.modelcontextprotocol/") && edgeName(string(key))
}

func edgeName(key string) bool {
	switch key {
	case mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities, mcp.MetaLogLevel, mcp.MetaSubscriptionID:
		return true
	}
	return false
}

func (m *modernCaller) response(raw []byte) *mcp.Response { return readResult(raw, m.version) }

func (m *modernCaller) roundTrip(_ context.Context, req *mcp.Request) (*mcp.Response, error, bool) {
	if req.Method != mcp.MethodDiscover {
		return nil, nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.first
	m.first = nil
	return first, nil, first != nil
}

func (m *modernCaller) notification(n mcp.Notification, takers []*exchange) []*exchange {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if x := m.c.progressing(n); x != nil {
		return append(takers, x)
	}
	if raw := rawjson.Lookup(rawjson.Lookup(n.Params, "_meta"), mcp.MetaSubscriptionID); raw != nil {
		if id, err := jsonrpc.ParseID(raw); err == nil && m.c.inFlight(id) != nil {
			return append(takers, m.c.inFlight(id))
		}
		return takers
	}
	return m.c.logging(n, m.c.unlabelled(n, takers))
}

// unlabelled appends the subscriptions that a change belongs to where the server does not say which, as it must: mcp-go does
// not, on stdio. c.mu is held.
func (c *caller) unlabelled(n mcp.Notification, takers []*exchange) []*exchange {
	for _, x := range c.pending {
		if x.filter != nil && wants(*x.filter, n) {
			takers = append(takers, x)
		}
	}
	return takers
}

func (m *modernCaller) request(context.Context, *mcp.Request) (*mcp.Result, error) {
	return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "servers send no requests in revision %s", m.version)
}

// progressing returns the exchange whose progress is reported. c.mu is held.
func (c *caller) progressing(n mcp.Notification) *exchange {
	if n.Method != mcp.NotificationProgress {
		return nil
	}
	id, err := jsonrpc.ParseID(rawjson.Lookup(n.Params, "progressToken"))
	if err != nil {
		return nil
	}
	return c.inFlight(id)
}

// logging appends the one exchange that a log message can belong to: on a shared channel it names none. c.mu is held.
func (c *caller) logging(n mcp.Notification, takers []*exchange) []*exchange {
	if n.Method != mcp.NotificationMessage {
		return takers
	}
	one := takers
	for _, x := range c.pending {
		if x.logs && x.notify != nil {
			one = append(one, x)
		}
	}
	if len(one) != len(takers)+1 {
		return takers
	}
	return one
}
