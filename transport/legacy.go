package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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
	case mcp.MethodSetLevel:
		refused = ss.setLevel(c.req.Params)
	case mcp.MethodSubscribe:
		refused = ss.subscribe(c.ctx, c.req.Params)
	case mcp.MethodUnsubscribe:
		uri, bad := uriOf(c.req.Params)
		if refused = bad; refused == nil {
			ss.unsubscribe(uri)
		}
	default:
		return nil, nil, false
	}
	if refused != nil {
		return nil, refused, true
	}
	return &mcp.Result{}, nil, true
}

func (ss *session) appendResult(dst []byte, c *call, res *mcp.Result) ([]byte, error) {
	dst = jsonrpc.AppendResultHead(dst, c.id)
	at := len(dst)
	dst, err := rawBody(dst, res)
	if err != nil {
		return dst, err
	}
	if res.Raw != nil {
		clean, _ := rawjson.AppendMembers([]byte{'{'}, res.Raw, func(key []byte) bool {
			return edgeMember(key) && string(key) != "_meta"
		})
		dst = append(append(dst[:at], clean...), '}')
	}
	if adapted := mcp.AdaptResult(ss.Revision, c.req.Method, dst[at:]); len(adapted) == 0 || &adapted[0] != &dst[at] {
		dst = append(dst[:at], adapted...)
	}
	return append(dst, '}'), nil
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
