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

// origins maps marked wire names, which do not contain the server and the name literally, to their
// origin. All recorders share it: a marked name is computed from its origin alone, so an entry
// never changes.
var origins sync.Map // of string to Origin

// Origin is the server of a tool or prompt, and its name at that server.
type Origin struct{ Server, name string }

// Recorder is a toolbox that records the origins of the tools it lists, for [Split] and [Display].
// It is safe for concurrent use.
type Recorder struct{ *agent.Toolbox }

// List implements [agent.Tools].
func (r Recorder) List(ctx context.Context) ([]mcp.Tool, error) {
	tools, err := r.Toolbox.List(ctx)
	for i := range tools {
		wire := tools[i].Name
		if server, tool, ok := r.Origin(wire); ok && wirename.Marked(wire) {
			origins.Store(wire, Origin{server, tool})
		}
	}
	return tools, err
}

// RecordPrompts records the origins of prompts, for [Split] and [Display]. It is safe for
// concurrent use.
func RecordPrompts(prompts []mcp.Prompt) {
	for _, p := range prompts {
		server, prompt, ok := wirename.Split(p.Name, p.Meta[wirename.MetaServer], p.Meta[wirename.MetaThing])
		if ok && wirename.Marked(p.Name) {
			origins.Store(p.Name, Origin{server, prompt})
		}
	}
}

// Split returns the origin of a wire name. ok is false if the name is not qualified, or is marked
// and was not recorded.
func Split(wire string) (o Origin, ok bool) {
	if known, listed := origins.Load(wire); listed {
		return known.(Origin), true
	}
	o.Server, o.name, ok = wirename.Split(wire, nil, nil)
	return o, ok
}

// Qualified returns SERVER.NAME for a wire name, or the wire name itself if its origin is unknown.
// The result may hold any character; use [Display] for output.
func Qualified(wire string) string {
	if o, ok := Split(wire); ok {
		return o.Server + "." + o.name
	}
	return wire
}

// OwnURI returns the URI of a resource at its server.
func OwnURI(r agent.Resource) string {
	if host, own, ok := wirename.SplitResourceURI(r.URI); ok && (host == r.Server || host == wirename.Host(r.Server)) {
		return own
	}
	return r.URI
}

// DisplayResource returns SERVER:URI for a resource, with control characters made visible.
func DisplayResource(r agent.Resource) string {
	if r.Server == "" {
		return term.RevealLine(r.URI)
	}
	return term.RevealLine(r.Server + ":" + OwnURI(r))
}

// Display returns SERVER.NAME for a wire name, with control characters made visible.
func Display(name string) string { return term.RevealLine(Qualified(name)) }
