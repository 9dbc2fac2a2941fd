package agent

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// inbox takes what happens beside the goroutine of a run while tools run. Who puts something in does not wait, whatever that
// goroutine is doing: it may be asking the user.
type inbox struct {
	mu     sync.Mutex
	items  []inboxItem
	closed bool
	wake   chan struct{} // holds a token when something has been put in
}

// inboxItem is one of what happens: a call's progress or end, a question of a server, or something to be noticed.
type inboxItem struct {
	task     *toolCall
	progress *mcp.ProgressParams
	ended    *CallEnded
	question *question
	notice   string
}

// maxItems is how many posts may wait before of a call's progress only the latest is kept.
const maxItems = 256

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// putItem reports whether somebody will see the post.
func (b *inbox) putItem(p inboxItem) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if p.progress != nil && len(b.items) >= maxItems && b.replaceProgress(p) {
		return true
	}
	b.items = append(b.items, p)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// replaceProgress puts progress in the place of what the call has said before.
func (b *inbox) replaceProgress(p inboxItem) bool {
	for i := len(b.items) - 1; i >= 0; i-- {
		if old := &b.items[i]; old.task == p.task && old.progress != nil {
			old.progress = p.progress
			return true
		}
	}
	return false
}

// takeItems waits for the next posts.
func (b *inbox) takeItems() []inboxItem {
	for {
		b.mu.Lock()
		posts := b.items
		b.items = nil
		b.mu.Unlock()
		if len(posts) > 0 {
			return posts
		}
		<-b.wake
	}
}

// close refuses what is left.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, p := range b.items {
		if p.question != nil {
			p.question.answer <- errCallOver
		}
	}
	b.items = nil
}

// question is what a server asks while its tools run.
type question struct {
	ctx      context.Context // ends when nobody waits for the answer any more
	asked    Asked
	ask      func(ctx context.Context, r *run) error // asks, on the goroutine of the run
	asksUser bool                                    // do asks the user
	answer   chan error                              // has room for one
}

// Errors that servers get whose questions cannot be asked.
var (
	errNoCall   = mcp.Errorf(jsonrpc.CodeInternal, "nobody can be asked now: no call is being made")
	errCallOver = mcp.Errorf(jsonrpc.CodeInternal, "nobody can be asked any more: the call is over")
)

// questionTarget is where questions go that belong to a call.
type questionTarget struct {
	inbox        *inbox
	ctx          context.Context // of the run
	server       string
	serverUnsure bool        // it may be another server that asks
	sampled      *usageMeter // takes what samples have taken
}

type targetKey struct{}

// askInRun has a question asked on the goroutine of the run, and waits for that. What do has written must not be read after an error.
func (a *questionTarget) askInRun(ctx context.Context, q *question) error {
	q.ctx, q.answer = ctx, make(chan error, 1)
	if !a.inbox.putItem(inboxItem{question: q}) {
		return errCallOver
	}
	select {
	case err := <-q.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.ctx.Done():
		return errCallOver
	}
}

// answerQuestion asks a question.
func (r *run) answerQuestion(q *question) {
	if q.ctx.Err() != nil || r.ctx.Err() != nil {
		q.answer <- errCallOver
		return
	}
	if r.emit(q.asked); r.ctx.Err() != nil {
		q.answer <- errCallOver
		return
	}
	ctx, cancel := context.WithCancelCause(q.ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(r.endCause()) })()
	if q.asksUser {
		r.setState(Waiting)
		defer r.setState(Acting)
	}
	if r.ctx.Err() != nil {
		q.answer <- errCallOver
		return
	}
	q.answer <- q.ask(ctx, r)
}
