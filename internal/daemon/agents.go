package daemon

import (
	"context"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
)

// AgentHub is the part of a daemon that agents in its process use.
type AgentHub struct {
	// Handler serves the gateway. Calls are recorded, limited and audited like calls of other
	// clients. Servers ask the agent, and its user answers in Asks.
	Handler mcp.Handler
	// RecordDial returns the context of a dial to Handler, whose messages are recorded.
	RecordDial func(context.Context) context.Context
	Hub        *hub.Hub
	Asks       *control.Asks
	Audit      *audit.Log
	// Restart restarts a server.
	Restart func(ctx context.Context, server string) error
}

// hostAgents lets users begin conversations in this process.
func (d *Daemon) hostAgents() {
	if d.chats == nil || d.options.Agents == nil {
		return
	}
	d.chats.Host = d.options.Agents(&AgentHub{
		Handler:    mcp.Chain(d.gateway, d.middleware(d.limits())...),
		RecordDial: func(ctx context.Context) context.Context { return d.recordClient(ctx, nil) },
		Hub:        d.Hub, Asks: d.calls.Asks, Audit: d.trail.Log,
		Restart: func(ctx context.Context, server string) error { return d.Do(ctx, server, "restart") },
	})
}

// NameClient names the client of the requests that come without a principal. name is called for
// each request; nil names none.
func NameClient(name func() string) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if name == nil || req.Principal.ID != "" {
				return next.ServeMCP(ctx, req)
			}
			named := *req
			named.Principal = mcp.Principal{ID: name()}
			return next.ServeMCP(ctx, &named)
		})
	}
}
