package sharedserver

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// metaPrincipal is the key of _meta with the principal of a request between two replicas:
// the id, a string. The owner removes it. It trusts the other replica, whose gateway has
// verified the principal.
const metaPrincipal = "dowel/principal"

// remoteTransport is a transport to the owner of a server. It passes the principals of requests on,
// and removes the ids of requests from log messages.
type remoteTransport struct{ connTransport }

// RoundTrip implements [mcp.Transport].
func (t *remoteTransport) RoundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	req = writePrincipal(req)
	if notify := req.Notify; notify != nil && req.LogLevel != "" {
		own := *req
		own.Notify = func(n mcp.Notification) {
			if n.Method == mcp.NotificationMessage {
				n.Params = mcpwire.NameRequest(n.Params, nil)
			}
			notify(n)
		}
		req = &own
	}
	return t.connTransport.RoundTrip(ctx, req)
}

// writePrincipal returns the request with its principal in _meta, in place of one that its client
// has written.
func writePrincipal(req *mcp.Request) *mcp.Request {
	if req.Principal.ID == "" && rawjson.Lookup(rawjson.Lookup(req.Params, "_meta"), metaPrincipal) == nil {
		return req
	}
	var id []byte
	if req.Principal.ID != "" {
		id = rawjson.AppendString(nil, req.Principal.ID)
	}
	own := *req
	own.Params = mcpwire.SetMeta(req.Params, metaPrincipal, id)
	return &own
}

// readPrincipals is a middleware that moves the principals of requests from _meta to their place.
func readPrincipals(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		raw := rawjson.Lookup(req.Meta, metaPrincipal)
		if raw == nil {
			return next.ServeMCP(ctx, req)
		}
		own := *req
		own.Principal.ID, _ = rawjson.String(raw)
		own.Meta = rawjson.Set(req.Meta, metaPrincipal, nil)
		own.Params = rawjson.Set(req.Params, "_meta", own.Meta)
		return next.ServeMCP(ctx, &own)
	})
}
