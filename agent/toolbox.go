package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/callmark"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// Tools are the tools of one agent. Their methods are called concurrently. They must not be
// shared between agents: an agent that takes the token from Changed leaves the other without it.
//
// Tools may have two more methods. Resources() [Resources] returns the resources of the servers,
// nil for none. Origin(tool string) (server, name string, ok bool) returns the server of a tool,
// and the tool's name there. [Toolbox] has both. Without Origin, or if ok is false, the server is
// the part of the tool's name before __, or the whole name if it has several parts.
type Tools interface {
	// List returns the current tools.
	List(ctx context.Context) ([]mcp.Tool, error)
	// Changed returns a channel that holds a token when the tools may differ from the last list.
	Changed() <-chan struct{}
	// Call runs a tool. It calls progress on its own goroutine. An error, a missing result and a
	// panic become the call's result, which the model reads. Call must return soon after ctx
	// ends: the run waits for it. ctx carries values by which a [Toolbox] knows to which call a
	// server's question belongs.
	Call(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error)
}

// Toolbox holds the tools of one MCP server, which may be a gateway of many.
type Toolbox struct {
	client  *client.Client
	changed chan struct{}
	work    sync.WaitGroup

	watch     *client.Watch // nil if the server does not report changes
	stopWatch func()

	resources toolboxResources

	elicit func(ctx context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error)

	mu      sync.Mutex        // guards the fields below
	targets []*questionTarget // the running calls
	origins map[string]origin // by qualified names that do not show it; an origin never changes
}

// origin is the server of a gateway that has a tool, and the tool's name there.
type origin struct{ server, name string }

var _ Tools = (*Toolbox)(nil)

// Dial connects to a server: [client.Dial] describes target and options. ctx bounds the dial
// only. The caller must close the toolbox.
//
// If o.Answers.Elicit is set, it is called on the goroutine of the run that made the call with the
// question, and never at the same time as [Options.Approve]. A question without a running call is
// an error for the server. If o.Answers.Sample is nil, servers may use the model of the run, also
// with tools of their own, as far as [Options.Mode] and [Options.Approve] allow, at most
// [Limits.MaxSteps] times a run.
func Dial(ctx context.Context, target any, o client.Options) (*Toolbox, error) {
	b := &Toolbox{changed: make(chan struct{}, 1), elicit: o.Answers.Elicit}
	b.resources = toolboxResources{b, newResourceWatches()}
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

// watchTools watches the lists of tools and resources until Close. ctx bounds how long the server
// may take to acknowledge.
func (b *Toolbox) watchTools(ctx context.Context) error {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	unbound := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	w, err := b.client.Watch(life, mcp.SubscriptionFilter{ToolsListChanged: true, ResourcesListChanged: true})
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

// followChanges puts the token into the channel of Changed.
func (b *Toolbox) followChanges() {
	for range b.watch.Changes() { // an interruption counts as one
		select {
		case b.changed <- struct{}{}:
		default:
		}
	}
}

// List implements [Tools]. The list of a server without tools is empty.
func (b *Toolbox) List(ctx context.Context) ([]mcp.Tool, error) {
	tools, err := client.All(b.client.Tools(ctx))
	if isMissingMethod(err) && b.client.Server().Capabilities.Tools == nil { // it may have resources only
		return nil, nil
	}
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

// Origin returns the server of a gateway that has a tool, and the tool's name there. ok is false
// if neither the tool's name nor a list so far says so.
func (b *Toolbox) Origin(tool string) (server, name string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o, ok := b.origins[tool]; ok {
		return o.server, o.name, true
	}
	return wirename.Split(tool, nil, nil)
}

// Changed implements [Tools].
func (b *Toolbox) Changed() <-chan struct{} { return b.changed }

// Call implements [Tools].
func (b *Toolbox) Call(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	a, inRun := ctx.Value(targetKey{}).(*questionTarget)
	if inRun {
		b.addTarget(a)
		defer b.removeTarget(a)
	}
	options := client.CallOptions{OnProgress: progress}
	if mark := callmark.From(ctx); mark != "" {
		options.Meta = mcp.Meta{callmark.Meta: mark}
	}
	params := mcp.CallToolParams{Name: use.Name, Arguments: use.Input}
	if !inRun || a.hold == nil || !b.client.Server().Revision.Modern() { // before, a client decides about each call whether it is a task
		return b.client.CallTool(ctx, params, options)
	}
	task, result, err := b.client.StartTool(ctx, params, options)
	if task == nil {
		return result, err
	}
	return a.hold(ctx, task, progress)
}

// Client returns the connection, for prompts and instructions.
func (b *Toolbox) Client() *client.Client { return b.client }

// Close ends the connection.
func (b *Toolbox) Close() error {
	b.resources.watches.closeWatches()
	if b.watch != nil {
		b.watch.Close()
		b.stopWatch()
		b.work.Wait()
	}
	return b.client.Close()
}
