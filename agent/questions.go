package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

func (b *Toolbox) join(a *asker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.askers = append(b.askers, a)
}

func (b *Toolbox) leave(a *asker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.askers = slices.DeleteFunc(b.askers, func(other *asker) bool { return other == a })
}

// asking returns where a question goes; nil where it cannot be asked. Which call has led to it is known where ctx carries the values
// of that call; from other connections it may be of any call that is being made, and of which server is not known where those are of
// several.
func (b *Toolbox) asking(ctx context.Context) *asker {
	if a, ok := ctx.Value(askerKey{}).(*asker); ok {
		return a
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.askers) == 0 {
		return nil
	}
	a := *b.askers[len(b.askers)-1]
	for _, other := range b.askers {
		if other.server != a.server {
			a.server, a.unsure = "", true
			break
		}
	}
	return &a
}

// elicitInRun asks the user on the goroutine of the run.
func (b *Toolbox) elicitInRun(ctx context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
	a := b.asking(ctx)
	if a == nil {
		return nil, errNobody
	}
	if a.server != "" {
		named := *q
		named.Server = a.server
		q = &named
	}
	var res *mcp.ElicitResult
	err := a.ask(ctx, &question{asked: Asked{q.Server, q.Message, Elicitation}, waiting: true, do: func(ctx context.Context, _ *run) (err error) {
		res, err = b.elicit(ctx, q)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// sampleInRun asks the run whether its model may be used, and uses it: on this goroutine, so that what else happens is seen.
func (b *Toolbox) sampleInRun(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	a := b.asking(ctx)
	if a == nil {
		return nil, errNobody
	}
	server := cmp.Or(a.server, b.client.ServerInfo().Name)
	var m Model
	err := a.ask(ctx, &question{asked: Asked{server, lastSaid(p), Sampling}, do: func(ctx context.Context, r *run) error {
		m = r.model
		return r.permit(ctx, server, !a.unsure, p)
	}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })()
	res, usage, err := sample(ctx, m, p, func(notice string) { a.inbox.put(post{notice: notice}) })
	a.sampled.add(usage)
	if err != nil { // which is the user's business, not the server's
		a.inbox.put(post{notice: fmt.Sprintf("%s got no answer of the model: %v", server, err)})
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the model has not replied")
	}
	return res, nil
}
