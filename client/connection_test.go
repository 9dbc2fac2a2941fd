package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// states records the states that OnState receives.
type states struct {
	mu  sync.Mutex
	all []client.State
}

func (s *states) add(state client.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, state)
}

func (s *states) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	for _, state := range s.all {
		text += fmt.Sprintf("%v ", state.Status)
	}
	return text
}

func TestReconnectAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		l := &fakeDialer{name: "lost"}
		l.handler = tools(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if param(req, "name") == `"hang"` {
				close(hang)
				<-ctx.Done()
			}
			return raw(done), nil
		})
		var seen states
		c := dialFake(t, l, client.Options{OnState: seen.add})
		failed := make(chan error)
		go func() {
			_, err := client.Call[string](t.Context(), c, "hang", nil)
			failed <- err
		}()
		<-hang
		began := time.Now()
		l.loseConnection("exit status 3")
		mustBe(t, <-failed, mcp.ErrConnection)
		if state := c.State(); state.Status != client.Lost || state.Attempt != 1 || state.Err == nil || state.Next.Sub(began) <= 0 {
			t.Errorf("the state is %+v", state)
		}
		if _, err := client.Call[string](t.Context(), c, "t", nil); err != nil { // waits
			t.Fatal(err)
		}
		if took := time.Since(began); took < 125*time.Millisecond || took > 250*time.Millisecond {
			t.Errorf("reconnecting took %v, want between half of Restart.Base (250 ms) and all of it", took)
		}
		if l.count() != 2 {
			t.Errorf("dialed %d times", l.count())
		}
		c.Close()
		if got, want := seen.String(), "connecting ready lost connecting ready closed "; got != want {
			t.Errorf("states: %s, want %s", got, want)
		}
	})
}

func TestRestartsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeDialer{name: "bounded", handler: tools(returns(done)), fails: func(n int) error {
			if n > 0 {
				return errors.New("no such file")
			}
			return nil
		}}
		c := dialFake(t, l, client.Options{Restart: client.Restart{Max: 3, Base: time.Second, Cap: 3 * time.Second}})
		began := time.Now()
		l.loseConnection("gone")
		_, err := client.Call[string](t.Context(), c, "t", nil)
		mustBe(t, err, mcp.ErrConnection)
		if took := time.Since(began); took < 3*time.Second || took > 6*time.Second {
			t.Errorf("gave up after %v, want between half of 1+2+3 s and all of it", took)
		}
		if state := c.State(); state.Status != client.Failed || l.count() != 4 {
			t.Errorf("the state is %v after %d dials", state, l.count())
		}
		time.Sleep(time.Hour)
		if _, err := client.Call[string](t.Context(), c, "t", nil); !errors.Is(err, mcp.ErrConnection) || l.count() != 4 {
			t.Errorf("later: %v after %d dials", err, l.count())
		}

		l.mu.Lock()
		l.fails = nil
		l.mu.Unlock()
		if err := c.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Call[string](t.Context(), c, "t", nil); err != nil {
			t.Error(err)
		}
	})
}

func TestStableConnectionResetsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeDialer{name: "stable", handler: tools(returns(done))}
		c := dialFake(t, l, client.Options{Restart: client.Restart{Max: 2}})
		for range 5 {
			time.Sleep(time.Minute)
			l.loseConnection("now and then")
			if _, err := client.Call[string](t.Context(), c, "t", nil); err != nil {
				t.Fatal(err)
			}
		}
		// A crash loop with two attempts: the first crash ends a connection that lasted a minute,
		// so it restarts the count, and the third one exceeds it.
		for i := range 3 {
			if i == 0 {
				time.Sleep(time.Minute)
			}
			l.loseConnection("crash loop")
			_, err := client.Call[string](t.Context(), c, "t", nil)
			if (err != nil) != (i == 2) {
				t.Errorf("call after crash %d: %v", i, err)
			}
		}
	})
}

func TestOnlyListsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeDialer{name: "replay"}
		calls := map[string]int{}
		crash := func(req *mcp.Request) {
			if calls[req.Method]++; calls[req.Method] == 1 {
				l.loseConnection("crashed during the request")
			}
		}
		l.handler = handlers{
			mcp.MethodCallTool: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
				crash(req)
				return raw(done), nil
			},
			mcp.MethodReadResource: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
				crash(req)
				return raw(`{"contents":[]}`), nil
			},
			mcp.MethodListTools: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
				crash(req)
				return raw(`{"tools":[]}`), nil
			},
		}
		c := dialFake(t, l, client.Options{})
		_, err := client.Call[string](t.Context(), c, "t", nil)
		mustBe(t, err, mcp.ErrConnection)
		_, err = c.ReadResource(t.Context(), "x://y")
		mustBe(t, err, mcp.ErrConnection)
		if _, err := client.All(c.Tools(t.Context())); err != nil {
			t.Errorf("a list after a lost connection: %v, want it to be requested again", err)
		}
		if calls[mcp.MethodCallTool] != 1 || calls[mcp.MethodReadResource] != 1 || calls[mcp.MethodListTools] != 2 {
			t.Errorf("calls: %v", calls)
		}
	})
}

func TestWaitingForAConnectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeDialer{name: "waiting", handler: tools(returns(done)), fails: func(n int) error {
			if n > 0 {
				return errors.New("not yet")
			}
			return nil
		}}
		c := dialFake(t, l, client.Options{Limits: client.Limits{Connect: 10 * time.Second}, Restart: client.Restart{Max: 10, Base: time.Minute, Cap: time.Hour}})
		l.loseConnection("gone")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.Call[string](ctx, c, "t", nil)
		mustBe(t, err, context.DeadlineExceeded)
		began := time.Now()
		_, err = client.Call[string](t.Context(), c, "t", nil)
		var late *client.TimeoutError
		if !errors.As(err, &late) || late.Kind != client.TimeoutConnect || !errors.Is(err, mcp.ErrConnection) || time.Since(began) != 10*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

func TestConnectLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handlers{mcp.MethodDiscover: func(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		began := time.Now()
		_, err := client.Dial(t.Context(), &fakeDialer{name: "silent", handler: h}, &client.Options{})
		var late *client.TimeoutError
		if !errors.As(err, &late) || late.Kind != client.TimeoutConnect || time.Since(began) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	for _, when := range []client.Status{client.Ready, client.Lost, client.Connecting, client.Failed} {
		t.Run(when.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dialing := make(chan struct{})
				l := &fakeDialer{name: "close", handler: tools(func(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				})}
				l.handler.(handlers)[mcp.MethodDiscover] = func(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
					if l.count() > 1 {
						close(dialing)
						<-ctx.Done()
					}
					return raw(discovery), nil
				}
				restart := client.Restart{Base: time.Second, Cap: time.Second}
				if when == client.Failed {
					restart.Max = -1
				}
				c := dialFake(t, l, client.Options{Restart: restart})
				failed := make(chan error)
				call := func() {
					_, err := client.Call[string](t.Context(), c, "t", nil)
					failed <- err
				}
				if when == client.Ready {
					go call()
				} else {
					l.loseConnection("gone")
					if when == client.Connecting {
						<-dialing
					}
				}
				synctest.Wait()
				if got := c.State().Status; got != when {
					t.Fatalf("the state is %v, want %v", got, when)
				}
				if when != client.Ready && when != client.Failed {
					go call()
					synctest.Wait()
				}
				var closes sync.WaitGroup
				for range 3 {
					closes.Go(func() {
						if err := c.Close(); err != nil {
							t.Error(err)
						}
					})
				}
				closes.Wait()
				if when != client.Failed {
					mustBe(t, <-failed, mcp.ErrClosed)
				}
				_, err := client.Call[string](t.Context(), c, "t", nil)
				mustBe(t, err, mcp.ErrClosed)
				_, err = c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListTools})
				mustBe(t, err, mcp.ErrClosed)
				mustBe(t, err, transport.ErrUnsent)
				_, err = c.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true})
				mustBe(t, err, mcp.ErrClosed)
				mustBe(t, c.Reconnect(t.Context()), mcp.ErrClosed)
				if got := c.State().Status; got != client.Closed {
					t.Errorf("the state is %v", got)
				}
			})
		})
	}
}

func TestWrongVerdictIsReplaced(t *testing.T) {
	unsupported := mcpwire.UnsupportedVersion(string(mcp.LatestRevision), []mcp.Revision{mcp.Revision20251125})
	t.Run("at dial", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			verdicts := new(transport.Verdicts)
			l := &fakeDialer{name: "era"}
			l.handler = handlers{mcp.MethodDiscover: func(context.Context, *mcp.Request) (*mcp.Result, error) {
				if verdicts.Lookup(l.Endpoint()) != "" {
					return nil, mcp.MethodNotFound("server/discover")
				}
				return raw(discovery), nil
			}}
			verdicts.Remember(l.Endpoint(), mcp.LatestRevision)
			dialFake(t, l, client.Options{Wire: client.Wire{Verdicts: verdicts}})
			if l.count() != 2 || verdicts.Lookup(l.Endpoint()) != "" {
				t.Errorf("dialed %d times, the verdict is %q", l.count(), verdicts.Lookup(l.Endpoint()))
			}
		})
	})
	t.Run("in a call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			verdicts := new(transport.Verdicts)
			l := &fakeDialer{name: "era"}
			l.handler = tools(func(context.Context, *mcp.Request) (*mcp.Result, error) {
				if l.count() == 1 {
					return nil, unsupported
				}
				return raw(done), nil
			})
			c := dialFake(t, l, client.Options{Wire: client.Wire{Verdicts: verdicts}})
			verdicts.Remember(l.Endpoint(), mcp.LatestRevision)
			if _, err := client.Call[string](t.Context(), c, "t", nil); err != nil {
				t.Error(err)
			}
			if l.count() != 2 || verdicts.Lookup(l.Endpoint()) != "" {
				t.Errorf("dialed %d times, the verdict is %q", l.count(), verdicts.Lookup(l.Endpoint()))
			}
		})
	})
	t.Run("but not a pinned revision", func(t *testing.T) {
		l := &fakeDialer{name: "era", handler: tools(func(context.Context, *mcp.Request) (*mcp.Result, error) { return nil, unsupported })}
		c := dialFake(t, l, client.Options{Wire: client.Wire{Revision: mcp.LatestRevision}})
		var answered *mcp.Error
		if _, err := client.Call[string](t.Context(), c, "t", nil); !errors.As(err, &answered) || l.count() != 1 {
			t.Errorf("got %v after %d dials", err, l.count())
		}
	})
}

func TestOldConnectionIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeDialer{name: "old", handler: tools(returns(done))}
		c := dialFake(t, l, client.Options{})
		old := l.inbound()
		l.loseConnection("gone")
		if _, err := client.Call[string](t.Context(), c, "t", nil); err != nil {
			t.Fatal(err)
		}
		old.Down(errors.New("gone, again"))
		if got := c.State().Status; got != client.Ready {
			t.Errorf("the state is %v", got)
		}
	})
}

func TestReconnectWhileReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeDialer{name: "again", handler: tools(returns(done))}
		c := dialFake(t, l, client.Options{Restart: client.Restart{Base: time.Hour, Cap: time.Hour}})
		began := time.Now()
		if err := c.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.count() != 2 || time.Since(began) > time.Second {
			t.Errorf("dialed %d times in %v", l.count(), time.Since(began))
		}
	})
}

func TestReconnectWithoutRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeDialer{name: "by hand", handler: tools(returns(done))}
		c := dialFake(t, l, client.Options{Restart: client.Restart{Max: -1}})
		l.loseConnection("gone")
		_, err := client.Call[string](t.Context(), c, "t", nil)
		mustBe(t, err, mcp.ErrConnection)
		if c.Transport() != nil {
			t.Error("a transport that is lost is still in use")
		}
		if err := c.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := client.Call[string](t.Context(), c, "t", nil); got != "done" || err != nil || c.Transport() == nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestStateString(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			state client.State
			want  string
		}{
			{client.State{Status: client.Ready}, "ready"},
			{client.State{Status: client.Lost, Err: mcp.ErrConnection, Attempt: 2, Next: time.Now().Add(time.Second)}, "lost (the connection failed), attempt 2 in 1s"},
			{client.State{Status: client.Failed, Err: mcp.ErrConnection}, "failed (the connection failed)"},
		} {
			if got := test.state.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		}
	})
}
