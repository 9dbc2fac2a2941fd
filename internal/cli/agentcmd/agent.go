// Package agentcmd is what the commands with an agent share. [NewRuntime] makes an agent of the
// model and the servers that the [Flags] name: all servers of the running daemon, or named ones
// that are started for the command alone. It also keeps approvals, hands the servers' instructions
// to the model, and writes decisions to the audit log.
package agentcmd

import (
	"context"
	"iter"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// Flags say with which model and which servers an agent works: those of the whole configuration, where none is named.
type Flags struct {
	factory.Places
	connect.Connection
	modelregistry.ModelFlags
	Servers []string // by --server
	command []string // behind --
	// settle has assemble wait for servers that are starting, for a while; a conversation begins without them.
	AwaitServers bool
}

func (opts *Flags) AddFlags(cmd *cobra.Command) {
	opts.Places.AddFlags(cmd)
	opts.TargetFlags.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&opts.Servers, "server", "s", nil, "use this server of your configuration, or one that is built in, instead of all (`NAME`, repeatable)")
	flags.StringVarP(&opts.Model, "model", "m", "", "the `model`: a name of your configuration's models, else the provider's name for it")
	flags.StringVar(&opts.Provider, "provider", "", "who has the --model: openai, for all that speak its chat completions, or anthropic")
	flags.StringVar(&opts.ModelFlags.Url, "base-url", "", "where the --model is: the `URL` before /chat/completions or /v1/messages")
	opts.AddCallFlags(flags, "the servers'", "the servers", "a server")
	flags.Lookup("answer").Usage = "answer a question of a server (`key=value`, or SERVER.key=value for one of that server alone; repeatable)"
}

// TakeCommand takes the server's command from behind --, and returns the words before it.
func (opts *Flags) TakeCommand(cmd *cobra.Command, args []string) (words []string, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return args, nil
	}
	if opts.command = args[dash:]; len(opts.command) == 0 {
		return nil, exit.Usagef("there is no command behind --: write the server's command there")
	}
	return args[:dash], nil
}

// ClientOptions are those of the connection between the agent and its servers: everything but who answers what servers ask.
func ClientOptions(f *factory.Factory, opts *Flags) (client.Options, error) {
	opts.Connection.Factory = f
	o, err := opts.BaseOptions()
	if connect.WatchWire != nil {
		o.Wire.Tap = connect.WatchWire(nil)
	}
	return o, err
}

// Runtime is an agent with all that it works with; close ends what was started for it.
type Runtime struct {
	Agent   *agent.Agent
	Toolbox *agent.Toolbox
	Model   modelregistry.Choice
	Mode    agent.Mode // of approvals, at the beginning

	// models are the names of the configuration's models, and choose makes one of those, or of an id, as --model does.
	Models func() []string
	Choose func(name string) (agent.Model, modelregistry.Choice, error)
	// servers tells how the servers are.
	Servers func(ctx context.Context) ([]Server, error)
	// always keeps in dowel's state that a tool, by its qualified name, runs without approval. It is an error for servers that
	// came with a project or were given on the command line, of which nothing is kept, and for names that would allow more.
	Always func(tool string) error
	// trusted is what dowel trust --tool takes for such a tool; empty where it would not do.
	Trusted func(tool string) string
	// recordDecision records a decision in the audit log, if there is one. [assembled.run] does that.
	recordDecision func(agent.Approval)
	Close          func()
}

// splitToolName is [agent.Toolbox.Origin].
func (b *Runtime) splitToolName(tool string) (server, name string, ok bool) {
	return b.Toolbox.Origin(tool)
}

// Run is [agent.Agent.Run], with the decisions in the audit log.
func (b *Runtime) Run(ctx context.Context, input ...mcp.Content) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for e, err := range b.Agent.Run(ctx, input...) {
			if d, ok := e.(agent.Approval); ok {
				b.recordDecision(d)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// NewRuntime makes an agent of the model and the servers that the flags name. o are the agent's options; its Allowed and its
// Instructions, which are those of the servers, are set here. c are those of the connection to the servers, see clientOptions.
func NewRuntime(ctx context.Context, f *factory.Factory, opts *Flags, o agent.Options, c client.Options) (_ *Runtime, err error) {
	setup, err := readEnvironment(f, opts)
	if err != nil {
		return nil, err
	}
	model, chosen, err := setup.Choose(opts.ModelFlags)
	if err != nil {
		return nil, err
	}
	b := &Runtime{
		Model: chosen, Mode: o.Mode, Models: setup.modelNames,
		Choose: func(name string) (agent.Model, modelregistry.Choice, error) {
			named := modelregistry.ModelFlags{Model: name}
			// Another id is at the same place; what a session has noted of a provider alone is no more than its model's name says.
			if setup.Set.LookupModel(name) == nil && (!opts.Again || opts.ModelFlags.Url != "") {
				named.Provider, named.Url = opts.Provider, opts.ModelFlags.Url
			}
			return setup.Choose(named)
		},
	}
	crew, err := openServers(ctx, f, opts, setup)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	audit, err := openDecisionLog(f, setup)
	b.Close = func() {
		if b.Toolbox != nil {
			if err := b.Toolbox.Close(); err != nil {
				f.Warn("%v", err)
			}
		}
		crew.close(ctx)
		audit.close()
	}
	if err != nil {
		return nil, err
	}
	b.Servers, b.recordDecision = crew.listServers, func(e agent.Approval) { audit.writeDecision(e, b.splitToolName) }
	approved := &approvals{setup.state, setup.Set, crew, b.splitToolName}
	o.Allowed, b.Always = approved.isAllowed, approved.allowAlways
	b.Trusted = func(tool string) string { return trustArgument(f, approved, tool) }
	if err = context.Cause(ctx); err != nil {
		return nil, err
	}
	if b.Toolbox, err = agent.Dial(ctx, crew.handler, c); err != nil {
		return nil, exit.ConnectError{Server: "the servers", Err: connect.Unwrapped(err)}
	}
	if crew.folder != "" {
		o.System += "\n\nThe servers of your tools work in the folder " + crew.folder + ": what is relative in their arguments begins there, not in the current folder."
	}
	tools := &instructedTools{Recorder: toolname.Recorder{Toolbox: b.Toolbox}, fetch: crew.fetchInstructions}
	o.Instructions = tools.formatInstructions
	b.Agent = agent.New(model, tools, &o)
	return b, nil
}

// maxServerWait is how long a task waits for servers that are starting: what comes later is told to the model then.
const maxServerWait = 15 * time.Second

// ListPrompts returns the prompts of all servers. Servers without prompts have an empty list.
func (b *Runtime) ListPrompts(ctx context.Context) ([]mcp.Prompt, error) {
	prompts, err := client.All(b.Toolbox.Client().Prompts(ctx))
	if connect.IsNotOffered(err) {
		err = nil
	}
	toolname.RecordPrompts(prompts)
	return prompts, err
}
