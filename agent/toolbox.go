package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// Tools are what an agent can call. Its methods are called concurrently. Tools belong to one agent: another one that takes the
// token of a change leaves the first without it.
type Tools interface {
	// List returns the tools that there are now.
	List(ctx context.Context) ([]mcp.Tool, error)
	// Changed holds a token when there may be others than List has returned last.
	Changed() <-chan struct{}
	// Call runs a tool. progress takes what it says meanwhile, on the goroutine of the call. An error, no result at all and a
	// panic are the call's result, which the model reads. Call returns soon when ctx ends: the run waits for that. ctx carries
	// values that a [Toolbox] needs to tell where questions of its server belong.
	Call(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error)
}

// noTools are the tools of an agent that has none.
type noTools struct{}

func (noTools) List(context.Context) ([]mcp.Tool, error) { return nil, nil }
func (noTools) Changed() <-chan struct{}                 { return nil }
func (noTools) Call(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	return nil, errors.New("there are no tools")
}

// Toolbox is the tools of one MCP server, which may be a gateway of many.
type Toolbox struct {
	client  *client.Client
	changed chan struct{}
	work    sync.WaitGroup

	watch     *client.Watch // nil where the server does not say what changes
	stopWatch func()

	elicit func(ctx context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error)

	mu      sync.Mutex        // guards what is below
	targets []*questionTarget // of the calls that are being made
	origins map[string]origin // by the names that do not say it; what such a name is of never changes
}

// origin is what a tool's name is of.
type origin struct{ server, name string }

var _ Tools = (*Toolbox)(nil)

// Dial connects to a server: target and options are those of [client.Dial]. ctx bounds the dial only: close the toolbox when it is
// done with.
//
// Where o.Elicit is set, it is called on the goroutine of the run whose call has led to the question, never at the same time as
// [Options.Approve]; where no call of a run is being made, the server is told that nobody can be asked. Where o.Sample is nil,
// servers may use the model of that run, tools of their own included, as far as [Options.Mode] and [Options.Approve] allow, and
// [Options.MaxSteps] times in a run.
func Dial(ctx context.Context, target any, o client.Options) (*Toolbox, error) {
	b := &Toolbox{changed: make(chan struct{}, 1), elicit: o.Answers.Elicit}
	if o.Answers.Elicit != nil {
		o.Answers.Elicit = b.elicitInRun
	}
	if o.Answers.Sample == nil {
		o.Answers.Sample, o.Answers.SampleTools = b.sampleInRun, true
	}
	c, err := client.Dial(ctx, target, &o)
	if err != nil {
		return nil, err
	}
	b.client = c
	if err := b.watchTools(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return b, nil
}

// watchTools watches the tools until Close. ctx bounds how long the server has to acknowledge that.
func (b *Toolbox) watchTools(ctx context.Context) error {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	unbound := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	w, err := b.client.Watch(life, mcp.SubscriptionFilter{ToolsListChanged: true})
	bounded := unbound()
	switch {
	case err == nil && bounded:
		b.watch, b.stopWatch = w, func() { end(nil) }
		b.work.Go(b.followChanges)
		return nil
	case err == nil: // it was acknowledged as ctx ended
		w.Close()
		err = context.Cause(ctx)
	case errors.Is(err, client.ErrNothingToWatch):
		err = nil
	}
	end(nil)
	return err
}

// followChanges keeps the token of changes.
func (b *Toolbox) followChanges() {
	for range b.watch.Changes() { // an interruption counts as one
		select {
		case b.changed <- struct{}{}:
		default:
		}
	}
}

// List implements [Tools].
func (b *Toolbox) List(ctx context.Context) ([]mcp.Tool, error) {
	tools, err := client.All(b.client.Tools(ctx))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.origins == nil {
		b.origins = map[string]origin{}
	}
	for i := range tools {
		t := &tools[i]
		if server, name, ok := wirename.Split(t.Name, t.Meta[wirename.MetaServer], t.Meta[wirename.MetaThing]); ok && wirename.Marked(t.Name) {
			b.origins[t.Name] = origin{server, name}
		}
	}
	return tools, nil
}

// Origin returns the server of a gateway that has a tool, and what the tool is called there, by its name in a list so far; false where
// that does not say so.
func (b *Toolbox) Origin(tool string) (server, name string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o, ok := b.origins[tool]; ok {
		return o.server, o.name, true
	}
	return wirename.Split(tool, nil, nil)
}

// Server is the default of [Options.Server].
func (b *Toolbox) Server(tool string) string {
	if server, _, ok := b.Origin(tool); ok {
		return server
	}
	return serverOf(tool)
}

// Changed implements [Tools].
func (b *Toolbox) Changed() <-chan struct{} { return b.changed }

// Call implements [Tools].
func (b *Toolbox) Call(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	if a, ok := ctx.Value(targetKey{}).(*questionTarget); ok {
		b.addTarget(a)
		defer b.removeTarget(a)
	}
	return b.client.CallTool(ctx, mcp.CallToolParams{Name: use.Name, Arguments: use.Input}, client.CallOptions{OnProgress: progress})
}

// Client returns the connection, for what is beside tools: prompts, resources and instructions.
func (b *Toolbox) Client() *client.Client { return b.client }

// Close ends the connection.
func (b *Toolbox) Close() error {
	if b.watch != nil {
		b.watch.Close()
		b.stopWatch()
		b.work.Wait()
	}
	return b.client.Close()
}
