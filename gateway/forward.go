package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// forwardNamed is forwardRequest without logins. Questions name the upstream, unless that is a
// gateway, which has named its own.
func (g *Gateway) forwardNamed(ctx context.Context, u *hub.Upstream, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	res, err := g.forwardToUpstream(ctx, u, req, params)
	if err == nil && res.Type == mcp.ResultInputRequired && !g.relays {
		res = nameAsker(u.Name(), res)
	}
	return res, err
}

// forwardToUpstream is forwardNamed with questions as the upstream has sent them. A legacy
// upstream may ask live, so its call gets a bridge.
func (g *Gateway) forwardToUpstream(ctx context.Context, u *hub.Upstream, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	if err := g.checkScopes(ctx, u.Name(), req); err != nil {
		return nil, err
	}
	noteUpstream(ctx, u, params)
	if !mcpwire.MayAsk(req.Method) {
		resp, err := u.RoundTrip(ctx, callerOf(req), upstreamRequest(req, params, notifier(ctx, req)))
		return clientResult(resp, err)
	}
	if res, err, isRetry := g.continueOwned(ctx, u, req, params); isRetry {
		return res, err
	}
	modern := u.Server().Revision.Modern()
	if modern && !asksForTask(req) && !g.parked.ownsState(u, req) {
		if g.opts.TaskAfter > 0 && mayGetTask(req) {
			return g.forwardSlowRound(ctx, u, req, params)
		}
		res, err := g.forwardRound(ctx, u, req, params)
		if !needsTask(u, req, err) {
			return res, err
		}
	}
	if res, err, isRetry := g.parked.continueCall(ctx, u, req); isRetry {
		return res, err
	}
	if declined := declinedURLElicitation(params); declined {
		return urlElicitationDeclined(req)
	}
	b := newBridge(ctx, g.core, u, req)
	b.answersAll = modern
	if mayGetTask(req) {
		b.allowTask(nameOf(params))
	}
	if asksForTask(req) { // before the tool has an effect: its result would be lost
		if err := g.hosted.reserveRoom(b, req.Principal.ID); err != nil {
			return nil, err
		}
	}
	if modern {
		b.taskCreated()
	}
	return b.startCall(ctx, req, g.callParams(u, req, withoutAnswers(params)))
}

// callParams returns the params of a call at an upstream. They ask for a task if the client may get
// one and the upstream is of 2025-11-25; other upstreams get no sign of the tasks of that revision.
func (g *Gateway) callParams(u *hub.Upstream, req *mcp.Request, params json.RawMessage) json.RawMessage {
	asks := rawjson.Lookup(params, "task") != nil
	switch {
	case req.Method != mcp.MethodCallTool:
	case hasTasks(u) && !u.Server().Revision.Modern() && mayGetTask(req):
		if !asks {
			return rawjson.Set(params, "task", []byte("{}"))
		}
	case asks:
		return rawjson.Set(params, "task", nil)
	}
	return params
}

// forwardRound sends a request that may ask to a modern upstream. The upstream takes all clients
// for one and cannot bind its request state to a client. So the gateway seals the state for the
// principal, if the client has one: no other client can continue the call.
func (g *Gateway) forwardRound(ctx context.Context, u *hub.Upstream, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	params, err := g.openRound(u, req, params)
	if err != nil {
		return nil, err
	}
	resp, err := u.RoundTrip(ctx, callerOf(req), upstreamRequest(req, params, notifier(ctx, req)))
	res, err := clientResult(resp, err)
	return g.sealRound(u, req, params, res, err)
}

// forwardSlowRound is forwardRound for a call that becomes a task of the gateway's own if it takes
// longer than [Options] say.
func (g *Gateway) forwardSlowRound(ctx context.Context, u *hub.Upstream, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	params, err := g.openRound(u, req, params)
	if err != nil {
		return nil, err
	}
	b := newBridge(ctx, g.core, u, req)
	b.answersAll, b.passesRounds = true, true
	b.allowTask(nameOf(params))
	res, err := b.startCall(ctx, req, params)
	if b.hostedTask() != nil {
		return res, err
	}
	return g.sealRound(u, req, params, res, err)
}

// openRound returns the params of a request of [Gateway.forwardRound] with the upstream's state.
func (g *Gateway) openRound(u *hub.Upstream, req *mcp.Request, params json.RawMessage) (json.RawMessage, error) {
	raw := rawjson.Lookup(params, "requestState")
	if req.Principal.ID == "" || raw == nil || g.isOwner {
		return params, nil
	}
	text, _ := rawjson.String(raw)
	state, err := g.states.Open(text, requestDigest(u, req))
	if err != nil {
		return nil, errNotOurState(req)
	}
	return rawjson.Replace(params, "requestState", rawjson.AppendString(nil, string(state))), nil
}

// sealRound returns the outcome of a request of [Gateway.forwardRound] for the client.
func (g *Gateway) sealRound(u *hub.Upstream, req *mcp.Request, params json.RawMessage, res *mcp.Result, err error) (*mcp.Result, error) {
	if err == nil && res.Type == mcpwire.ResultTask {
		return g.shareTask(u, req, nameOf(params), res)
	}
	if err != nil || req.Principal.ID == "" || g.isOwner || res.Type != mcp.ResultInputRequired {
		return res, err
	}
	if raw := rawjson.Lookup(res.Raw, "requestState"); raw != nil {
		state, _ := rawjson.String(raw)
		sealed := g.states.Seal([]byte(state), requestDigest(u, req))
		res.Raw = rawjson.Replace(res.Raw, "requestState", rawjson.AppendString(nil, sealed))
	}
	return res, nil
}

// upstreamRequest returns the request to an upstream for a client's request.
func upstreamRequest(req *mcp.Request, params json.RawMessage, notify func(mcp.Notification)) *mcp.Request {
	capabilities := req.ClientCapabilities
	if !mayHaveTasks(req) {
		capabilities = withoutTasks(capabilities)
	}
	return &mcp.Request{
		Method: req.Method, Params: params, LogLevel: req.LogLevel, ClientCapabilities: capabilities,
		Notify: notify, NoProgress: req.ProgressToken == nil, Header: req.Header,
	}
}

// withoutTasks removes the extension of tasks from a client's capabilities.
func withoutTasks(capabilities json.RawMessage) json.RawMessage {
	extensions := rawjson.Lookup(capabilities, "extensions")
	if rawjson.Lookup(extensions, mcpwire.ExtensionTasks) == nil {
		return capabilities
	}
	return rawjson.Set(capabilities, "extensions", rawjson.Set(extensions, mcpwire.ExtensionTasks, nil))
}

// notifier returns the function that passes notifications of a call to its client; nil if the
// client cannot receive any, or has asked for neither progress nor log messages and has no
// extension.
func notifier(ctx context.Context, req *mcp.Request) func(mcp.Notification) {
	if req.Peer == nil || req.ProgressToken == nil && req.LogLevel == "" && !hasOwnExtensions(req) {
		return nil
	}
	return func(n mcp.Notification) { passNotification(ctx, req, n) }
}

// hasOwnExtensions reports whether the client has declared an extension or an experimental feature
// that the gateway does not know, and which may have notifications.
func hasOwnExtensions(req *mcp.Request) bool {
	for it := rawjson.Object(rawjson.Lookup(req.ClientCapabilities, "extensions")); it.Next(); {
		if string(it.Key) != mcpwire.ExtensionTasks {
			return true
		}
	}
	features := rawjson.Object(rawjson.Lookup(req.ClientCapabilities, "experimental"))
	return features.Next()
}

// passNotification passes a notification to the client: progress under the client's token, log
// messages of the level it asked for, and others if the client has extensions of its own. The level
// must be checked here, because a legacy upstream has one level for all its callers.
func passNotification(ctx context.Context, req *mcp.Request, n mcp.Notification) {
	switch n.Method {
	case mcp.NotificationProgress:
		if req.ProgressToken == nil {
			return
		}
		n.Params = rawjson.Replace(n.Params, "progressToken", req.ProgressToken)
	case mcp.NotificationMessage:
		level, _ := rawjson.String(rawjson.Lookup(n.Params, "level"))
		if req.LogLevel == "" || mcp.LoggingLevel(level).Severity() < req.LogLevel.Severity() {
			return
		}
	default:
		if !hasOwnExtensions(req) {
			return
		}
	}
	_ = req.Peer.Notify(ctx, n) // a client that is gone needs no notification
}

// callerOf returns the caller of a request for upstreams that are not shared by all. Only legacy
// session headers count, because session headers of modern clients are unauthenticated.
func callerOf(req *mcp.Request) hub.Caller {
	caller := hub.Caller{Principal: req.Principal.ID}
	if ids := req.Header[mcpwire.HeaderSessionID]; len(ids) > 0 && !req.Revision.Modern() {
		caller.Session = ids[0]
	}
	return caller
}

// clientResult returns an upstream's response as a result for the client.
func clientResult(resp *mcp.Response, err error) (*mcp.Result, error) {
	if err != nil {
		return clientError(err)
	}
	res := &mcp.Result{Raw: resp.Raw, Cache: resp.Cache}
	if resp.Type != mcp.ResultComplete {
		res.Type = resp.Type
	}
	return res, nil
}

// clientError returns an upstream's error as a result or an error for the client.
func clientError(err error) (*mcp.Result, error) {
	var answered *mcp.Error
	if !errors.As(err, &answered) {
		return nil, err
	}
	switch answered.Code {
	case mcpwire.CodeURLElicitationRequired:
		return askURLElicitations(answered)
	case mcp.CodeMissingCapability:
		var data struct {
			Required mcp.ClientCapabilities `json:"requiredCapabilities"`
		}
		if mcp.Decode(answered.Data, &data) == nil {
			return nil, &mcp.CapabilityError{Required: data.Required}
		}
	}
	return nil, answered
}

// askURLElicitations asks the client to open the URLs of error -32042, with which an upstream of
// 2025-11-25 says that a user must open them first (specification page client/elicitation). The
// repeated request calls the upstream again.
func askURLElicitations(e *mcp.Error) (*mcp.Result, error) {
	asked := &mcp.InputRequiredResult{InputRequests: map[string]mcp.InputRequest{}}
	n := 0
	for it := rawjson.Array(rawjson.Lookup(e.Data, "elicitations")); it.Next(); n++ {
		params := rawjson.Set(it.Value, "elicitationId", nil)
		asked.InputRequests[fmt.Sprintf("%s%d", urlElicitationKey, n)] = mcp.InputRequest{Method: mcp.MethodElicit, Params: params}
	}
	if n == 0 {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", e.Message)
	}
	return &mcp.Result{Type: mcp.ResultInputRequired, Value: asked}, nil
}

// urlElicitationKey begins the keys of questions of askURLElicitations.
const urlElicitationKey = "dowel-visit-"

// declinedURLElicitation reports whether the answers decline to open a URL.
func declinedURLElicitation(params json.RawMessage) bool {
	for it := rawjson.Object(rawjson.Lookup(params, "inputResponses")); it.Next(); {
		if len(it.Key) > len(urlElicitationKey) && string(it.Key[:len(urlElicitationKey)]) == urlElicitationKey &&
			!rawjson.Is(rawjson.Lookup(it.Value, "action"), string(mcp.ElicitAccept)) {
			return true
		}
	}
	return false
}

// errURLDeclined says why a call has failed after the user has declined to open a URL.
const errURLDeclined = "the user did not agree to open the URL that the server requires"

// urlElicitationDeclined returns the result after the user has declined to open a URL.
func urlElicitationDeclined(req *mcp.Request) (*mcp.Result, error) {
	if req.Method == mcp.MethodCallTool {
		return failedResult(errURLDeclined), nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, errURLDeclined)
}

// withoutAnswers removes the answers and the state from params, which legacy revisions do not have.
func withoutAnswers(params json.RawMessage) json.RawMessage {
	for _, name := range []string{"inputResponses", "requestState"} {
		if rawjson.Lookup(params, name) != nil {
			params = rawjson.Set(params, name, nil)
		}
	}
	return params
}
