package main

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// readableNames are the names for people of tools whose names on the wire do not say them. It is shared by all: what such a name is of
// never changes, since it is made of nothing else.
var readableNames sync.Map // of string to string

// memorizing keeps what tools that are listed are called for people.
type memorizing struct{ *agent.Toolbox }

// List implements [agent.Tools].
func (m memorizing) List(ctx context.Context) ([]mcp.Tool, error) {
	tools, err := m.Toolbox.List(ctx)
	for i := range tools {
		wire := tools[i].Name
		if !wirename.Marked(wire) {
			continue
		}
		if server, tool, ok := m.Origin(wire); ok {
			readableNames.Store(wire, server+"."+tool)
		}
	}
	return tools, err
}

// nameForPeople returns what a tool or prompt is called for people.
func nameForPeople(wire string) string {
	if name, ok := readableNames.Load(wire); ok {
		return name.(string)
	}
	if server, thing, ok := wirename.Split(wire, nil, nil); ok {
		return server + "." + thing
	}
	return wire
}
