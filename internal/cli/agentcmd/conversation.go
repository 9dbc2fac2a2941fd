package agentcmd

import (
	"context"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/session"
)

// agentParts are the parts from which another agent of the same runtime is made.
type agentParts struct {
	model   agent.Model
	tools   *instructedTools
	options agent.Options
}

// UseModel changes the model. It must not be called during a run.
func (r *Runtime) UseModel(m agent.Model, chosen modelregistry.Choice) {
	r.parts.model, r.Model = m, chosen
	r.Agent.SetModel(m)
}

// Continue replaces the agent by one with other messages and the same model and servers. s is the
// session of the conversation, or nil if it is not saved. results is the folder of long results
// ([agent.Options]). The new agent has the mode but none of the
// approvals for the session: they belong to the conversation that the user saw. It must not be
// called during a run.
func (r *Runtime) Continue(s *session.Session, messages []agent.Message, results string, mode agent.Mode) {
	r.name.setConversation(s)
	r.newAgent(messages, results, mode)
}

// UseSession names the agent at the running dowel after the session in which its conversation is
// saved from now on.
func (r *Runtime) UseSession(s *session.Session) { r.name.setConversation(s) }

// ClientName returns the name of the agent at the running dowel, which owns its tasks.
func (r *Runtime) ClientName() string { return r.name.currentName() }

func (r *Runtime) newAgent(messages []agent.Message, results string, mode agent.Mode) {
	o := r.parts.options
	o.Messages, o.Results, o.Mode = messages, results, mode
	r.Agent = agent.New(r.parts.model, r.parts.tools, &o)
}

// SwitchTools takes all tools with a name for people from the model, or gives them back. The name
// is SERVER.TOOL, or SERVER for all tools of a server. It must not be called during a run. The
// model hears of the change with the next message. A tool of a server that is switched off as a
// whole cannot be switched on alone: then SwitchTools returns the server and changes nothing.
func (r *Runtime) SwitchTools(name string, on bool) (offServer string) {
	return r.parts.tools.switchTools(name, on)
}

// HasTool reports whether the model may have a tool, given by its wire name.
func (r *Runtime) HasTool(tool string) bool { return !r.parts.tools.isOff(tool) }

// Restart restarts a server. The error of an unknown name suggests a similar one.
func (r *Runtime) Restart(ctx context.Context, server string) error {
	return r.restartServer(ctx, server)
}
