package agent

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// inbox collects what happens beside the goroutine of a run while tools run. putItem never
// blocks, since that goroutine may be busy, asking the user for example.
type inbox struct {
	mu     sync.Mutex
	items  []inboxItem
	closed bool
	wake   chan struct{} // holds a token if there might be items
}

// inboxItem is one event: progress or the end of a call, the end of a task, a question of a server,
// or a notice.
type inboxItem struct {
	task     *toolCall
	progress *mcp.ProgressParams
	ended    *CallEnded
	taskEnd  *taskEnd
	question *question
	notice   string
}

// maxItems is the length from which on only the latest progress of each call is kept.
const maxItems = 256

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// putItem reports whether the run will see the item.
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

// replaceProgress replaces the last progress of the same call. It reports false for the first
// progress of a call.
func (b *inbox) replaceProgress(p inboxItem) bool {
	for i := len(b.items) - 1; i >= 0; i-- {
		if old := &b.items[i]; old.task == p.task && old.progress != nil {
			old.progress = p.progress
			return true
		}
	}
	return false
}

// takeItems waits for the next items of this inbox or of others that share its wake channel.
func (b *inbox) takeItems(others ...*inbox) []inboxItem {
	for {
		posts := b.takeReady()
		for _, other := range others {
			posts = append(posts, other.takeReady()...)
		}
		if len(posts) > 0 {
			return posts
		}
		<-b.wake
	}
}

// takeReady returns the items that are there.
func (b *inbox) takeReady() []inboxItem {
	b.mu.Lock()
	defer b.mu.Unlock()
	posts := b.items
	b.items = nil
	return posts
}

// closeInbox refuses the questions that are left, and later items.
func (b *inbox) closeInbox() {
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

// question is a server's question while its tool runs.
type question struct {
	ctx      context.Context // ends when the server stops to wait
	asked    Asked
	ask      func(ctx context.Context, r *run) error // runs on the goroutine of the run
	asksUser bool                                    // ask asks the user
	answer   chan error                              // buffered, holds the one answer
}

var (
	errNoCall   = mcp.Errorf(jsonrpc.CodeInternal, "nobody can be asked now: no call is being made")
	errCallOver = mcp.Errorf(jsonrpc.CodeInternal, "nobody can be asked any more: the call is over")
)

// questionTarget is a running call, to which its server's questions belong.
type questionTarget struct {
	inbox        *inbox
	ctx          context.Context // of the run
	server       string
	serverUnsure bool        // another server may have asked
	sampled      *usageMeter // counts the tokens of samples
	// hold waits for the task of the call for a short time. nil: the call waits for its end.
	hold func(ctx context.Context, task *client.Task, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error)
}

type targetKey struct{}

// askInRun has q asked on the goroutine of the run and waits for that. After an error the caller
// must not read what q.ask has written: it may still run.
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

// answerQuestion asks q and sends its answer.
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
