package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// Mode says which tools run without a question to the user.
type Mode string

const (
	// ModeAsk asks about every tool that is not read-only. It is the default.
	ModeAsk Mode = "ask"
	// ModeReadOnly runs read-only tools and permanently allowed tools ([Options.Allowed]). It
	// refuses all other tools, even if a [Decision] has allowed them for longer than one call.
	ModeReadOnly Mode = "read-only"
	// ModeAll runs all tools, ModeNone no tool.
	ModeAll  Mode = "all"
	ModeNone Mode = "none"
)

// Question asks whether a tool may run, or, if Sampling is set, whether a server may use the
// model.
type Question struct {
	Call mcp.ToolUse
	Tool mcp.Tool
	// Before is the definition for which the user allowed the tool earlier in the agent's life, if
	// the server has changed it since; otherwise nil.
	Before *mcp.Tool
	// Effect is the effect that the tool's annotations declare, unless [Options.Effect] or a change
	// of the tool says otherwise. It is ReadOnly if the user does not trust the server's
	// annotations ([Options.TrustAnnotations]).
	Effect Effect
	// Server has the tool, or wants to use the model; empty if the tools' names do not say.
	Server string
	// Sampling is the server's request to the model; Call, Tool and Effect are then zero.
	Sampling *mcp.CreateMessageParams
}

// Effect says what a tool may do.
type Effect string

const (
	ReadOnly    Effect = "read-only"
	Changes     Effect = "changes"     // adds to its environment, without destroying anything
	Destructive Effect = "destructive" // or the tool does not say
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

// effectOf returns the effect of a tool by which the agent decides. If the server has changed a
// tool that the user has allowed, the tool does not become read-only by that.
func (r *run) effectOf(tool *mcp.Tool) Effect {
	effect := EffectOf(tool)
	if r.opts.Effect != nil && r.opts.Mode != ModeNone && r.opts.Mode != ModeAll {
		effect = r.opts.Effect(tool)
	}
	if before := r.allowedBefore(tool); before != nil && EffectOf(before) != ReadOnly {
		return EffectOf(before)
	}
	return effect
}

// Decision answers a [Question]. The zero value refuses.
type Decision struct {
	Allow bool
	// Reason tells the model why the call is refused.
	Reason string
	// Arguments replace the call's if they are set. The model is told so with the result.
	Arguments json.RawMessage
	// For is how long the approval lasts; empty: for this call alone.
	For Scope
}

// Scope is how long an approval lasts beyond the call it was given for. It has no effect unless
// the mode is [ModeAsk]. An approval to use the model always covers the asking server; if the
// asking server is unknown, it covers one request. The agent does not store approvals beyond its
// own life: implement [Options.Allowed] to remember them.
type Scope string

// sampling takes the place of a scope in the key of an approval to use the model.
const sampling Scope = "sampling"

const (
	ThisTool   Scope = "tool"   // for the agent's life, or until the server changes the tool
	ThisServer Scope = "server" // all tools of its server, each until the server changes it
	// ReadOnlyTools are the tools that the server annotates as read-only, each until the server
	// changes it. It answers a question with the effect [ReadOnly].
	ReadOnlyTools Scope = "read-only tools"
)

// allowanceKey identifies an approval that lasts for the agent's life: of a tool, of all tools of
// a server, or of a server's use of the model.
type allowanceKey struct {
	what Scope  // or sampling
	name string // of the tool or server
}

// refusalReason returns what the model is told about a refused call.
func (d *Decision) refusalReason() string {
	if d.Reason != "" {
		return "the user refused: " + d.Reason
	}
	return "the user refused"
}

// decidedBy sets the source of a decision and its reason in words.
func (d Approval) decidedBy(what, why string) Approval {
	d.By, d.Reason = what, why
	return d
}

// trustsAnnotations reports whether the user believes the annotations of a server's tools.
func (r *run) trustsAnnotations(server string) bool {
	return r.opts.TrustAnnotations != nil && r.opts.TrustAnnotations(server)
}

// approveCall applies the mode, the annotations and earlier approvals, and asks the user if none
// of them decides. The user may change the arguments. An error ends the run.
func (r *run) approveCall(t *toolCall) (Approval, error) {
	if t.isOwn && t.use.Name == r.skills.tool {
		return r.approveSkill(t)
	}
	use, tool := &t.use, t.tool
	server, effect := t.server, r.effectOf(tool)
	refused := Approval{Call: *use, Server: server, Effect: effect}
	allowed := refused
	allowed.Allowed = true
	switch mode := r.opts.Mode; {
	case mode == ModeNone:
		return refused.decidedBy(byMode, "tools may not be run"), nil
	case mode == ModeAll:
		return allowed.decidedBy(byMode, "everything is allowed"), nil
	case effect == ReadOnly && (t.isOwn || r.trustsAnnotations(server)):
		return allowed.decidedBy(byAnnotation, "the tool is read-only"), nil
	case mode == ModeAsk && !r.skills.actsUnapproved() && r.isAllowed(server, tool, effect):
		return allowed.decidedBy(bySession, "the user has allowed it before"), nil
	case !r.skills.actsUnapproved() && r.opts.Allowed != nil && r.opts.Allowed(tool.Name):
		return allowed.decidedBy(byAlways, "the user has allowed it for good"), nil
	case mode != ModeAsk && effect == ReadOnly:
		return refused.decidedBy(byMode, "only tools that are read-only may be run, and the user does not trust this server to say which ones are"), nil
	case mode != ModeAsk:
		return refused.decidedBy(byMode, "only tools that are read-only may be run, and this one is not"), nil
	case r.opts.Approve == nil:
		return refused.decidedBy(byMode, "the user has to approve this tool, and cannot be asked"), nil
	}
	d, err := r.askUser(r.ctx, Question{Call: *use, Tool: *tool, Before: r.allowedBefore(tool), Effect: effect, Server: server})
	switch {
	case err != nil || !d.Allow:
		return refused.decidedBy(byUser, d.refusalReason()), err
	case len(d.Arguments) > 0:
		input, ok := parseArguments(d.Arguments)
		if !ok {
			return refused.decidedBy(byUser, "the user has changed its arguments into something other than a JSON object"), nil
		}
		use.Input, allowed.Call.Input = input, input
	}
	switch {
	case d.For == ThisTool:
		t.granted = &allowanceKey{d.For, tool.Name}
	case d.For == ThisServer, d.For == ReadOnlyTools && effect == ReadOnly:
		t.granted = &allowanceKey{d.For, server}
	}
	if t.granted != nil {
		r.allowed[*t.granted] = true
		r.recordAllowed(d.For, tool)
	}
	return allowed.decidedBy(byUser, "the user has allowed it"), nil
}

// askUser calls Options.Approve. If the run has ended, or ends meanwhile, an answer does not
// count.
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

// parseArguments returns the arguments of a call. Empty input means {}. ok is false if the input
// is not an object.
func parseArguments(input json.RawMessage) (json.RawMessage, bool) {
	input = bytes.TrimSpace(input)
	if len(input) == 0 || string(input) == "null" {
		return json.RawMessage("{}"), true
	}
	return input, input[0] == '{' && json.Valid(input)
}

// serverOf returns the server of a tool: "" if neither the tools nor the name say it, the whole
// name if it is ambiguous.
func (a *Agent) serverOf(name string) string {
	if known, ok := a.tools.(interface {
		Origin(tool string) (server, name string, ok bool)
	}); ok {
		if server, _, ok := known.Origin(name); ok {
			return server
		}
	}
	if server, _, ok := wirename.Split(name, nil, nil); ok {
		return server
	}
	if strings.Contains(name, wirename.Separator) {
		return name
	}
	return ""
}
