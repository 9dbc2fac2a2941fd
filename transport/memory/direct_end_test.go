package memory_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// This file tests how connections end, and calls that end in an unusual way.

// Connections end while calls of all kinds are made. No call is lost, and nothing crashes.
func TestCloseDuringCalls(t *testing.T) {
	for round := range 60 {
		s := setup{client: transport.ClientOptions{Revision: eras[round%2]}}
		s.handler = mcp.HandlerFunc(fixture)
		c := s.connect(t)
		ctx, cancel := context.WithCancel(context.Background())
		var calls sync.WaitGroup
		var begun atomic.Int32
		for i := range 8 {
			calls.Go(func() {
				for {
					var err error
					switch i % 4 {
					case 0:
						_, _, err = call(context.Background(), c, "echo", nil)
					case 1:
						_, _, err = call(ctx, c, "echo", nil)
					case 2:
						_, _, err = call(ctx, c, "progress", func(mcp.Notification) {})
					case 3:
						limited, stop := context.WithTimeout(ctx, time.Millisecond)
						_, _, err = call(limited, c, "hang", nil)
						stop()
						if errors.Is(err, context.DeadlineExceeded) {
							err = nil
						}
					}
					begun.Add(1)
					if err != nil {
						if !errors.Is(err, mcp.ErrConnection) {
							t.Errorf("call %d: %v", i%4, err)
						}
						return
					}
				}
			})
		}
		for begun.Load() < 200 {
			runtime.Gosched()
		}
		c.Close()
		calls.Wait()
		cancel()
	}
}

// downInbound notes when the connection is reported as lost.
type downInbound struct {
	*inbound
	isDown atomic.Bool
}

func (in *downInbound) Down(err error) { in.isDown.Store(true); in.inbound.Down(err) }

// No frame reaches the client after Down, although handlers still return results.
func TestNoFrameAfterDown(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		in := &downInbound{inbound: newInbound()}
		var late atomic.Int32
		release := make(chan struct{})
		s.in = in
		s.client.Tap = func(f transport.Frame) {
			if in.isDown.Load() && f.Kind == transport.Received {
				late.Add(1)
			}
		}
		s.server.DrainTimeout, s.server.Logger, s.client.Logger = time.Millisecond, quiet, quiet
		s.handler = tool(func(context.Context, string, *mcp.Request) (*mcp.Result, error) {
			<-release // ignores its context
			return textResult("late"), nil
		})
		near, far := memory.Pipe()
		if s.isWired {
			near, far = wired{near}, wired{far}
		}
		serving, stop := context.WithCancel(context.Background())
		served := make(chan struct{})
		go func() { defer close(served); _ = overconn.Serve(serving, far, s.handler, s.server) }()
		c, err := overconn.Connect(context.Background(), near, in, "", s.client)
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() { _, _, err := call(ctx, c, "x", nil); failed <- err }()
		synctest.Wait()
		stop()
		<-served
		synctest.Wait()
		if !in.isDown.Load() {
			t.Error("the connection was not reported as lost")
		}
		close(release)
		if err := <-failed; err == nil {
			t.Error("the call should have failed")
		}
		c.Close()
		if late.Load() > 0 {
			t.Errorf("%d frames were received after Down", late.Load())
		}
	})
}

// askingInbound answers questions with a function.
type askingInbound struct {
	*inbound
	answer func() *mcp.ElicitResult
}

func (in *askingInbound) ServeMCP(context.Context, *mcp.Request) (*mcp.Result, error) {
	return &mcp.Result{Value: in.answer()}, nil
}

// The answer to a question closes the client, which does not wait for the answer longer than it
// waits over a wire.
func TestAnswerCloses(t *testing.T) {
	for _, isWired := range []bool{false, true} {
		for _, ctx := range []context.Context{context.Background(), nil} {
			synctest.Test(t, func(t *testing.T) {
				if ctx == nil {
					ctx = t.Context()
				}
				in := &askingInbound{inbound: newInbound()}
				s := setup{isWired: isWired, in: in, handler: mcp.HandlerFunc(fixture)}
				s.client = transport.ClientOptions{Revision: mcp.LatestLegacyRevision, Capabilities: mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}}
				c := s.connect(t)
				closed := make(chan time.Duration, 1)
				in.answer = func() *mcp.ElicitResult {
					start := time.Now()
					c.Close()
					closed <- time.Since(start)
					return &mcp.ElicitResult{Action: mcp.ElicitDecline}
				}
				if _, _, err := call(ctx, c, "ask", nil); !errors.Is(err, mcp.ErrClosed) {
					t.Errorf("got %v", err)
				}
				if took := <-closed; took != 2*time.Second {
					t.Errorf("Close took %v", took)
				}
			})
		}
	}
}

// Close ends the handlers that respect their context at once.
func TestCloseCancelsHandlers(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		s.handler = mcp.HandlerFunc(fixture)
		c := s.connect(t)
		failed := make(chan error, 1)
		go func() { _, _, err := call(ctx, c, "hang", nil); failed <- err }()
		synctest.Wait()
		start := time.Now()
		c.Close()
		if err := <-failed; !errors.Is(err, mcp.ErrClosed) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// A handler that closes the connection of its own call waits as long as over a wire.
func TestHandlerCloses(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		var c mcp.Transport
		s.handler = tool(func(context.Context, string, *mcp.Request) (*mcp.Result, error) {
			c.Close()
			return textResult("x"), nil
		})
		c = s.connect(t)
		start := time.Now()
		if _, _, err := call(ctx, c, "x", nil); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
		c.Close()
	})
}

// exiting is a result that ends the goroutine of its encoder.
type exiting struct{}

func (exiting) MarshalJSON() ([]byte, error) { runtime.Goexit(); return nil, nil }

// A handler, or the encoding of its result, ends its goroutine as t.FailNow does. A caller that
// still waits gets an error, and nothing is counted for ever.
func TestGoexit(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		s.server.MaxConcurrent = 1
		s.handler = tool(func(_ context.Context, name string, _ *mcp.Request) (*mcp.Result, error) {
			switch name {
			case "handler":
				runtime.Goexit()
			case "encoder":
				return &mcp.Result{Value: exiting{}}, nil
			}
			return textResult("x"), nil
		})
		c := s.connect(t)
		synctest.Wait()
		for _, name := range []string{"handler", "encoder"} {
			var err error
			isReturned := false
			var calling sync.WaitGroup
			calling.Go(func() {
				_, _, err = call(ctx, c, name, nil)
				isReturned = true
			})
			calling.Wait()
			var refused *mcp.Error
			if isLent := !s.isWired && ctx.Done() == nil; isReturned == isLent || !isLent && !errors.As(err, &refused) {
				t.Errorf("%s: the call returned %v: %v", name, isReturned, err)
			}
			synctest.Wait()
			if _, _, err := call(ctx, c, "echo", nil); err != nil {
				t.Errorf("after %s: %v", name, err)
			}
			synctest.Wait()
		}
		start := time.Now()
		c.Close()
		if took := time.Since(start); took != 0 {
			t.Errorf("Close waited %v for calls that have ended", took)
		}
	})
}

// panickingSink counts the requests that get no response. It panics once after it was armed.
type panickingSink struct {
	dropped atomic.Int32
	isArmed atomic.Bool
	kind    framesink.Direction // of the frame at which it panics
}

func (d *panickingSink) AddFrame(kind framesink.Direction, _ []byte, _ map[string][]string) {
	if kind == d.kind && d.isArmed.CompareAndSwap(true, false) {
		panic("tapped")
	}
}

func (d *panickingSink) LinkRequest(context.Context, jsonrpc.ID)            {}
func (d *panickingSink) DropRequest(framesink.Direction, jsonrpc.ID, error) { d.dropped.Add(1) }

// A sink that panics on the caller's goroutine leaves no call behind.
func TestPanicOfASink(t *testing.T) {
	for _, r := range eras {
		for _, kind := range []framesink.Direction{framesink.Sent, framesink.Received} {
			synctest.Test(t, func(t *testing.T) {
				sink := &panickingSink{kind: kind}
				s := setup{handler: mcp.HandlerFunc(fixture), client: transport.ClientOptions{Revision: r}, server: transport.ServerOptions{MaxConcurrent: 1}, sink: sink}
				c := s.connect(t)
				synctest.Wait()
				sink.isArmed.Store(true)
				func() {
					defer func() {
						if p := recover(); p != "tapped" {
							t.Errorf("recovered %v", p)
						}
					}()
					_, _, err := call(context.Background(), c, "echo", nil)
					t.Errorf("the call returned: %v", err)
				}()
				if n := sink.dropped.Load(); n != 1 {
					t.Errorf("%v: %d requests have no response", kind, n)
				}
				for range 3 {
					synctest.Wait()
					if _, _, err := call(context.Background(), c, "echo", nil); err != nil {
						t.Errorf("%v: %v", kind, err)
					}
				}
				start := time.Now()
				if c.Close(); time.Since(start) != 0 {
					t.Errorf("Close waited %v", time.Since(start))
				}
			})
		}
	}
}

// An end that was read from before can be served and connected, as over any other connection.
func TestEndThatWasReadBefore(t *testing.T) {
	for name, isServer := range map[string]bool{"Serve": true, "Connect": false} {
		synctest.Test(t, func(t *testing.T) {
			near, far := memory.Pipe()
			from, to := far, near
			if isServer {
				from, to = near, far
			}
			_ = from.Write([]byte(`"preamble"`))
			if _, err := to.Read(); err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() {
				served <- overconn.Serve(t.Context(), far, mcp.HandlerFunc(fixture), transport.ServerOptions{Logger: quiet})
			}()
			c, err := overconn.Connect(t.Context(), near, newInbound(), "", transport.ClientOptions{Logger: quiet})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, _, err := call(context.Background(), c, "echo", nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			c.Close()
			<-served
		})
	}
}

// A tap may use its connection: it may close it, or wait.
func TestTapClosesConnection(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		s.handler = mcp.HandlerFunc(fixture)
		var c mcp.Transport
		var isArmed atomic.Bool
		s.client.Tap = func(f transport.Frame) {
			if f.Kind == transport.Sent && isArmed.CompareAndSwap(true, false) {
				c.Close()
			}
		}
		c = s.connect(t)
		synctest.Wait()
		isArmed.Store(true)
		if _, _, err := call(ctx, c, "echo", nil); err == nil {
			t.Error("a call on a closed connection returns a result")
		}
		c.Close()
	})
}
