package hub

import (
	"context"
	"strings"
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
			call, err := r.startCall(WithAnswerer(t.Context(), answer), Caller{Principal: "ada", Session: "s"}, &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"ask"}`)})
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
		r.endCall(second, nil)
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
		r.endCall(first, nil)
	})
}

// Calls of one session share a turn until one of their items is known to ask. Calls of one
// principal, which may be of several clients, take turns.
func TestTurnsOfOnePrincipal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		session       string
		asks, hasTurn bool
	}{
		{"one session, unknown", "s", false, true},
		{"one session, asks", "s", true, false},
		{"one principal, unknown", "", false, false},
		{"one principal, asks", "", true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newQuestionRouter("s", false)
			req := &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"ask"}`)}
			if c.asks {
				r.rememberItem(itemOf(req), false)
			}
			caller := Caller{Principal: "ada", Session: c.session}
			first, err := r.startCall(t.Context(), caller, req)
			if err != nil {
				t.Fatal(err)
			}
			started := make(chan *trackedCall, 1)
			go func() {
				second, _ := r.startCall(t.Context(), caller, req)
				started <- second
			}()
			synctest.Wait()
			if runs := len(started) > 0; runs != c.hasTurn {
				t.Errorf("%s: the second call runs beside the first: %v, want %v", c.name, runs, c.hasTurn)
			}
			r.endCall(first, nil)
			synctest.Wait()
			if len(started) == 0 {
				t.Errorf("%s: the second call does not run after the first", c.name)
			}
			r.endCall(<-started, nil)
		})
	}
}

// crowd is a router with two calls that run beside each other, because their tool has never asked.
type crowd struct {
	t       *testing.T
	router  *questionRouter
	calls   []*trackedCall
	asked   []chan struct{} // receives a value when the client of a call is asked
	answers chan error      // receives the error of each question
}

var ask = &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"ask"}`)}

func newCrowd(t *testing.T, callers ...Caller) *crowd {
	c := &crowd{t: t, router: newQuestionRouter("s", false), answers: make(chan error, 10)}
	c.router.rememberItem(itemOf(ask), true)
	for _, caller := range callers {
		c.startCall(caller)
	}
	return c
}

// startCall adds a call of another client.
func (c *crowd) startCall(caller Caller) {
	asked := make(chan struct{}, 10)
	answer := mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	call, err := c.router.startCall(WithAnswerer(c.t.Context(), answer), caller, ask)
	if err != nil {
		c.t.Fatal(err)
	}
	c.calls, c.asked = append(c.calls, call), append(c.asked, asked)
}

// askQuestion lets the server ask, and returns when nothing more happens.
func (c *crowd) askQuestion(ctx context.Context) {
	go func() {
		_, err := c.router.answerQuestion(ctx, &mcp.Request{Method: mcp.MethodElicit})
		c.answers <- err
	}()
	synctest.Wait()
}

// check fails unless each client was asked as often as wanted since the last check.
func (c *crowd) check(what string, want ...int) {
	c.t.Helper()
	synctest.Wait()
	for i, asked := range c.asked {
		if got := len(asked); got != want[i] {
			c.t.Errorf("%s: client %d is asked %d questions, want %d", what, i, got, want[i])
		}
		for len(asked) > 0 {
			<-asked
		}
	}
}

// Two clients of one principal whose calls run at the same time never get each other's question: it
// waits until only one call can be its cause.
func TestClientsOfOnePrincipalAskAtOnce(t *testing.T) {
	t.Parallel()
	for name, callers := range map[string][]Caller{
		"no sessions":        {{Principal: "ada"}, {Principal: "ada"}},
		"two sessions":       {{Principal: "ada", Session: "1"}, {Principal: "ada", Session: "2"}},
		"one with a session": {{Principal: "ada", Session: "1"}, {Principal: "ada"}},
		"no principal":       {{}, {}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, callers...)
			c.askQuestion(t.Context())
			c.askQuestion(t.Context())
			c.check(name+", while both run", 0, 0)
			c.router.endCall(c.calls[0], nil)
			c.check(name+", after the first was answered", 0, 2)
			c.router.endCall(c.calls[1], nil)
			<-c.answers
			<-c.answers
		})
	}
}

// A client that cancels its call hands none of its questions to another client of its principal,
// and takes none of the other's questions away.
func TestClientOfOnePrincipalCancels(t *testing.T) {
	t.Parallel()
	ada := Caller{Principal: "ada"}
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, ada, ada)
		c.askQuestion(t.Context())
		c.router.endCall(c.calls[0], context.Canceled)
		c.check("the question waited at the cancellation", 0, 0)
		if err := <-c.answers; err == nil || !strings.Contains(err.Error(), "one of them was cancelled") {
			t.Errorf("the question: %v", err)
		}
		c.askQuestion(t.Context())
		c.check("a question after it", 0, 1)
		c.router.endCall(c.calls[1], nil)
		<-c.answers
	})
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, ada)
		c.askQuestion(t.Context())
		c.check("the first call", 1)
		time.Sleep(2 * askingPause) // of the bubble's clock: the call gives its turn away
		c.startCall(ada)
		c.askQuestion(t.Context())
		c.check("the second call", 0, 1)
		c.router.endCall(c.calls[0], context.Canceled)
		if err := <-c.answers; err == nil {
			t.Error("the question of the cancelled call was answered")
		}
		c.askQuestion(t.Context()) // as a server does if its question has failed
		if err := <-c.answers; err == nil || !strings.Contains(err.Error(), "one of them was cancelled") {
			t.Errorf("the next question: %v", err)
		}
		time.Sleep(time.Minute)
		if c.check("after the cancellation", 0, 0); len(c.answers) > 0 {
			t.Errorf("the question of the other client has ended: %v", <-c.answers)
		}
		c.router.endCall(c.calls[1], nil)
		<-c.answers
	})
}

// A call that was cancelled keeps its turn for a moment: the server may have asked before it knew.
// The question does not reach the client of the next call.
func TestQuestionCrossesCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newQuestionRouter("s", false)
		r.rememberItem(itemOf(ask), false)
		ctx := WithAnswerer(t.Context(), mcp.HandlerFunc(func(context.Context, *mcp.Request) (*mcp.Result, error) {
			t.Error("a client is asked")
			return &mcp.Result{}, nil
		}))
		first, err := r.startCall(ctx, Caller{Principal: "ada"}, ask)
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan *trackedCall)
		go func() {
			call, _ := r.startCall(ctx, Caller{Principal: "bob"}, ask)
			second <- call
		}()
		synctest.Wait()
		r.endCall(first, context.Canceled)
		synctest.Wait()
		if _, err := r.answerQuestion(t.Context(), &mcp.Request{Method: mcp.MethodElicit}); err == nil {
			t.Error("the question was answered")
		}
		began := time.Now()
		r.endCall(<-second, nil)
		if took := time.Since(began); took > askingPause {
			t.Errorf("the next call has waited %v", took)
		}
	})
}

// A call that ends while its answer waits for the turn does not take the turn.
func TestEndedCallTakesNoTurn(t *testing.T) {
	t.Parallel()
	r := newQuestionRouter("s", false)
	call := newTrackedCall(t.Context(), Caller{}, ask)
	r.queue = append(r.queue, call)
	r.endCall(call, nil)
	if err := r.awaitTurn(call.ctx, call, turnLimit); err == nil || len(r.calls) > 0 || len(r.queue) > 0 {
		t.Errorf("%v; %d calls run, %d wait", err, len(r.calls), len(r.queue))
	}
}
