package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// Tools are what an agent can call. Its methods are called concurrently.
type Tools interface {
	// List returns the tools that there are now.
	List(ctx context.Context) ([]mcp.Tool, error)
	// Changed holds a token when there may be others than List has returned last.
	Changed() <-chan struct{}
	// Call runs a tool. progress takes what it says meanwhile, on the goroutine of the call.
	Call(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error)
}

// Toolbox is the tools of one MCP server, which may be a gateway of many.
type Toolbox struct {
	client  *client.Client
	changed chan struct{}
	watch   *client.Watch // nil where the server does not say what changes
	work    sync.WaitGroup
}

var _ Tools = (*Toolbox)(nil)

// Dial connects to a server: target and options are those of [client.Dial]. Close the toolbox when it is done with.
func Dial(ctx context.Context, target any, o client.Options) (*Toolbox, error) {
	c, err := client.Dial(ctx, target, o)
	if err != nil {
		return nil, err
	}
	b := &Toolbox{client: c, changed: make(chan struct{}, 1)}
	w, err := c.Watch(ctx, mcp.SubscriptionFilter{ToolsListChanged: true})
	switch {
	case err == nil:
		b.watch = w
		b.work.Go(b.follow)
	case !errors.Is(err, client.ErrNothingToWatch):
		c.Close()
		return nil, err
	}
	return b, nil
}

// follow keeps the token of changes.
func (b *Toolbox) follow() {
	for range b.watch.Changes() { // an interruption counts as one
		select {
		case b.changed <- struct{}{}:
		default:
		}
	}
}

// List implements [Tools].
func (b *Toolbox) List(ctx context.Context) ([]mcp.Tool, error) {
	return client.All(b.client.Tools(ctx))
}

// Changed implements [Tools].
func (b *Toolbox) Changed() <-chan struct{} { return b.changed }

// Call implements [Tools].
func (b *Toolbox) Call(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	return b.client.CallTool(ctx, mcp.CallToolParams{Name: use.Name, Arguments: use.Input}, client.CallOptions{OnProgress: progress})
}

// Client returns the connection, for what is beside tools: prompts, resources and instructions.
func (b *Toolbox) Client() *client.Client { return b.client }

// Close ends the connection.
func (b *Toolbox) Close() error {
	if b.watch != nil {
		b.watch.Close()
		b.work.Wait()
	}
	return b.client.Close()
}
