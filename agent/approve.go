package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// Mode says which tools are run without being asked about.
type Mode string

const (
	// ModeAsk asks about every tool that is not read-only. It is the default.
	ModeAsk Mode = "ask"
	// ModeReadOnly runs tools that are read-only and those that have been allowed for good ([Options.Allowed]), and refuses all
	// others, also those that a [Decision] has allowed for longer than one call.
	ModeReadOnly Mode = "read-only"
	// ModeAll runs all tools, and ModeNone none.
	ModeAll  Mode = "all"
	ModeNone Mode = "none"
)

// Question asks whether a tool may be run, or, where Sampling is set, whether a server may use the model.
type Question struct {
	Call mcp.ToolUse
	Tool mcp.Tool
	// Effect is what the tool may do by its own words, which are as good as its server.
	Effect Effect
	// Server is the one that has the tool, or that wants to use the model; empty where the tools' names do not say.
	Server string
	// Sampling is what the server wants to ask the model; Call, Tool and Effect are zero then.
	Sampling *mcp.CreateMessageParams
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
	// Arguments take the place of the call's, where they are set; the model is told so with the result.
	Arguments json.RawMessage
	// For is how far the decision goes: for this call alone, where it is empty.
	For Extent
}

// Extent says how far an allowance goes, as long as the mode is [ModeAsk]; that of a server's use of the model goes for that server,
// whichever is given, and for this once where it is not known which of several servers asks. What is to hold for good is kept by
// whoever decides ([Options.Allowed]).
type Extent string

const (
	ThisTool   Extent = "tool"   // until the agent is done with
	ThisServer Extent = "server" // all tools of its server
)

// allowanceKey is what a decision has allowed until the agent is done with: a tool, all tools of a server, or its use of the model.
type allowanceKey struct {
	what Extent // or Sampling
	name string // of the tool, or the server
}

// refusalReason is what the model is told of a decision against its call.
func (d *Decision) refusalReason() string {
	if d.Reason != "" {
		return "the user refused: " + d.Reason
	}
	return "the user refused"
}

// decidedBy says what a decision comes from.
func (d Decided) decidedBy(what, why string) Decided {
	d.By, d.Reason = what, why
	return d
}

// approveCall decides on a call, which may be another one then. An error ends the run.
func (r *run) approveCall(t *toolCall) (Decided, error) {
	use, tool := &t.use, t.tool
	server, effect := r.opts.Server(tool.Name), EffectOf(tool)
	refused := Decided{Call: *use, Server: server, Effect: effect}
	allowed := refused
	allowed.Allowed = true
	switch mode := r.opts.Mode; {
	case mode == ModeNone:
		return refused.decidedBy(ByMode, "tools may not be run"), nil
	case mode == ModeAll:
		return allowed.decidedBy(ByMode, "everything is allowed"), nil
	case effect == ReadOnly:
		return allowed.decidedBy(ByAnnotation, "the tool is read-only"), nil
	case mode == ModeAsk && (r.allowed[allowanceKey{ThisTool, tool.Name}] || r.allowed[allowanceKey{ThisServer, server}]):
		return allowed.decidedBy(BySession, "the user has allowed it before"), nil
	case r.opts.Allowed != nil && r.opts.Allowed(tool.Name):
		return allowed.decidedBy(ByAlways, "the user has allowed it for good"), nil
	case mode != ModeAsk:
		return refused.decidedBy(ByMode, "only tools that are read-only may be run, and this one is not"), nil
	case r.opts.Approve == nil:
		return refused.decidedBy(ByMode, "the user has to approve this tool, and cannot be asked"), nil
	}
	d, err := r.askUser(r.ctx, Question{Call: *use, Tool: *tool, Effect: effect, Server: server})
	switch {
	case err != nil || !d.Allow:
		return refused.decidedBy(ByUser, d.refusalReason()), err
	case len(d.Arguments) > 0:
		input, ok := parseArguments(d.Arguments)
		if !ok {
			return refused.decidedBy(ByUser, "the user has changed its arguments into something that is no JSON object"), nil
		}
		use.Input, allowed.Call.Input = input, input
	}
	switch d.For {
	case ThisTool:
		t.granted = &allowanceKey{d.For, tool.Name}
	case ThisServer:
		t.granted = &allowanceKey{d.For, server}
	}
	if t.granted != nil {
		r.allowed[*t.granted] = true
	}
	return allowed.decidedBy(ByUser, "the user has allowed it"), nil
}

// askUser asks whoever approves. Nobody is asked once the run has ended, and an answer that comes then does not count.
func (r *run) askUser(ctx context.Context, q Question) (d Decision, err error) {
	r.setState(Waiting)
	defer r.setState(Acting)
	if r.ctx.Err() == nil {
		d, err = r.opts.Approve(ctx, q)
	}
	if err == nil && r.ctx.Err() != nil {
		err = r.endCause()
	}
	return d, err
}

// parseArguments returns a call's arguments: nothing is an empty object, and what is no object is none.
func parseArguments(input json.RawMessage) (json.RawMessage, bool) {
	input = bytes.TrimSpace(input)
	if len(input) == 0 || string(input) == "null" {
		return json.RawMessage("{}"), true
	}
	return input, input[0] == '{' && json.Valid(input)
}

// serverOf returns the server in a qualified name; nothing where it is none, and all of it where it does not say which.
func serverOf(name string) string {
	if server, _, ok := wirename.Split(name, nil, nil); ok {
		return server
	}
	if strings.Contains(name, wirename.Separator) {
		return name
	}
	return ""
}
