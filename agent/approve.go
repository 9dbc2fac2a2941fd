package agent

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// Mode says which tools are run without being asked about.
type Mode string

const (
	// ModeAsk asks about every tool that is not read-only. It is the default.
	ModeAsk Mode = "ask"
	// ModeReadOnly runs tools that are read-only, and refuses all others.
	ModeReadOnly Mode = "read-only"
	// ModeAll runs all tools, and ModeNone none.
	ModeAll  Mode = "all"
	ModeNone Mode = "none"
)

// Question asks whether a tool may be run.
type Question struct {
	Call mcp.ToolUse
	Tool mcp.Tool
	// Effect is what the tool may do by its own words, which are as good as its server.
	Effect Effect
}

// Effect is what a tool may do.
type Effect string

const (
	ReadOnly    Effect = "read-only"
	Changes     Effect = "changes"     // adds, and destroys nothing
	Destructive Effect = "destructive" // also where the tool does not say
)

// EffectOf returns what a tool may do by its annotations.
func EffectOf(t *mcp.Tool) Effect {
	a := t.Annotations
	switch {
	case a == nil:
		return Destructive
	case a.ReadOnlyHint != nil && *a.ReadOnlyHint:
		return ReadOnly
	case a.DestructiveHint != nil && !*a.DestructiveHint:
		return Changes
	}
	return Destructive
}

// Decision answers a [Question].
type Decision struct {
	Allow bool
	// Reason is what the model is told where it is not allowed.
	Reason string
	// Arguments take the place of the call's, where they are set.
	Arguments json.RawMessage
	// For is how far the decision goes: for this call alone, where it is empty.
	For Extent
}

// Extent says how far an allowance goes. What is to hold for good is kept by whoever decides ([Options.Allowed]).
type Extent string

const (
	ThisTool   Extent = "tool"   // until the agent is done with
	ThisServer Extent = "server" // all tools whose name has the same server before its __
)

// approved decides on a call, and returns why it is not to be run; empty where it is. The call may be another one then.
func (a *Agent) approved(ctx context.Context, use *mcp.ToolUse, tool *mcp.Tool) (refusal string, err error) {
	effect := EffectOf(tool)
	switch mode := a.opts.Mode; {
	case mode == ModeNone:
		return "tools may not be run", nil
	case mode == ModeAll, effect == ReadOnly, a.allowed[tool.Name], a.allowed[serverOf(tool.Name)+"__"]:
		return "", nil
	case a.opts.Allowed != nil && a.opts.Allowed(tool.Name):
		return "", nil
	case mode == ModeReadOnly:
		return "only tools that are read-only may be run, and this one is not", nil
	case a.opts.Approve == nil:
		return "the user has to approve this tool, and cannot be asked", nil
	}
	d, err := a.opts.Approve(ctx, Question{*use, *tool, effect})
	switch {
	case err != nil:
		return "", err
	case !d.Allow && d.Reason != "":
		return "the user refused: " + d.Reason, nil
	case !d.Allow:
		return "the user refused", nil
	}
	switch d.For {
	case ThisTool:
		a.allowed[tool.Name] = true
	case ThisServer:
		a.allowed[serverOf(tool.Name)+"__"] = true
	}
	if d.Arguments != nil {
		use.Input = d.Arguments
	}
	return "", nil
}

// serverOf returns the server in a qualified name; all of it where it is none.
func serverOf(name string) string {
	server, _, _ := strings.Cut(name, "__")
	return server
}
