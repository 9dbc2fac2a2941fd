// Package toolname translates between names of tools on the wire, such as files__read, and names
// for people, such as files.read. A gateway shortens or marks names that do not fit the wire; a
// [Recorder] remembers those as they are listed.
package toolname

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// origins are the servers and names of tools whose names on the wire do not say them. It is shared by all: what such a name is of
// never changes, since it is made of nothing else.
var origins sync.Map // of string to origin

// Origin is the server that has a tool or prompt, and what it calls it.
type Origin struct{ Server, name string }

// Recorder keeps what tools that are listed are called for people.
type Recorder struct{ *agent.Toolbox }

// List implements [agent.Tools].
func (m Recorder) List(ctx context.Context) ([]mcp.Tool, error) {
	tools, err := m.Toolbox.List(ctx)
	for i := range tools {
		wire := tools[i].Name
		if server, tool, ok := m.Origin(wire); ok && wirename.Marked(wire) {
			origins.Store(wire, Origin{server, tool})
		}
	}
	return tools, err
}

// RecordPrompts keeps what prompts are called for people.
func RecordPrompts(prompts []mcp.Prompt) {
	for _, p := range prompts {
		server, prompt, ok := wirename.Split(p.Name, p.Meta[wirename.MetaServer], p.Meta[wirename.MetaThing])
		if ok && wirename.Marked(p.Name) {
			origins.Store(p.Name, Origin{server, prompt})
		}
	}
}

// Split returns what a name on the wire is of; false where that is not known.
func Split(wire string) (o Origin, ok bool) {
	if known, listed := origins.Load(wire); listed {
		return known.(Origin), true
	}
	o.Server, o.name, ok = wirename.Split(wire, nil, nil)
	return o, ok
}

// Qualified returns what a tool or prompt is called for people.
func Qualified(wire string) string {
	if o, ok := Split(wire); ok {
		return o.Server + "." + o.name
	}
	return wire
}

// Display is a tool's name for people: server.tool.
func Display(name string) string { return term.RevealLine(Qualified(name)) }
