package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// forwardRequest sends a request to an upstream, with these params, and returns what comes of it for the client.
func (g *Gateway) forwardRequest(ctx context.Context, u *hub.Upstream, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	noteUpstream(ctx, u, params)
	if !mcp.MayAsk(req.Method) || u.Info().Revision.Modern() {
		resp, err := u.RoundTrip(ctx, callerOf(req), upstreamRequest(req, params, notifier(ctx, req)))
		return clientResult(resp, err)
	}
	if b, err := g.parked.claimCall(u, req); b != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return b.resumeCall(ctx, req)
	}
	if declined := declinedURLElicitation(params); declined {
		return urlElicitationDeclined(req)
	}
	b := newBridge(g.core, u, req)
	return b.startCall(ctx, req, withoutAnswers(params))
}

// upstreamRequest is the request to the upstream that a client's becomes.
func upstreamRequest(req *mcp.Request, params json.RawMessage, notify func(mcp.Notification)) *mcp.Request {
	return &mcp.Request{
		Method: req.Method, Params: params, LogLevel: req.LogLevel, ClientCapabilities: req.ClientCapabilities,
		Notify: notify, NoProgress: req.ProgressToken == nil,
	}
}

// notifier returns what passes the notifications of a call on to its client.
func notifier(ctx context.Context, req *mcp.Request) func(mcp.Notification) {
	if req.Peer == nil {
		return nil
	}
	return func(n mcp.Notification) { passNotification(ctx, req, n) }
}

// passNotification passes on a notification: progress under the client's token, and log messages that it wants. An upstream of an older
// revision has one level for all its callers.
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
	}
	_ = req.Peer.Notify(ctx, n) // who has gone needs none
}

// callerOf is who calls, for upstreams that are not shared by all. The session is that of an older client: what a client of
// today sends as one has been verified by nobody.
func callerOf(req *mcp.Request) hub.Caller {
	who := hub.Caller{Principal: req.Principal.ID}
	if ids := req.Header[mcp.HeaderSessionID]; len(ids) > 0 && !req.Revision.Modern() {
		who.Session = ids[0]
	}
	return who
}

// clientResult is a response as the client gets it.
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

// clientError is an upstream's error as the client gets it.
func clientError(err error) (*mcp.Result, error) {
	var answered *mcp.Error
	if !errors.As(err, &answered) {
		return nil, err
	}
	switch answered.Code {
	case mcp.CodeURLElicitationRequired:
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

// askURLElicitations asks the client to visit what an upstream of 2025-11-25 wants to have visited (client/elicitation: URL mode required
// error). The retry calls the upstream anew.
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

// urlElicitationKey begins the keys of questions that visits asks.
const urlElicitationKey = "dowel-visit-"

// declinedURLElicitation reports whether the answers say that the user will not visit a URL.
func declinedURLElicitation(params json.RawMessage) bool {
	for it := rawjson.Object(rawjson.Lookup(params, "inputResponses")); it.Next(); {
		if len(it.Key) > len(urlElicitationKey) && string(it.Key[:len(urlElicitationKey)]) == urlElicitationKey &&
			!rawjson.Is(rawjson.Lookup(it.Value, "action"), string(mcp.ElicitAccept)) {
			return true
		}
	}
	return false
}

func urlElicitationDeclined(req *mcp.Request) (*mcp.Result, error) {
	const why = "the user did not agree to visit the URL that the server needs to have visited"
	if req.Method == mcp.MethodCallTool {
		return failedResult(why), nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, why)
}

// withoutAnswers leaves out what older revisions do not have.
func withoutAnswers(params json.RawMessage) json.RawMessage {
	for _, name := range []string{"inputResponses", "requestState"} {
		if rawjson.Lookup(params, name) != nil {
			params = rawjson.Set(params, name, nil)
		}
	}
	return params
}
