package main

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// origins are the servers and names of tools whose names on the wire do not say them. It is shared by all: what such a name is of
// never changes, since it is made of nothing else.
var origins sync.Map // of string to origin

// origin is the server that has a tool or prompt, and what it calls it.
type origin struct{ server, thing string }

// memorizing keeps what tools that are listed are called for people.
type memorizing struct{ *agent.Toolbox }

// List implements [agent.Tools].
func (m memorizing) List(ctx context.Context) ([]mcp.Tool, error) {
	tools, err := m.Toolbox.List(ctx)
	for i := range tools {
		wire := tools[i].Name
		if server, tool, ok := m.Origin(wire); ok && wirename.Marked(wire) {
			origins.Store(wire, origin{server, tool})
		}
	}
	return tools, err
}

// memorize keeps what prompts are called for people.
func memorize(prompts []mcp.Prompt) {
	for _, p := range prompts {
		server, prompt, ok := wirename.Split(p.Name, p.Meta[wirename.MetaServer], p.Meta[wirename.MetaThing])
		if ok && wirename.Marked(p.Name) {
			origins.Store(p.Name, origin{server, prompt})
		}
	}
}

// originOf returns what a name on the wire is of; false where that is not known.
func originOf(wire string) (o origin, ok bool) {
	if known, listed := origins.Load(wire); listed {
		return known.(origin), true
	}
	o.server, o.thing, ok = wirename.Split(wire, nil, nil)
	return o, ok
}

// nameForPeople returns what a tool or prompt is called for people.
func nameForPeople(wire string) string {
	if o, ok := originOf(wire); ok {
		return o.server + "." + o.thing
	}
	return wire
}
