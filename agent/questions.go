package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

func (b *Toolbox) addTarget(a *questionTarget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = append(b.targets, a)
}

func (b *Toolbox) removeTarget(a *questionTarget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = slices.DeleteFunc(b.targets, func(other *questionTarget) bool { return other == a })
}

// targetOf returns the call that a server's question belongs to; nil if no call is running. ctx
// carries the call if the question came over the call's own connection. Otherwise any running
// call may have caused it; if those calls are of several servers, the asking server is unknown.
func (b *Toolbox) targetOf(ctx context.Context) *questionTarget {
	if a, ok := ctx.Value(targetKey{}).(*questionTarget); ok {
		return a
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.targets) == 0 {
		return nil
	}
	a := *b.targets[len(b.targets)-1]
	for _, other := range b.targets {
		if other.server != a.server {
			a.server, a.serverUnsure = "", true
			break
		}
	}
	return &a
}

// elicitInRun asks the user on the goroutine of the run.
func (b *Toolbox) elicitInRun(ctx context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
	a := b.targetOf(ctx)
	if a == nil {
		return nil, errNoCall
	}
	if a.server != "" {
		named := *q
		named.Server = a.server
		named.Message = strings.TrimPrefix(q.Message, mcpwire.AskerPrefix(a.server)) // the user sees the server anyway
		q = &named
	}
	var res *mcp.ElicitResult
	err := a.askInRun(ctx, &question{asked: Asked{Server: q.Server, Message: q.Message}, asksUser: true, ask: func(ctx context.Context, _ *run) (err error) {
		res, err = b.elicit(ctx, q)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// sampleInRun asks the run for permission to use its model, and uses it on the goroutine of the
// request, so that the run stays able to handle other items.
func (b *Toolbox) sampleInRun(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	a := b.targetOf(ctx)
	if a == nil {
		return nil, errNoCall
	}
	server := cmp.Or(a.server, b.client.Server().Info.Name)
	var m Model
	err := a.askInRun(ctx, &question{asked: Asked{Server: server, Message: lastMessageLine(p), Sampling: true}, ask: func(ctx context.Context, r *run) error {
		m = r.model
		return r.permitSampling(ctx, server, !a.serverUnsure, p)
	}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })()
	res, usage, err := sampleModel(ctx, m, p, func(notice string) { a.inbox.putItem(inboxItem{notice: notice}) })
	a.sampled.addUsage(usage)
	if err != nil { // the cause is for the user, not for the server
		a.inbox.putItem(inboxItem{notice: fmt.Sprintf("%s got no answer of the model: %v", server, err)})
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the model has not replied")
	}
	return res, nil
}
