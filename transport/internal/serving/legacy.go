package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// This file implements era for a session: revisions 2025-11-25 and earlier.

// fillIdentity copies the client's identity, capabilities and log level into the request.
func (ss *session) fillIdentity(r *mcp.Request) {
	r.Revision, r.ClientCapabilities, r.ClientInfo = ss.Revision, ss.Capabilities, ss.ClientInfo
	r.LogLevel = ss.currentLevel()
}

func (ss *session) fillRequest(r *mcp.Request, f metaFields) *mcp.Error {
	ss.fillIdentity(r)
	switch r.Method {
	case mcp.MethodListen, mcp.MethodDiscover:
		return mcp.MethodNotFound(r.Method)
	case mcpwire.MethodUpdateTask:
		if ss.edge.tasks {
			return mcp.MethodNotFound(r.Method)
		}
	case mcpwire.MethodInitialize:
		return mcp.Errorf(jsonrpc.CodeInvalidRequest, "this session has been initialized already")
	}
	return f.setProgressToken(r)
}

func (ss *session) answerOwn(c *call) (*mcp.Result, error, bool) {
	ss.awaitGreeting(c.ctx)
	var refused *mcp.Error
	switch c.req.Method {
	case mcpwire.MethodPing:
	case mcpwire.MethodSetLevel, mcpwire.MethodSubscribe, mcpwire.MethodUnsubscribe:
		refused = ss.changeSession(c)
	case mcp.MethodCallTool:
		if !ss.wantsTask(&c.req) {
			return nil, nil, false
		}
		res, err := ss.callAsTask(c)
		return res, err, true
	case mcpwire.MethodGetTask, mcpwire.MethodTaskResult, mcpwire.MethodListTasks, mcpwire.MethodCancelTask:
		if !ss.hasTasks() {
			return nil, nil, false
		}
		res, err := ss.serveTask(c)
		return res, err, true
	default:
		return nil, nil, false
	}
	if refused != nil {
		return nil, refused, true
	}
	return &mcp.Result{}, nil, true
}

// changeSession handles the methods that change the session itself, if initialize has offered
// them.
func (ss *session) changeSession(c *call) (refused *mcp.Error) {
	switch method := c.req.Method; {
	case !ss.isOffered(method):
		refused = mcp.MethodNotFound(method)
	case method == mcpwire.MethodSetLevel:
		refused = ss.setLevel(c.req.Params)
	case method == mcpwire.MethodSubscribe:
		refused = ss.subscribe(c.ctx, c.req.Params, c.req.Header)
	default:
		var uri string
		if uri, refused = readURI(c.req.Params); refused == nil {
			ss.unsubscribe(uri)
		}
	}
	return refused
}

// isOffered reports whether the result of initialize offered the capability that method needs. It
// reports true if that result is not known in this process.
func (ss *session) isOffered(method string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch {
	case ss.offered == nil:
		return true
	case method == mcpwire.MethodSetLevel:
		return ss.offered.Logging != nil
	}
	return ss.offered.Resources != nil && ss.offered.Resources.Subscribe
}

func (ss *session) appendResult(dst []byte, c *call, res *mcp.Result) ([]byte, error) {
	if !isComplete(res.Type) {
		return dst, mcp.Errorf(jsonrpc.CodeInternal, "the result is of type %q, which revision %s does not have", res.Type, ss.Revision)
	}
	dst = frames.AppendResultHead(dst, c.id)
	at := len(dst)
	dst, err := frames.AppendResult(dst, res)
	if err != nil {
		return dst, err
	}
	if mayHoldEdgeMembers(res, dst[at:]) {
		dst = appendStripped(dst[:at], bytes.Clone(dst[at:]), edgeMemberFilter(c.req.Method, res.Type))
	}
	if adapted := mcpwire.AdaptResult(ss.Revision, c.req.Method, dst[at:]); len(adapted) == 0 || &adapted[0] != &dst[at] {
		dst = append(dst[:at], adapted...)
	}
	return append(dst, '}'), nil
}

// appendStripped appends the result without the parts that only later revisions have: the members
// that drop reports, and the protocol's keys in _meta.
func appendStripped(dst, raw []byte, drop func(key []byte) bool) []byte {
	at := len(dst)
	dst, _ = rawjson.AppendMembers(append(dst, '{'), raw, func(key []byte) bool { return string(key) != "_meta" && drop(key) })
	dst = append(dst, '}')
	own := rawjson.Lookup(dst[at:], "_meta")
	if rawjson.Lookup(own, mcpwire.MetaServerInfo) == nil && rawjson.Lookup(own, mcpwire.MetaSubscriptionID) == nil {
		return dst
	}
	kept, any := rawjson.AppendMembers([]byte{'{'}, own, func(key []byte) bool {
		return string(key) == mcpwire.MetaServerInfo || string(key) == mcpwire.MetaSubscriptionID
	})
	if kept = append(kept, '}'); !any {
		kept = nil
	}
	return append(dst[:at], rawjson.Set(dst[at:], "_meta", kept)...)
}

func (ss *session) encodeError(r *mcp.Request, err error) (*mcp.Result, *mcp.Error) {
	var capability *mcp.CapabilityError
	var unanswered *unansweredError
	var protocol *mcp.Error
	switch {
	case errors.As(err, &capability):
		return errorForModel(r, capability)
	case errors.As(err, &unanswered):
		return errorForModel(r, unanswered)
	case errors.As(err, &protocol):
		return nil, toLegacyError(r, protocol)
	}
	ss.edge.logFailure(r, err)
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "internal error")
}

// errorForModel returns an error without a code in legacy revisions: as the text of a tool
// result, which reaches the model, or as an invalid request.
func errorForModel(r *mcp.Request, err error) (*mcp.Result, *mcp.Error) {
	if r.Method == mcp.MethodCallTool {
		return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(err.Error())}, IsError: true}}, nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "%s", err)
}

// toLegacyError replaces codes that the session's revision does not define.
func toLegacyError(r *mcp.Request, e *mcp.Error) *mcp.Error {
	switch {
	case e.Code == jsonrpc.CodeInvalidParams && isResourceMethod(r.Method) && rawjson.Lookup(e.Data, "uri") != nil:
		return &mcp.Error{Code: mcp.CodeResourceNotFound, Message: e.Message, Data: e.Data}
	case e.Code <= mcp.CodeHeaderMismatch && e.Code >= mcp.CodeUnsupportedProtocolVersion:
		return &mcp.Error{Code: jsonrpc.CodeInvalidRequest, Message: e.Message, Data: e.Data}
	case e.Code == mcpwire.CodeURLElicitationRequired && r.Revision < mcp.Revision20251125:
		return &mcp.Error{Code: jsonrpc.CodeInternal, Message: e.Message, Data: e.Data}
	}
	return e
}

func isResourceMethod(method string) bool {
	return method == mcp.MethodReadResource || method == mcpwire.MethodSubscribe
}

func (ss *session) appendChange(dst []byte, _ *call, change mcp.Notification) []byte {
	return jsonrpc.AppendNotification(dst, change.Method, change.Params)
}

func (ss *session) appendEnd([]byte, *call) []byte { return nil }

// resolveInput asks the client the questions of res and returns the request with its answers.
func (ss *session) resolveInput(ctx context.Context, c *call, round int, res *mcp.Result) (*mcp.Request, error) {
	if !mcpwire.MayAsk(c.req.Method) {
		return nil, fmt.Errorf("the handler asked for input where the protocol has no way to: %s", c.req.Method)
	}
	asked, err := decodeInputRequired(res)
	if err == nil {
		err = checkAskable(c, asked)
	}
	if err != nil {
		return nil, err
	}
	answers, err := ss.askUnlessAnswered(ctx, c, asked.InputRequests)
	if errors.Is(err, errAnsweredElsewhere) {
		return retryRequest(&c.req, map[string]json.RawMessage{}, asked.RequestState)
	}
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 {
		if err := waitBeforeRetry(ctx, round); err != nil {
			return nil, err
		}
	}
	return retryRequest(&c.req, answers, asked.RequestState)
}

// checkAskable returns an error if the client has not declared the capability for one of the
// questions. It catches handlers that have not checked themselves.
func checkAskable(c *call, asked *mcp.InputRequiredResult) error {
	var needs mcp.ClientCapabilities
	for key, q := range asked.InputRequests {
		own, known := mcpwire.Vocabulary(c.edge.opts.Extensions).InputRequest(q)
		if !known {
			return fmt.Errorf("the input request %s is %s, which no extension of the server knows", key, q.Method)
		}
		if q.Method == mcp.MethodCreateMessage && c.req.Revision < mcp.Revision20251125 {
			own.Sampling.Context = nil // no capability for context before 2025-11-25: sampling includes it
		}
		needs = mcpwire.MergeCapabilities(needs, own)
	}
	if missing, any := mcpwire.MissingCapabilities(c.req.Capabilities(), needs); any {
		return &mcp.CapabilityError{Required: missing}
	}
	return nil
}

func decodeInputRequired(res *mcp.Result) (*mcp.InputRequiredResult, error) {
	if asked, ok := res.Value.(*mcp.InputRequiredResult); ok {
		return asked, nil
	}
	var asked mcp.InputRequiredResult
	raw, err := frames.AppendResult(nil, res)
	if err == nil {
		err = mcp.Decode(raw, &asked)
	}
	return &asked, err
}

// errAnsweredElsewhere withdraws live questions.
var errAnsweredElsewhere = errors.New("the question was answered elsewhere")

// askUnlessAnswered is askQuestions until the handler says that the questions are answered
// elsewhere (call.WithdrawWhen). Then it withdraws the open one and returns errAnsweredElsewhere.
func (ss *session) askUnlessAnswered(ctx context.Context, c *call, questions map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
	answered := c.answered
	c.answered = nil
	if answered == nil {
		return ss.askQuestions(ctx, c, questions)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	defer close(watched)
	go func() {
		select {
		case <-answered:
			cancel(errAnsweredElsewhere)
		case <-watched:
		}
	}()
	return ss.askQuestions(ctx, c, questions)
}

// askQuestions asks one question after the other, in the order of their keys, because one human
// answers all of them.
func (ss *session) askQuestions(ctx context.Context, c *call, questions map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
	answers := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		answer, err := ss.askClient(ctx, c, questions[key])
		if err != nil {
			return nil, err
		}
		answers[key] = answer
	}
	return answers, nil
}

// waitBeforeRetry waits before a retry without new answers: 50 ms in round 0, doubling up to 5 s.
func waitBeforeRetry(ctx context.Context, round int) error {
	return timeout.Sleep(ctx, min(50*time.Millisecond<<round, 5*time.Second))
}

// retryRequest returns a copy of r that carries the answers and the request state.
func retryRequest(r *mcp.Request, answers map[string]json.RawMessage, state *string) (*mcp.Request, error) {
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
