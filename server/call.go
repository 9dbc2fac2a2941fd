package server

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// call is one request while a handler works on it, and the context that the handler gets.
type call struct {
	context.Context
	server *Server
	req    *mcp.Request
	params callParams

	mu       sync.Mutex // guards the rest
	ended     bool
	input     *inputState // nil until something is asked or remembered
	progress *progressReports
	messages *messageLimit
}

type callKey struct{}

// Value implements [context.Context].
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// callFrom returns the call that ctx belongs to, or nil.
func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// RequestFrom returns the request that a handler works on, or nil if ctx does not come from a handler. It must not be
// changed.
func RequestFrom(ctx context.Context) *mcp.Request {
	if c := callFrom(ctx); c != nil {
		return c.req
	}
	return nil
}

// callParams are those members of params that requests with a handler share. Raw values are nil where they are absent.
type callParams struct {
	name      []byte // the name or URI, unescaped
	arguments json.RawMessage
	responses json.RawMessage // an object
	state     []byte
	// retry says that the request answers an input_required result: its result must not be cached.
	retry bool
}

var noArguments = json.RawMessage("{}")

// readParams finds the shared members; field is that which names the item.
func readParams(req *mcp.Request, field string) (p callParams, err error) {
	named := false
	for it := rawjson.Params(req.Params, req.Meta); it.Next(); {
		switch {
		case string(it.Key) == field:
			if named {
				return p, mcp.InvalidParams("params has two members %q", field)
			}
			p.name, named = unescapeString(it.Value)
		case string(it.Key) == "arguments":
			if p.arguments != nil {
				return p, mcp.InvalidParams("params has two members \"arguments\"")
			}
			p.arguments = it.Value
		case string(it.Key) == "inputResponses":
			p.responses = it.Value
		case string(it.Key) == "requestState":
			if p.state, p.retry = unescapeString(it.Value); !p.retry && !rawjson.IsNull(it.Value) {
				return p, mcp.InvalidParams("requestState must be a string")
			}
		}
	}
	if !named {
		return p, mcp.InvalidParams("%s needs params.%s, a string", req.Method, field)
	}
	return p, p.validate()
}

func (p *callParams) validate() error {
	if p.arguments == nil || rawjson.IsNull(p.arguments) {
		p.arguments = noArguments
	} else if !rawjson.IsObject(p.arguments) {
		return mcp.InvalidParams("params.arguments must be an object")
	}
	if p.responses == nil || rawjson.IsNull(p.responses) {
		p.responses = nil
	} else if !rawjson.IsObject(p.responses) {
		return mcp.InvalidParams("params.inputResponses must be an object")
	}
	p.retry = p.retry || p.responses != nil
	return nil
}

// unescapeString returns what a raw JSON string says, without copying where it has no escapes.
func unescapeString(raw []byte) (s []byte, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	for _, c := range raw {
		if c == '\\' {
			unescaped, ok := rawjson.String(raw)
			return []byte(unescaped), ok
		}
	}
	return raw[1 : len(raw)-1], true
}

// requestName returns what the request is about, for the log.
func requestName(req *mcp.Request) string {
	for _, field := range []string{"name", "uri"} {
		if s, ok := rawjson.String(rawjson.Lookup(req.Params, field)); ok {
			return s
		}
	}
	return ""
}

// newCall returns the context for a handler.
func (s *Server) newCall(ctx context.Context, req *mcp.Request, p callParams) *call {
	return &call{Context: ctx, server: s, req: req, params: p}
}

// finish closes the call after its handler has returned: what was held back is sent, nothing is sent any more. Where
// questions are open, or a visit is waited for, the result is the one that says so, whatever the handler said.
func (c *call) finish(err error) (*mcp.Result, error) {
	c.mu.Lock()
	c.sendHeldBack()
	c.ended = true
	asked := c.input != nil && (len(c.input.openQuestions) > 0 || c.input.comeBack)
	c.mu.Unlock()
	if asked && c.Err() == nil {
		return c.inputRequired()
	}
	return nil, err
}

// close makes the call send nothing any more, after what was held back. It waits for a notification that is on its way.
func (c *call) close() {
	if c.ended { // only the goroutine that is here sets it
		return
	}
	c.mu.Lock()
	c.sendHeldBack()
	c.ended = true
	c.mu.Unlock()
}

// cacheHint returns the hint for the call's result.
func (c *call) cacheHint(hint mcp.Cache) mcp.Cache {
	if c.params.retry {
		return mcp.Cache{}
	}
	return hint
}

// sendNotification sends a notification of the call, which must be locked.
func (c *call) sendNotification(method string, params json.RawMessage) error {
	if c.ended || c.req.Peer == nil {
		return mcp.ErrPeerGone
	}
	return c.req.Peer.Notify(c.Context, mcp.Notification{Method: method, Params: params})
}
