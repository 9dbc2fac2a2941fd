package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// loginKey is the key of the question that sends a user to the login at an upstream.
const loginKey = urlElicitationKey + "login"

// forwardRequest sends a request with these params to an upstream, and returns the result or the
// error for the client. If the upstream wants a login of the client's user, the client is asked to
// open the page for it ([Options.Login]). Its repeated request waits until the user has logged in.
func (g *Gateway) forwardRequest(ctx context.Context, u *hub.Upstream, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	if answer := rawjson.Lookup(rawjson.Lookup(params, "inputResponses"), loginKey); answer != nil && g.opts.Login != nil {
		if !rawjson.Is(rawjson.Lookup(answer, "action"), string(mcp.ElicitAccept)) {
			return urlElicitationDeclined(req)
		}
		if _, err := g.opts.Login(ctx, u.Name(), true); err != nil {
			return loginFailed(ctx, u, req)
		}
		params = withoutLoginAnswer(params)
	}
	res, err := g.forwardNamed(ctx, u, req, params)
	if err != nil && g.opts.Login != nil && needsUserLogin(err) {
		return g.askLogin(ctx, u, req, err)
	}
	return res, err
}

// needsUserLogin reports whether the connection of a user fails for lack of a login. An upstream
// that is down for all waits for the login of its owner.
func needsUserLogin(err error) bool {
	var refused *httpwire.RefusalError
	var down *hub.DownError
	return errors.As(err, &refused) && refused.NeedsLogin && !errors.As(err, &down)
}

// askLogin asks the client to open the page on which its user logs in at an upstream. A client that
// cannot be asked gets the address as text.
func (g *Gateway) askLogin(ctx context.Context, u *hub.Upstream, req *mcp.Request, failed error) (*mcp.Result, error) {
	address, err := g.opts.Login(ctx, u.Name(), false)
	if err != nil {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the server %s needs your login, which cannot begin: %s", u.Name(), err)
	}
	if address == "" {
		return nil, failed
	}
	if can := req.Capabilities().Elicitation; can == nil || can.URL == nil || !mcpwire.MayAsk(req.Method) {
		text := "the server " + u.Name() + " needs the login of the user: open " + address + " in a browser, log in, and try again"
		if req.Method == mcp.MethodCallTool {
			return failedResult(text), nil
		}
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", text)
	}
	question, err := json.Marshal(mcp.ElicitParams{
		Mode: "url", Message: "The server " + u.Name() + " needs your login. Open the page, log in there, and come back.", URL: address,
	})
	if err != nil {
		return nil, err
	}
	return &mcp.Result{Type: mcp.ResultInputRequired, Value: &mcp.InputRequiredResult{
		InputRequests: map[string]mcp.InputRequest{loginKey: {Method: mcp.MethodElicit, Params: question}},
	}}, nil
}

// loginFailed returns the answer to a request whose user has not logged in.
func loginFailed(ctx context.Context, u *hub.Upstream, req *mcp.Request) (*mcp.Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	text := "the login at the server " + u.Name() + " was not made: call again to get another page for it"
	if req.Method == mcp.MethodCallTool {
		return failedResult(text), nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", text)
}

// withoutLoginAnswer removes the answer to the question about the login, which is not the
// upstream's.
func withoutLoginAnswer(params json.RawMessage) json.RawMessage {
	answers := rawjson.Set(rawjson.Lookup(params, "inputResponses"), loginKey, nil)
	for it := rawjson.Object(answers); it.Next(); {
		return rawjson.Replace(params, "inputResponses", answers)
	}
	return rawjson.Set(params, "inputResponses", nil)
}
