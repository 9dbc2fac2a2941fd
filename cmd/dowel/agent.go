package main

import (
	"context"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// agentFlags say with which model and which servers an agent works: those of the whole configuration, where none is named.
type agentFlags struct {
	places
	connection
	modelFlags
	servers []string // by --server
	command []string // behind --
	// settle has assemble wait for servers that are starting, for a while; a conversation begins without them.
	settle bool
}

func (f *agentFlags) register(cmd *cobra.Command) {
	f.places.register(cmd)
	f.whence.register(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.servers, "server", "s", nil, "use this server of your configuration, or one that is built in, instead of all (`NAME`, repeatable)")
	flags.StringVarP(&f.model, "model", "m", "", "the `model`: a name of your configuration's models, else the provider's name for it")
	flags.StringVar(&f.provider, "provider", "", "who has the --model: openai, for all that speak its chat completions, or anthropic")
	flags.StringVar(&f.modelFlags.url, "base-url", "", "where the --model is: the `URL` before /chat/completions or /v1/messages")
	f.talk(flags, "the servers'", "the servers", "a server")
	flags.Lookup("answer").Usage = "answer a question of a server (`key=value`, or SERVER.key=value for one of that server alone; repeatable)"
}

// takeCommand takes the server's command from behind --, and returns the words before it.
func (f *agentFlags) takeCommand(cmd *cobra.Command, args []string) (words []string, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return args, nil
	}
	if f.command = args[dash:]; len(f.command) == 0 {
		return nil, usagef("there is no command behind --: write the server's command there")
	}
	return args[:dash], nil
}

// clientOptions are those of the connection between the agent and its servers: everything but who answers what servers ask.
func (a *app) clientOptions(f *agentFlags) (client.Options, error) {
	f.connection.app = a
	o, err := f.talkOptions()
	if watchWire != nil {
		o.Tap = watchWire(nil)
	}
	return o, err
}

// assembled is an agent with all that it works with; close ends what was started for it.
type assembled struct {
	agent   *agent.Agent
	toolbox *agent.Toolbox
	model   chosenModel
	mode    agent.Mode // of approvals, at the beginning

	// models are the names of the configuration's models, and choose makes one of those, or of an id, as --model does.
	models func() []string
	choose func(name string) (agent.Model, chosenModel, error)
	// servers tells how the servers are.
	servers func(ctx context.Context) ([]serverLine, error)
	// always keeps in dowel's state that a tool, by its qualified name, runs without approval. It is an error for servers that
	// came with a project or were given on the command line, of which nothing is kept, and for names that would allow more.
	always func(tool string) error
	// trusted is what dowel trust --tool takes for such a tool; empty where it would not do.
	trusted func(tool string) string
	// decided records a decision in the audit log, if there is one. [assembled.run] does that.
	decided func(agent.Decided)
	close   func()
}

// origin is [agent.Toolbox.Origin].
func (b *assembled) origin(tool string) (server, name string, ok bool) { return b.toolbox.Origin(tool) }

// run is [agent.Agent.Run], with the decisions in the audit log.
func (b *assembled) run(ctx context.Context, input ...mcp.Content) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for e, err := range b.agent.Run(ctx, input...) {
			if d, ok := e.(agent.Decided); ok {
				b.decided(d)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// assemble makes an agent of the model and the servers that the flags name. o are the agent's options; its Allowed and its
// Instructions, which are those of the servers, are set here. c are those of the connection to the servers, see clientOptions.
func (a *app) assemble(ctx context.Context, f *agentFlags, o agent.Options, c client.Options) (_ *assembled, err error) {
	setup, err := a.setup(f)
	if err != nil {
		return nil, err
	}
	model, chosen, err := setup.choose(f.modelFlags)
	if err != nil {
		return nil, err
	}
	b := &assembled{
		model: chosen, mode: o.Mode, models: setup.models,
		choose: func(name string) (agent.Model, chosenModel, error) {
			named := modelFlags{model: name}
			// Another id is at the same place; what a session has noted of a provider alone is no more than its model's name says.
			if setup.set.LookupModel(name) == nil && (!f.again || f.modelFlags.url != "") {
				named.provider, named.url = f.provider, f.modelFlags.url
			}
			return setup.choose(named)
		},
	}
	crew, err := a.engage(ctx, f, setup)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	audit, err := a.openDecisions(setup)
	b.close = func() {
		if b.toolbox != nil {
			if err := b.toolbox.Close(); err != nil {
				a.warn("%v", err)
			}
		}
		crew.close(ctx)
		audit.close()
	}
	if err != nil {
		return nil, err
	}
	b.servers, b.decided = crew.servers, func(e agent.Decided) { audit.record(e, b.origin) }
	approved := &approvals{setup.state, setup.set, crew, b.origin}
	o.Allowed, b.always = approved.allowed, approved.always
	b.trusted = func(tool string) string { return a.trustWord(approved, tool) }
	if err = context.Cause(ctx); err != nil {
		return nil, err
	}
	if b.toolbox, err = agent.Dial(ctx, crew.handler, c); err != nil {
		return nil, connectError{"the servers", bare(err)}
	}
	if crew.folder != "" {
		o.System += "\n\nThe servers of your tools work in the folder " + crew.folder + ": what is relative in their arguments begins there, not in the current folder."
	}
	tools := &instructed{memorizing: memorizing{b.toolbox}, ask: crew.instructions}
	o.Instructions = tools.instructions
	b.agent = agent.New(model, tools, o)
	return b, nil
}

// longestSettle is how long a task waits for servers that are starting: what comes later is told to the model then.
const longestSettle = 15 * time.Second

// listPrompts returns the prompts of all servers. Servers without prompts have an empty list.
func (b *assembled) listPrompts(ctx context.Context) ([]mcp.Prompt, error) {
	prompts, err := client.All(b.toolbox.Client().Prompts(ctx))
	if notOffered(err) {
		err = nil
	}
	memorize(prompts)
	return prompts, err
}
