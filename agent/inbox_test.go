package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/mcp"
)

// Every question gets an answer, and a question that its server has given up is not asked.
func TestQuestionsEnd(t *testing.T) {
	left := errors.New("left")
	for _, tt := range []struct {
		name string
		do   func(box *inbox, r *run, endRun, endAsker context.CancelCauseFunc)
		want error
	}{
		{"answered", func(box *inbox, r *run, _, _ context.CancelCauseFunc) { r.handleItem(box.takeItems()[0]) }, nil},
		{"the calls are over", func(box *inbox, _ *run, _, _ context.CancelCauseFunc) { box.takeItems(); box.closeInbox() }, left},
		{"the calls were over", func(box *inbox, _ *run, _, _ context.CancelCauseFunc) { box.closeInbox() }, errCallOver},
		{"the run is over", func(_ *inbox, _ *run, endRun, _ context.CancelCauseFunc) { endRun(nil) }, errCallOver},
		{"the call is over", func(box *inbox, r *run, _, endAsker context.CancelCauseFunc) {
			endAsker(left)
			r.handleItem(box.takeItems()[0])
		}, left},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				box := newInbox()
				runCtx, endRun := context.WithCancelCause(t.Context())
				defer endRun(nil)
				ctx, endAsker := context.WithCancelCause(t.Context())
				defer endAsker(nil)
				r := &run{Agent: New(nil, nil, nil), ctx: runCtx, cancel: endRun, yield: func(Event, error) bool { return true }}
				a := &questionTarget{inbox: box, ctx: runCtx}
				got, times := make(chan error, 1), 0
				go func() {
					got <- a.askInRun(ctx, &question{ask: func(context.Context, *run) error { times++; return nil }})
				}()
				synctest.Wait()
				tt.do(box, r, endRun, endAsker)
				synctest.Wait()
				if tt.name == "the calls are over" { // close does not refuse items that were taken out: the run's end does it
					endAsker(left)
					synctest.Wait()
				}
				if err := <-got; !errors.Is(err, tt.want) || (times == 1) != (tt.want == nil) {
					t.Errorf("%v, asked %d times, want %v", err, times, tt.want)
				}
				box.closeInbox()
				if a.inbox.putItem(inboxItem{}) {
					t.Error("a box that is closed takes something")
				}
			})
		})
	}
}

// Unread progress does not pile up, and the progress of other calls is kept.
func TestProgressIsBounded(t *testing.T) {
	box, one, other := newInbox(), &toolCall{}, &toolCall{}
	for i := range 10 * maxItems {
		box.putItem(inboxItem{task: one, progress: &mcp.ProgressParams{Progress: float64(i)}})
	}
	box.putItem(inboxItem{task: other, progress: &mcp.ProgressParams{}})
	posts := box.takeItems()
	if n := len(posts); n != maxItems+1 || posts[n-2].progress.Progress != 10*maxItems-1 || posts[n-1].task != other {
		t.Errorf("%d are kept, the last is %+v", n, posts[n-2].progress)
	}
}
