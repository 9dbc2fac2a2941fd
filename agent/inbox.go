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
	posts  []post
	closed bool
	wake   chan struct{} // holds a token when something has been put in
}

// post is one of what happens: a call's progress or end, a question of a server, or something to be noticed.
type post struct {
	task     *task
	progress *mcp.ProgressParams
	ended    *CallEnded
	question *question
	notice   string
}

// maxWaiting is how many posts may wait before of a call's progress only the latest is kept.
const maxWaiting = 256

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// put reports whether somebody will see the post.
func (b *inbox) put(p post) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if p.progress != nil && len(b.posts) >= maxWaiting && b.renew(p) {
		return true
	}
	b.posts = append(b.posts, p)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// renew puts progress in the place of what the call has said before.
func (b *inbox) renew(p post) bool {
	for i := len(b.posts) - 1; i >= 0; i-- {
		if old := &b.posts[i]; old.task == p.task && old.progress != nil {
			old.progress = p.progress
			return true
		}
	}
	return false
}

// take waits for the next posts.
func (b *inbox) take() []post {
	for {
		b.mu.Lock()
		posts := b.posts
		b.posts = nil
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
	for _, p := range b.posts {
		if p.question != nil {
			p.question.answer <- errOver
		}
	}
	b.posts = nil
}

// question is what a server asks while its tools run.
type question struct {
	ctx     context.Context // ends when nobody waits for the answer any more
	asked   Asked
	do      func(ctx context.Context, r *run) error // asks, on the goroutine of the run
	waiting bool                                    // do asks the user
	answer  chan error                              // has room for one
}

// Errors that servers get whose questions cannot be asked.
var (
	errNobody = mcp.Errorf(jsonrpc.CodeInternal, "nobody can be asked now: no call is being made")
	errOver   = mcp.Errorf(jsonrpc.CodeInternal, "nobody can be asked any more: the call is over")
)

// asker is where questions go that belong to a call.
type asker struct {
	inbox   *inbox
	ctx     context.Context // of the run
	server  string
	unsure  bool   // it may be another server that asks
	sampled *meter // takes what samples have taken
}

type askerKey struct{}

// ask has a question asked on the goroutine of the run, and waits for that. What do has written must not be read after an error.
func (a *asker) ask(ctx context.Context, q *question) error {
	q.ctx, q.answer = ctx, make(chan error, 1)
	if !a.inbox.put(post{question: q}) {
		return errOver
	}
	select {
	case err := <-q.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.ctx.Done():
		return errOver
	}
}

// answer asks a question.
func (r *run) answer(q *question) {
	if q.ctx.Err() != nil || r.ctx.Err() != nil {
		q.answer <- errOver
		return
	}
	if r.tell(q.asked); r.ctx.Err() != nil {
		q.answer <- errOver
		return
	}
	ctx, cancel := context.WithCancelCause(q.ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(r.ended()) })()
	if q.waiting {
		r.become(Waiting)
		defer r.become(Acting)
	}
	if r.ctx.Err() != nil {
		q.answer <- errOver
		return
	}
	q.answer <- q.do(ctx, r)
}
