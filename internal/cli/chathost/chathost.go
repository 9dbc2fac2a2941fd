// Package chathost runs agents for conversations inside the running dowel, for the console. A
// conversation has the file, the approvals, the trust in servers and the limit of steps of dowel
// chat; the questions to its user go to Asks.
//
//	o.Agents = func(hub *daemon.AgentHub) control.ChatHost { return chathost.New(f, places, hub) }
package chathost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
)

// Host makes agents. It implements [control.ChatHost].
type Host struct {
	app    *factory.Factory
	places factory.Places
	hub    *daemon.AgentHub
}

// New returns a host. places are the folders of the running dowel.
func New(f *factory.Factory, places factory.Places, hub *daemon.AgentHub) *Host {
	return &Host{f, places, hub}
}

// Models implements [control.ChatHost]. A model of the environment is the default, but not in the
// list.
func (h *Host) Models() control.ChatModels {
	m := control.ChatModels{Models: []string{}}
	where, err := h.places.ConfigOptions()
	if err != nil {
		m.Problem = err.Error()
		return m
	}
	r := modelregistry.New(h.app, config.Load(where))
	m.Models = append(m.Models, r.Set.ModelNames()...)
	m.Default, _ = r.Named("")
	if _, _, err := r.Choose(modelregistry.ModelFlags{}); err != nil && len(m.Models) == 0 {
		m.Problem = "no model can be used: name one in your dowel.json under models; dowel models --help explains it"
	}
	return m
}

// modes are the modes that a conversation in the running dowel may have. It asks in the browser, so
// a mode that runs every tool without a question is left to the terminal.
var modes = []string{string(agent.ModeAsk), string(agent.ModeReadOnly), string(agent.ModeNone)}

// Open implements [control.ChatHost].
func (h *Host) Open(ctx context.Context, o control.ChatOptions) (control.ChatAgent, error) {
	if o.Mode != "" && !slices.Contains(modes, o.Mode) {
		return nil, fmt.Errorf("unknown mode %q: want %s%s", o.Mode, strings.Join(modes, ", "), suggest.Hint(o.Mode, modes))
	}
	if names := h.Models().Models; o.Model != "" && !slices.Contains(names, o.Model) {
		return nil, fmt.Errorf("your configuration has no model %q%s", o.Model, suggest.Hint(o.Model, names))
	}
	c := &conversation{hub: h.hub}
	flags := &agentcmd.Flags{Places: h.places, Hub: h.hub}
	messages, err := c.openSession(o, &flags.ModelFlags)
	if err != nil {
		return nil, err
	}
	if err := c.makeAgent(ctx, h.app, flags, messages); err != nil {
		return nil, errors.Join(err, c.session.Close())
	}
	return c, nil
}

// conversation is an agent and the file of its conversation. It implements [control.ChatAgent].
type conversation struct {
	hub     *daemon.AgentHub
	id      string
	session *session.Session
	log     sessionlog.Log
	mode    string
	stored  string // the mode that the file has, or ""
	runtime *agentcmd.Runtime
}

// openSession opens the file of a conversation that continues, and returns its messages. A new one
// gets its file with the first message.
func (c *conversation) openSession(o control.ChatOptions, model *modelregistry.ModelFlags) ([]agent.Message, error) {
	model.Model, c.mode = o.Model, cmp.Or(o.Mode, string(agent.ModeAsk))
	if o.Session == "" {
		folder, err := connect.Folder(".")
		c.useSession(session.New(factory.SessionsDir(), session.Header{Folder: folder}))
		return nil, err
	}
	found, err := session.Find(factory.SessionsDir(), o.Session)
	if err != nil {
		return nil, err
	}
	s, held, err := session.Load(found.Path)
	if err != nil {
		return nil, err
	}
	c.useSession(s)
	c.restoreMode(o.Mode, held.LastMode())
	return held.Messages, sessionlog.RestoreModel(held.Events, model)
}

// restoreMode keeps the mode that a conversation has stored, unless its user chooses one. A mode
// that no conversation here may have becomes ask.
func (c *conversation) restoreMode(chosen, stored string) {
	c.stored = stored
	if chosen == "" && slices.Contains(modes, stored) {
		c.mode = stored
	}
}

func (c *conversation) useSession(s *session.Session) {
	c.id, c.session = s.Header().ID, s
	c.log = sessionlog.Log{Session: s, Program: control.HostProgram, Warn: func(string, ...any) {}} // the turn returns the error
}

// makeAgent makes the agent.
func (c *conversation) makeAgent(ctx context.Context, f *factory.Factory, flags *agentcmd.Flags, messages []agent.Message) error {
	flags.Session = c.session
	setup, err := agentcmd.ReadSetup(f, flags)
	if err != nil {
		return err
	}
	setup.OnRequest = c.log.AddRequest
	o, err := agentcmd.ClientOptions(f, flags)
	if err != nil {
		return err
	}
	o.Info = mcp.Implementation{Name: control.HostProgram, Title: "Chat in the console", Version: version.Number()}
	o.Answers.ElicitURL = true
	o.Answers.Elicit = func(ctx context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return c.hub.Asks.AskElicitation(ctx, control.HostProgram, c.ID(), q)
	}
	options := agent.Options{Messages: messages, Mode: agent.Mode(c.mode), Approve: c.askApproval, Results: c.session.Results()}
	if options.System, err = agentcmd.SystemPrompt("in a browser"); err != nil {
		return err
	}
	c.runtime, err = setup.NewRuntime(ctx, f, flags, options, o)
	return err
}

// askApproval asks the user in the console. It implements [agent.Options.Approve].
func (c *conversation) askApproval(ctx context.Context, q agent.Question) (agent.Decision, error) {
	answer, err := c.hub.Asks.AskApproval(ctx, agentcmd.NewApproval(control.HostProgram, c.ID(), q))
	if err != nil {
		return agent.Decision{}, err
	}
	c.log.DecidedAt = agentcmd.ConsoleName
	return agentcmd.DecisionOf(answer), nil
}

// ID implements [control.ChatAgent].
func (c *conversation) ID() string { return c.id }

// Mode implements [control.ChatAgent].
func (c *conversation) Mode() string { return c.mode }

// Close implements [control.ChatAgent].
func (c *conversation) Close() {
	c.runtime.Close()
	_ = c.session.Close() // every message is written already, and its error was returned then
}

// Send implements [control.ChatAgent].
func (c *conversation) Send(text string) (func(context.Context, func(control.ChatProgress)) error, error) {
	c.session.With(c.runtime.Model.Label())
	content := []mcp.Content{mcp.Text(text)}
	c.log.UseServers(sessionlog.Servers{Origin: c.runtime.Toolbox.Origin}, c.runtime.Agent.Messages())
	c.log.BeginRun(content, c.runtime.Model)
	if c.mode != c.stored {
		c.log.NoteMode(c.mode)
		c.stored = c.mode
	}
	if c.log.Failed != nil {
		return nil, c.log.Failed
	}
	return func(ctx context.Context, show func(control.ChatProgress)) error { return c.runTurn(ctx, content, show) }, nil
}

// runTurn answers a message. A conversation whose file cannot be written any more ends its turn.
func (c *conversation) runTurn(ctx context.Context, content []mcp.Content, show func(control.ChatProgress)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var failed error
	var progress turnProgress
	for e, err := range c.runtime.Run(ctx, content...) {
		if err != nil {
			failed = err
			continue
		}
		if c.log.Event(e); c.log.Failed != nil {
			stop(c.log.Failed)
		}
		progress.addEvent(e)
		show(progress.ChatProgress)
	}
	c.log.EndRun(c.runtime.Agent.Messages())
	if c.log.Failed != nil {
		return c.log.Failed
	}
	return failed
}
