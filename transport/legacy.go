package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// The session as an era: what a legacy client (2025-11-25 and earlier) sends and gets.

// fill gives a request what the session knows of its client.
func (ss *session) fill(r *mcp.Request) {
	r.Revision, r.ClientCapabilities, r.ClientInfo = ss.Revision, ss.Capabilities, ss.ClientInfo
	r.LogLevel = ss.level()
}

func (ss *session) request(r *mcp.Request, f metaFields) *mcp.Error {
	ss.fill(r)
	switch r.Method {
	case mcp.MethodListen, mcp.MethodDiscover:
		return mcp.MethodNotFound(r.Method)
	case mcp.MethodInitialize:
		return mcp.Errorf(jsonrpc.CodeInvalidRequest, "this session has been initialized already")
	}
	return f.progress(r)
}

func (ss *session) own(c *call) (*mcp.Result, error, bool) {
	var refused *mcp.Error
	switch c.req.Method {
	case mcp.MethodPing:
	case mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		refused = ss.change(c)
	default:
		return nil, nil, false
	}
	if refused != nil {
		return nil, refused, true
	}
	return &mcp.Result{}, nil, true
}

// change is what a client asks of the session itself, where it was offered.
func (ss *session) change(c *call) (refused *mcp.Error) {
	switch method := c.req.Method; {
	case !ss.offered(method):
		refused = mcp.MethodNotFound(method)
	case method == mcp.MethodSetLevel:
		refused = ss.setLevel(c.req.Params)
	case method == mcp.MethodSubscribe:
		refused = ss.subscribe(c.ctx, c.req.Params, c.req.Header)
	default:
		var uri string
		if uri, refused = uriOf(c.req.Params); refused == nil {
			ss.unsubscribe(uri)
		}
	}
	return refused
}

// offered reports whether initialize told the client of a capability that the method belongs to, as far as that is known.
func (ss *session) offered(method string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch {
	case ss.offers == nil:
		return true
	case method == mcp.MethodSetLevel:
		return ss.offers.Logging != nil
	}
	return ss.offers.Resources != nil && ss.offers.Resources.Subscribe
}

func (ss *session) appendResult(dst []byte, c *call, res *mcp.Result) ([]byte, error) {
	if !complete(res.Type) {
		return dst, mcp.Errorf(jsonrpc.CodeInternal, "the result is of type %q, which revision %s does not have", res.Type, ss.Revision)
	}
	dst = jsonrpc.AppendResultHead(dst, c.id)
	at := len(dst)
	dst, err := rawBody(dst, res)
	if err != nil {
		return dst, err
	}
	if foreign(res, dst[at:]) {
		dst = appendPlain(dst[:at], bytes.Clone(dst[at:]), edgeMembers(c.req.Method, res.Type))
	}
	if adapted := mcpwire.AdaptResult(ss.Revision, c.req.Method, dst[at:]); len(adapted) == 0 || &adapted[0] != &dst[at] {
		dst = append(dst[:at], adapted...)
	}
	return append(dst, '}'), nil
}

// appendPlain appends a result without what only later revisions put into one: the members that drop names, and the
// protocol's keys of its _meta.
func appendPlain(dst, raw []byte, drop func(key []byte) bool) []byte {
	at := len(dst)
	dst, _ = rawjson.AppendMembers(append(dst, '{'), raw, func(key []byte) bool { return string(key) != "_meta" && drop(key) })
	dst = append(dst, '}')
	own := rawjson.Lookup(dst[at:], "_meta")
	if rawjson.Lookup(own, mcp.MetaServerInfo) == nil && rawjson.Lookup(own, mcp.MetaSubscriptionID) == nil {
		return dst
	}
	kept, any := rawjson.AppendMembers([]byte{'{'}, own, func(key []byte) bool {
		return string(key) == mcp.MetaServerInfo || string(key) == mcp.MetaSubscriptionID
	})
	if kept = append(kept, '}'); !any {
		kept = nil
	}
	return append(dst[:at], rawjson.Set(dst[at:], "_meta", kept)...)
}

func (ss *session) refuse(r *mcp.Request, err error) (*mcp.Result, *mcp.Error) {
	var capability *mcp.CapabilityError
	var unanswered *askError
	var protocol *mcp.Error
	switch {
	case errors.As(err, &capability):
		return tellModel(r, capability)
	case errors.As(err, &unanswered):
		return tellModel(r, unanswered)
	case errors.As(err, &protocol):
		return nil, legacyError(r, protocol)
	}
	ss.edge.logFailure(r, err)
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "internal error")
}

// tellModel gives a model an error for which legacy revisions have no code.
func tellModel(r *mcp.Request, err error) (*mcp.Result, *mcp.Error) {
	if r.Method == mcp.MethodCallTool {
		return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(err.Error())}, IsError: true}}, nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "%s", err)
}

// legacyError gives an error the code that legacy revisions have for it.
func legacyError(r *mcp.Request, e *mcp.Error) *mcp.Error {
	switch {
	case e.Code == jsonrpc.CodeInvalidParams && namesResource(r.Method) && rawjson.Lookup(e.Data, "uri") != nil:
		return &mcp.Error{Code: mcp.CodeResourceNotFound, Message: e.Message, Data: e.Data}
	case e.Code <= mcp.CodeHeaderMismatch && e.Code >= mcp.CodeUnsupportedProtocolVersion:
		return &mcp.Error{Code: jsonrpc.CodeInvalidRequest, Message: e.Message, Data: e.Data}
	case e.Code == mcp.CodeURLElicitationRequired && r.Revision < mcp.Revision20251125:
		return &mcp.Error{Code: jsonrpc.CodeInternal, Message: e.Message, Data: e.Data}
	}
	return e
}

func namesResource(method string) bool {
	return method == mcp.MethodReadResource || method == mcp.MethodSubscribe
}

func (ss *session) appendChange(dst []byte, _ *call, change mcp.Change) []byte {
	return jsonrpc.AppendNotification(dst, change.Method, change.Params)
}

func (ss *session) ended([]byte, *call) []byte { return nil }

// settle asks the client live and returns the request with its answers.
func (ss *session) settle(ctx context.Context, c *call, round int, res *mcp.Result) (*mcp.Request, error) {
	if !mcp.MayAsk(c.req.Method) {
		return nil, fmt.Errorf("the handler asked for input where the protocol has no way to: %s", c.req.Method)
	}
	asked, err := inputRequired(res)
	if err == nil {
		err = askable(c, asked)
	}
	if err != nil {
		return nil, err
	}
	answers, err := ss.askAll(ctx, c, asked.InputRequests)
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 {
		if err := pause(ctx, round); err != nil {
			return nil, err
		}
	}
	return retry(&c.req, answers, asked.RequestState)
}

// askable refuses questions that the client has not declared that it answers, whoever forgot to look.
func askable(c *call, asked *mcp.InputRequiredResult) error {
	var needs mcp.ClientCapabilities
	for key, q := range asked.InputRequests {
		own, known := c.edge.opts.Vocabulary.InputRequest(q)
		if !known {
			return fmt.Errorf("the input request %s is %s, which no extension of the server knows", key, q.Method)
		}
		if q.Method == mcp.MethodCreateMessage && c.req.Revision < mcp.Revision20251125 {
			own.Sampling.Context = nil // any client with sampling may be asked for context: there was nothing to declare
		}
		needs = needs.And(own)
	}
	if missing, any := mcp.Missing(c.req.Capabilities(), needs); any {
		return &mcp.CapabilityError{Required: missing}
	}
	return nil
}

func inputRequired(res *mcp.Result) (*mcp.InputRequiredResult, error) {
	if asked, ok := res.Value.(*mcp.InputRequiredResult); ok {
		return asked, nil
	}
	var asked mcp.InputRequiredResult
	raw, err := rawBody(nil, res)
	if err == nil {
		err = mcp.Decode(raw, &asked)
	}
	return &asked, err
}

// askAll asks one question after the other, in the order of their keys: a human answers.
func (ss *session) askAll(ctx context.Context, c *call, questions map[string]mcp.InputRequest) (map[string]mcp.Object, error) {
	answers := map[string]mcp.Object{}
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		answer, err := ss.ask(ctx, c, questions[key])
		if err != nil {
			return nil, err
		}
		answers[key] = answer
	}
	return answers, nil
}

// pause waits before a retry that brings nothing new, longer each time.
func pause(ctx context.Context, round int) error {
	timer := time.NewTimer(min(50*time.Millisecond<<round, 5*time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retry returns a copy of the request that carries the answers and the state.
func retry(r *mcp.Request, answers map[string]mcp.Object, state *string) (*mcp.Request, error) {
	next := *r
	encoded, err := mcp.Encode(answers)
	if err != nil {
		return nil, err
	}
	next.Params = rawjson.Set(r.Params, "inputResponses", encoded)
	var sealed []byte
	if state != nil {
		sealed = rawjson.AppendString(nil, *state)
	}
	next.Params = rawjson.Set(next.Params, "requestState", sealed)
	next.Meta = rawjson.Lookup(next.Params, "_meta")
	return &next, nil
}
