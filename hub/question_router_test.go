package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// Of two calls of one client, the router cannot tell which one has asked. If it has opened the
// questions for the wrong ones, the end of one call does not lose the question of the other one.
func TestQuestionsOfOneCallerAreExchanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newQuestionRouter("s", false)
		release := make(chan struct{})
		answer := mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
			select {
			case <-release:
				return &mcp.Result{}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		var calls []*trackedCall
		for range 2 {
			call, err := r.startCall(WithAnswerer(t.Context(), answer), Caller{Principal: "ada"}, &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"ask"}`)})
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, call)
		}
		answers := make(chan error, 2)
		ask := func() {
			go func() {
				_, err := r.answerQuestion(t.Context(), &mcp.Request{Method: mcp.MethodElicit})
				answers <- err
			}()
			time.Sleep(2 * askingPause) // of the bubble's clock: the call gives its turn away
			synctest.Wait()
		}
		ask()
		first, second := calls[0], calls[1]
		if second.openCount > 0 {
			first, second = second, first
		}
		if ask(); first.openCount != 1 || second.openCount != 1 {
			t.Fatalf("%d and %d open questions", first.openCount, second.openCount)
		}
		// The first question was second's. With its answer the server completes that call.
		r.endCall(second, true)
		synctest.Wait()
		if len(answers) > 0 {
			t.Fatalf("a question is lost: %v", <-answers)
		}
		close(release)
		for range calls {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		r.endCall(first, true)
	})
}
