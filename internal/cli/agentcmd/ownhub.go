package agentcmd

import (
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/mcp"
)

// openOwnHub uses the servers of the running dowel, which is this process.
func openOwnHub(h *daemon.AgentHub, name *clientName) *serverSet {
	return &serverSet{
		handler: mcp.Chain(h.Handler, daemon.NameClient(name.currentName)), recordDial: h.RecordDial, restart: h.Restart, accept: acceptIn(h.Hub), close: func(context.Context) {},
		listServers:  func(context.Context) ([]Server, error) { return control.DescribeAll(h.Hub), nil },
		followFrames: func(context.Context, func(*journal.Frame)) error { return errors.New("the journal is in the console") },
	}
}

// acceptChange accepts the definition of a tool, as the user was asked about it.
func (s *serverSet) acceptChange(server string, change client.DefinitionChange) error {
	return s.accept(context.Background(), server, change)
}

// acceptIn returns a function that accepts definitions of the servers of a hub of this process.
func acceptIn(h *hub.Hub) func(context.Context, string, client.DefinitionChange) error {
	return func(_ context.Context, server string, change client.DefinitionChange) error {
		u := h.Upstream(server)
		if u == nil {
			return control.ErrNoServer
		}
		return control.AcceptDefinitions(u, change)
	}
}
