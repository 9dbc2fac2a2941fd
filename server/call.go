package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// call is one request while a handler works on it. It is also the handler's context.
type call struct {
	context.Context
	server *Server
	req    *mcp.Request
	params callParams
	task   *taskRun // not nil if the call is a task or may become one; set before the handler runs

	mu       sync.Mutex // guards the rest
	ended    bool
	input    *inputState // nil until the handler asks or remembers something
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

// callFrom returns the call of a handler's context, or nil for other contexts.
func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// RequestFrom returns the request that the handler is serving, or nil if ctx does not come from a
// handler. Do not modify it.
func RequestFrom(ctx context.Context) *mcp.Request {
	if c := callFrom(ctx); c != nil {
		return c.req
	}
	return nil
}

// callParams holds the members of params that all requests with a handler share. Raw values are nil
// if absent.
type callParams struct {
	name      []byte // the name or URI, unescaped
	arguments json.RawMessage
	responses json.RawMessage // an object
	state     []byte
	// retry reports that the request answers an input_required result, so its result must not be
	// cached.
	retry bool
}

var noArguments = json.RawMessage("{}")

// readParams reads the shared members. field is the name of the member that identifies the item.
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

// unescapeString returns the content of a raw JSON string. It copies only if the string has
// escapes.
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

// requestName returns the name or URI of the requested item, for the log.
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

// finish ends the call after its handler has returned: notifications that were held back are sent,
// later ones are refused. If questions are open, or the client must come back for a URL, it returns
// the result that says so and drops the handler's error.
func (c *call) finish(err error) (*mcp.Result, error) {
	c.mu.Lock()
	c.sendHeldBack()
	c.ended = true
	asked := c.input != nil && (len(c.input.openQuestions) > 0 || c.input.comeBack)
	asTask := c.isTask()
	c.mu.Unlock()
	switch {
	case !asked || c.Err() != nil:
		return nil, err
	case asTask:
		return askedInTask, nil
	}
	return c.inputRequired()
}

// endCall ends the call unless finish has. It waits for a notification that is being sent.
func (c *call) endCall() {
	if c.ended { // only this goroutine sets it
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

// sendNotification sends a notification of the call. The caller holds c.mu.
func (c *call) sendNotification(method string, params json.RawMessage) error {
	if c.ended || c.req.Peer == nil || c.isTask() {
		return mcp.ErrPeerGone
	}
	return c.req.Peer.Notify(c.Context, mcp.Notification{Method: method, Params: params})
}

// Disconnect closes the connection of the call's messages while the call continues; the client
// reconnects for later messages. A long call thereby frees a connection on both sides. Disconnect
// returns false and does nothing if the client would not reconnect, which is so everywhere but in
// legacy sessions over Streamable HTTP from 2025-11-25 on.
func Disconnect(ctx context.Context) bool {
	c := callFrom(ctx)
	if c == nil {
		return false
	}
	d, ok := c.req.Peer.(mcpwire.Disconnecter)
	return ok && d.Disconnect()
}

const codeInternal = jsonrpc.CodeInternal

// passThroughError returns the part of a handler's error that reaches the transport unchanged in
// every method: the end of the request, a protocol error or a missing capability. It returns nil
// for other errors.
func passThroughError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*mcp.CapabilityError](err); ok {
		return e
	}
	return nil
}

// handlerError converts the error of a handler that is not a tool. The transport sends a safe text,
// so the real text goes to the log.
func (c *call) handlerError(err error) error {
	if protocolErr := passThroughError(c.Context, err); protocolErr != nil {
		return protocolErr
	}
	if c.req.Method == mcp.MethodReadResource && errors.Is(err, fs.ErrNotExist) {
		return mcp.ResourceNotFound(string(c.params.name))
	}
	c.server.opts.Logger.WarnContext(c.Context, "a handler failed", "method", c.req.Method, "name", string(c.params.name), "err", err)
	return err
}
