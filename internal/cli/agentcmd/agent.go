// Package agentcmd is shared by the commands that run an agent, dowel run and dowel chat.
// [Setup.NewRuntime] makes an agent from the model and the servers that the [Flags] name: all
// servers through the running dowel, or named servers that it starts for the command. It also
// applies permanent approvals, passes the servers' instructions to the model, and writes decisions
// to the audit log.
//
//	opts.AddFlags(cmd)
//	o, err := agentcmd.ClientOptions(f, &opts)
//	setup, err := agentcmd.ReadSetup(f, &opts)
//	r, err := setup.NewRuntime(ctx, f, &opts, agent.Options{Mode: agent.ModeAsk}, o)
//	defer r.Close()
//	for event, err := range r.Run(ctx, mcp.Text("…")) { … }
package agentcmd

import (
	"context"
	"iter"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/agentsfile"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// Flags are the command line's choice of the model and the servers. The zero value chooses the
// default model and all servers of the configuration.
type Flags struct {
	factory.Places
	connect.Connection
	modelregistry.ModelFlags
	Servers []string // of --server
	command []string // after --
	// AwaitServers makes [NewRuntime] wait for servers that are starting: all servers for at most
	// 15 seconds, named servers for at most --connect-timeout.
	AwaitServers bool
	// TrustAnnotations trusts every server to say which of its tools are read-only.
	TrustAnnotations bool
	// NoInstructions keeps the user's and the project's AGENTS.md from the model.
	NoInstructions bool
	// FollowFrames marks the calls, so that [Runtime.FollowFrames] finds their frames.
	FollowFrames bool
	// Hub is the running dowel if it is this process; nil joins it over its socket. It excludes
	// flags that name servers.
	Hub *daemon.AgentHub
	// Session is the session of the conversation that the agent begins with, which names the agent
	// at the running dowel. nil: the conversation is not saved.
	Session *session.Session
	// Allow names tools that run without an approval: SERVER.TOOL, or SERVER.* for all of a server.
	Allow []string
}

// AddFlags registers the flags with a command, which fills in opts when it parses its arguments.
func (opts *Flags) AddFlags(cmd *cobra.Command) {
	opts.Places.AddFlags(cmd)
	opts.TargetFlags.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&opts.Servers, "server", "s", nil, "use this configured or built-in server instead of all servers (`NAME`, repeatable)")
	flags.StringVarP(&opts.Model, "model", "m", "", "the `model`: a name from your configuration, or the provider's name for it")
	flags.StringVar(&opts.Provider, "provider", "", "API of the --model: openai, for every server with OpenAI's chat completions, or anthropic")
	flags.StringVar(&opts.ModelFlags.Url, "base-url", "", "URL of the --model's API: the `URL` before /chat/completions or /v1/messages")
	flags.BoolVar(&opts.TrustAnnotations, "trust-annotations", false, "trust all servers to say which of their tools are read-only")
	flags.BoolVar(&opts.NoInstructions, "no-instructions", false, "give the model neither your AGENTS.md nor the project's")
	opts.AddCallFlags(flags, "the servers'", "the servers", "a server")
	flags.Lookup("answer").Usage = "answer questions of servers (`key=value`, or SERVER.key=value for one server; repeatable)"
}

// TakeCommand stores the server's command, the words after --, and returns the words before --.
func (opts *Flags) TakeCommand(cmd *cobra.Command, args []string) (words []string, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return args, nil
	}
	if opts.command = args[dash:]; len(opts.command) == 0 {
		return nil, exit.Usagef("there is no command after --: write the server's command there")
	}
	return args[:dash], nil
}

// ClientOptions returns the options of the connection to the servers. The caller adds the functions
// that answer the servers' questions.
func ClientOptions(f *factory.Factory, opts *Flags) (client.Options, error) {
	opts.Connection.Factory = f
	o, err := opts.BaseOptions()
	if connect.WatchWire != nil {
		o.Wire.Tap = connect.WatchWire(nil)
	}
	return o, err
}

// Runtime is an agent with its model and servers. Servers and ListPrompts may be called during a
// run; Run must not run twice at a time.
type Runtime struct {
	Agent   *agent.Agent
	Toolbox *agent.Toolbox
	Model   modelregistry.Choice
	Mode    agent.Mode // the initial approval mode

	// Models returns the names of the configuration's models.
	Models func() []string
	// Choose returns the model with a name of the configuration or a provider's ID, like --model.
	Choose func(name string) (agent.Model, modelregistry.Choice, error)
	// Servers returns the state of every server.
	Servers func(ctx context.Context) ([]Server, error)
	// FollowFrames calls show with the frames between dowel and the servers that belong to calls of
	// this agent, the kept ones first, until ctx ends. It returns an error if the journal ends
	// before. It is nil without Flags.FollowFrames.
	FollowFrames func(ctx context.Context, show func(*journal.Frame)) error
	// Always stores a permanent approval of a tool, given by its wire name, in dowel's state. It
	// returns an error for servers of a project or the command line, and for a name that would
	// allow other tools too.
	Always func(tool string) error
	// TrustServer stores in dowel's state that the user trusts a server to say which of its tools
	// are read-only. It returns an error for servers of a project or the command line.
	TrustServer func(server string) error
	// Change returns how a tool, given by its wire name, differs from its accepted definition, or
	// nil. wasAllowed says that the user had allowed the accepted one for good.
	Change func(tool string) (change *control.Changed, wasAllowed bool)
	// Trusted returns the argument of dowel trust --tool for a tool, given by its wire name, or ""
	// if that command cannot allow exactly this tool.
	Trusted func(tool string) string
	// ToolArgument returns the argument of --allow for a tool, given by its wire name, or "" if it
	// would need quotes in a shell.
	ToolArgument func(tool string) string
	// HasOwnServers: the servers were started for the agent, and end with it. Else they belong to a
	// running dowel.
	HasOwnServers bool
	// Close stops the servers that were started for the agent, and closes the audit log.
	Close func()

	recordDecision func(agent.Approval) // writes to the audit log, if it is enabled
	restartServer  func(ctx context.Context, server string) error
	parts          agentParts
	name           *clientName
	marks          *callMarks // nil if calls get no marks

	instructionFiles []agentsfile.File
}

// splitToolName is [agent.Toolbox.Origin] of r.Toolbox. The method can be passed to a function
// before r.Toolbox is set, but only be called afterwards.
func (r *Runtime) splitToolName(tool string) (server, name string, ok bool) {
	return r.Toolbox.Origin(tool)
}

// Run runs the agent like [agent.Agent.Run], and writes its decisions to the audit log.
func (r *Runtime) Run(ctx context.Context, input ...mcp.Content) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for e, err := range r.Agent.Run(ctx, input...) {
			if d, ok := e.(agent.Approval); ok {
				r.recordDecision(d)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Setup is the configuration and the model of a [Runtime] that has not started yet.
type Setup struct {
	*environment
	model  agent.Model
	chosen modelregistry.Choice
	// OnRequest is called with each request to a model before it is sent, also for servers that use
	// the model and for summaries, then from several goroutines. nil: it is not called. Set it
	// before NewRuntime.
	OnRequest func(agent.Conversation)
}

// Model describes the model.
func (setup *Setup) Model() modelregistry.Choice { return setup.chosen }

// ReadSetup reads the configuration and chooses the model. It starts nothing.
func ReadSetup(f *factory.Factory, opts *Flags) (*Setup, error) {
	e, err := readEnvironment(f, opts)
	if err != nil {
		return nil, err
	}
	model, chosen, err := e.Choose(opts.ModelFlags)
	if err != nil {
		return nil, err
	}
	return &Setup{environment: e, model: model, chosen: chosen}, nil
}

// NewRuntime makes an agent with the model, and starts or joins the servers that the flags name. It
// adds AGENTS.md files to o.System, and sets o.Allowed, o.Effect, o.TrustAnnotations and
// o.Instructions. c comes from [ClientOptions]. The caller must close the runtime.
func (setup *Setup) NewRuntime(ctx context.Context, f *factory.Factory, opts *Flags, o agent.Options, c client.Options) (*Runtime, error) {
	name := new(clientName)
	name.setConversation(opts.Session)
	servers, err := openServers(ctx, f, opts, setup.environment, name)
	if err != nil {
		return nil, err
	}
	audit, err := openDecisionLog(f, opts, setup.environment)
	r := &Runtime{Model: setup.chosen, Mode: o.Mode, Models: setup.modelNames, Servers: servers.listServers, restartServer: servers.restart, name: name, HasOwnServers: servers.isPrivate}
	r.instructionFiles = setup.findInstructionFiles(f, opts)
	o.System += agentsfile.Prompt(r.instructionFiles)
	r.Choose = func(name string) (agent.Model, modelregistry.Choice, error) {
		model, chosen, err := setup.chooseNamed(name, opts)
		return observeModel(model, setup.OnRequest), chosen, err
	}
	if opts.FollowFrames {
		r.marks = &callMarks{}
		r.FollowFrames = func(ctx context.Context, show func(*journal.Frame)) error {
			return servers.followFrames(ctx, r.marks.filterFrames(show))
		}
	}
	r.Close = func() { r.closeParts(ctx, f, servers, audit) }
	r.recordDecision = func(e agent.Approval) { audit.writeDecision(e, r.splitToolName) }
	approved := &approvals{state: setup.state, set: setup.Set, servers: servers, splitToolName: r.splitToolName, trustAll: opts.TrustAnnotations, allowed: opts.Allow}
	o.Allowed, o.Effect, r.Always = approved.isAllowed, approved.effectOf, approved.allowAlways
	o.TrustAnnotations, r.TrustServer = approved.trustsAnnotations, approved.trustServer
	r.Change = approved.describeChange
	r.ToolArgument = approved.toolArgument
	r.Trusted = func(tool string) string { return trustArgument(f, approved, tool) }
	if err == nil {
		err = r.startAgent(ctx, observeModel(setup.model, setup.OnRequest), servers, o, c)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// chooseNamed returns the model with a name of the configuration or a provider's ID. For a
// provider's ID it uses the provider and the URL of the flags. It ignores them if the flags come
// from a saved session without a URL, because their provider was then derived from the name of the
// session's model.
func (e *environment) chooseNamed(name string, opts *Flags) (agent.Model, modelregistry.Choice, error) {
	named := modelregistry.ModelFlags{Model: name}
	if e.Set.LookupModel(name) == nil && (!opts.Again || opts.ModelFlags.Url != "") {
		named.Provider, named.Url = opts.Provider, opts.ModelFlags.Url
	}
	return e.Choose(named)
}

// startAgent connects to the servers and makes the agent.
func (r *Runtime) startAgent(ctx context.Context, model agent.Model, servers *serverSet, o agent.Options, c client.Options) (err error) {
	if err = context.Cause(ctx); err != nil {
		return err
	}
	dialing := ctx
	if servers.recordDial != nil {
		dialing = servers.recordDial(ctx)
	}
	if r.Toolbox, err = agent.Dial(dialing, servers.handler, c); err != nil {
		return exit.ConnectError{Server: "the servers", Err: connect.Unwrapped(err)}
	}
	if servers.folder != "" {
		o.System += "\n\nThe servers of your tools work in the folder " + servers.folder + ": relative paths in their arguments start there, not in the current folder."
	}
	tools := &instructedTools{
		Recorder: toolname.Recorder{Toolbox: r.Toolbox}, fetch: servers.fetchInstructions,
		toolSwitch: newToolSwitch(), edits: &editRecorder{folder: servers.folder}, marks: r.marks,
	}
	o.Instructions = tools.formatInstructions
	r.parts = agentParts{model, tools, o}
	r.newAgent(o.Messages, o.Results, o.Mode)
	return nil
}

// closeParts closes the toolbox if it was connected, then the servers and the audit log.
func (r *Runtime) closeParts(ctx context.Context, f *factory.Factory, servers *serverSet, audit *decisionLog) {
	if r.Toolbox != nil {
		if err := r.Toolbox.Close(); err != nil {
			f.Warn("%v", err)
		}
	}
	servers.close(ctx)
	audit.closeLog()
}

// maxServerWait limits the wait for servers that are starting. The model gets the tools of a slower
// server when that server is ready.
const maxServerWait = 15 * time.Second

// ListPrompts returns the prompts of all servers. The list is empty if no server has prompts.
func (r *Runtime) ListPrompts(ctx context.Context) ([]mcp.Prompt, error) {
	prompts, err := client.All(r.Toolbox.Client().Prompts(ctx))
	if connect.IsNotOffered(err) {
		err = nil
	}
	toolname.RecordPrompts(prompts)
	return prompts, err
}
