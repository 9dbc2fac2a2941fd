package main

import (
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/config"
	"github.com/dowel-mcp/dowel/config/state"
)

// approvals are the tools that the user has allowed for good: in dowel's state, and in the user's own configuration. What a
// project's file says of that counts for nothing, and neither does a server that came with a project go by the name of one of the
// user's.
type approvals struct {
	state *state.State
	set   *config.Set
	crew  *crew
	// origin returns the server and the tool that a name on the wire is of; false where that is not known.
	origin func(wire string) (server, tool string, ok bool)
}

// allowed reports whether a tool runs without being asked about, by its name on the wire.
func (p *approvals) allowed(name string) bool {
	server, tool, ok := p.origin(name)
	if !ok || !p.crew.own(server) {
		return false
	}
	if holds(p.state.AlwaysAllow(server), tool) {
		return true
	}
	s := p.set.Server(server)
	return s != nil && s.Scope == config.User && holds(s.AlwaysAllow, tool)
}

// everyTool stands for all tools of a server.
const everyTool = "*"

func holds(tools []string, tool string) bool {
	return slices.Contains(tools, tool) || slices.Contains(tools, everyTool)
}

// always allows a tool for good.
func (p *approvals) always(name string) error {
	server, tool, ok := p.origin(name)
	if ok {
		name = server + "." + tool
	}
	switch from := p.crew.source(server); {
	case !ok || from == "":
		return fmt.Errorf("%s cannot be allowed for good: it is not known of which server it is", name)
	case from == string(config.Project):
		return fmt.Errorf("%s cannot be allowed for good: its server came with a project, and only of your own servers that is kept", name)
	case !p.crew.own(server):
		return fmt.Errorf("%s cannot be allowed for good: its server stands on the command line, and only of those of your configuration that is kept", name)
	}
	return p.state.Allow(server, tool)
}
