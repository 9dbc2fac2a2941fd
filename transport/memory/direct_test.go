package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/direct"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// A call lends its goroutine only if its caller waits for nothing but the response.
func TestWhichCallsLendTheirGoroutine(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		var ran string
		s.handler = tool(func(context.Context, string, *mcp.Request) (*mcp.Result, error) {
			ran = goroutineID()
			return textResult("x"), nil
		})
		c := s.connect(t)
		defer c.Close()
		synctest.Wait() // for the reading loops
		_, _, err := call(ctx, c, "x", nil)
		if want := !s.isWired && ctx.Done() == nil; err != nil || (ran == goroutineID()) != want {
			t.Errorf("the handler ran on the caller's goroutine: %v, want %v; %v", ran == goroutineID(), want, err)
		}
		synctest.Wait()
		if _, _, err := call(ctx, c, "x", func(mcp.Notification) {}); err != nil || ran == goroutineID() {
			t.Errorf("a call with notifications lent its goroutine; %v", err)
		}
	})
}

// A result that is handled where it is written does not wait, so it is counted by no quota.
func TestLargeResultsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both sync.WaitGroup
		both.Add(2)
		large := strings.Repeat("x", 64<<10)
		s := setup{server: transport.ServerOptions{Quota: transport.NewQuota(transport.Limits{ClientBytes: 80 << 10})}}
		s.handler = tool(func(context.Context, string, *mcp.Request) (*mcp.Result, error) {
			both.Done()
			both.Wait()
			return textResult(large), nil
		})
		c := s.connect(t)
		defer c.Close()
		synctest.Wait()
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if text, _, err := call(context.Background(), c, "x", nil); err != nil || text != large {
					t.Errorf("%d bytes, %v", len(text), err)
				}
			})
		}
		calls.Wait()
	})
}

// The end of a context ends the wait, although the handler ignores its own context.
func TestContextEndsTheWait(t *testing.T) {
	for _, isWired := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			s := setup{isWired: isWired}
			s.handler = tool(func(context.Context, string, *mcp.Request) (*mcp.Result, error) {
				<-release
				return textResult("late"), nil
			})
			c := s.connect(t)
			defer c.Close()
			defer close(release)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
			defer cancel()
			start := time.Now()
			if _, _, err := call(ctx, c, "x", nil); err == nil || err.Error() != "enough" || time.Since(start) != time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	}
}

// blockingNotified is a handler that blocks the server's reading loop.
type blockingNotified struct {
	mcp.Handler
	release chan struct{}
}

func (b blockingNotified) NotifyMCP(context.Context, mcp.Notification) { <-b.release }

// A context ends the wait also while the server's reading loop is blocked, and requests do not
// overtake the notification that blocks it.
func TestContextEndsTheWaitForTheServersLoop(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		if ctx.Done() == nil {
			return
		}
		var isReleased atomic.Bool
		b := blockingNotified{tool(func(context.Context, string, *mcp.Request) (*mcp.Result, error) {
			if !isReleased.Load() {
				t.Error("a request overtook a notification")
			}
			return textResult("x"), nil
		}), make(chan struct{})}
		s.handler = b
		c := s.connect(t)
		defer c.Close()
		if err := c.(*closing).Transport.(mcp.Notifier).Notify(ctx, mcp.Notification{Method: "notifications/custom"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, _, err := call(ctx, c, "x", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		isReleased.Store(true)
		close(b.release)
		if _, _, err := call(t.Context(), c, "x", nil); err != nil {
			t.Error(err)
		}
	})
}

// Questions and notifications of the server never run on the goroutine of a handler, which may hold
// a lock that they need.
func TestInboundHasGoroutinesOfItsOwn(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		var handler, notified string
		s.in = &lockingInbound{inbound: newInbound(), note: func() { notified = goroutineID() }}
		s.handler = tool(func(ctx context.Context, _ string, req *mcp.Request) (*mcp.Result, error) {
			handler = goroutineID()
			params := json.RawMessage(`{"level":"error","data":"x"}`)
			return textResult("x"), req.Peer.Notify(ctx, mcp.Notification{Method: mcp.NotificationMessage, Params: params})
		})
		c := s.connect(t)
		defer c.Close()
		synctest.Wait()
		if _, err := c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"x"}`), LogLevel: mcp.LevelInfo}); err != nil {
			t.Fatal(err)
		}
		if notified == "" || notified == handler || notified == goroutineID() {
			t.Errorf("the handler ran on %s, Notify on %q, the caller on %s", handler, notified, goroutineID())
		}
	})
}

type lockingInbound struct {
	*inbound
	note func()
}

func (in *lockingInbound) Notify(mcp.Notification) { in.note() }

// Each side sees the frames in the order of a wire.
func TestTapOrder(t *testing.T) {
	seen := map[string][]string{}
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		var mu sync.Mutex
		var order []string
		tap := func(side string, check transport.Tap) transport.Tap {
			return func(f transport.Frame) {
				check(f)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, side+" "+f.Kind.String()+" "+string(f.Data))
			}
		}
		s.handler = mcp.HandlerFunc(fixture)
		s.client.Capabilities.Elicitation = &mcp.ElicitationCapability{}
		s.client.Tap, s.server.Tap = tap("client", mcptest.ClientTap(t)), tap("server", mcptest.ServerTap(t))
		c := s.connect(t)
		defer c.Close()
		synctest.Wait()
		handshake := len(order) // in which the fixture sends one or two changes
		for _, name := range []string{"echo", "progress", "ask", "panic", "echo"} {
			synctest.Wait()
			notify := func(mcp.Notification) {}
			if ctx.Done() == nil && name != "progress" {
				notify = nil
			}
			_, _, _ = call(ctx, c, name, notify)
		}
		synctest.Wait()
		for _, side := range []string{"client", "server"} {
			var own []string
			for _, line := range order[handshake:] {
				if strings.HasPrefix(line, side) {
					own = append(own, line)
				}
			}
			key := fmt.Sprint(s.client.Revision, ctx.Done() == nil, side)
			if seen[key] == nil {
				seen[key] = own
			} else if !slices.Equal(seen[key], own) {
				t.Errorf("in process:\n%s\nover a wire:\n%s", strings.Join(seen[key], "\n"), strings.Join(own, "\n"))
			}
		}
		checkCauses(t, order)
	})
}

// checkCauses fails if a frame is received before it was sent.
func checkCauses(t *testing.T, order []string) {
	t.Helper()
	sent := map[string]int{}
	for _, line := range order {
		side, rest, _ := strings.Cut(line, " ")
		kind, data, _ := strings.Cut(rest, " ")
		if kind == "sent" {
			sent[side+data]++
			continue
		}
		other := map[string]string{"client": "server", "server": "client"}[side]
		if sent[other+data]--; sent[other+data] < 0 {
			t.Errorf("the %s received before it was sent: %s", side, data)
		}
	}
}

// A handler calls its own server, through the same client, as deep as the limit of calls allows.
func TestRecursion(t *testing.T) {
	for _, r := range eras {
		for _, isWired := range []bool{false, true} {
			s := setup{isWired: isWired, client: transport.ClientOptions{Revision: r}}
			var c mcp.Transport
			var depth, deepest int
			s.handler = tool(func(context.Context, string, *mcp.Request) (*mcp.Result, error) {
				depth++
				deepest = max(deepest, depth)
				defer func() { depth-- }()
				_, _, err := call(context.Background(), c, "again", nil)
				return nil, err
			})
			c = s.connect(t)
			_, _, err := call(context.Background(), c, "again", nil)
			if err == nil || !strings.Contains(err.Error(), "more than 1024 requests are in flight") || deepest != 1024 {
				t.Errorf("depth %d: %v", deepest, err)
			}
			c.Close()
		}
	}
}

// 64 calls wait for each other.
func TestCallsInFlightRunAtTheSameTime(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		const width = 64
		s.client.Tap, s.server.Tap = mcptest.ClientTap(t), mcptest.ServerTap(t)
		var all sync.WaitGroup
		all.Add(width)
		s.handler = tool(func(context.Context, string, *mcp.Request) (*mcp.Result, error) {
			all.Done()
			all.Wait()
			return textResult("x"), nil
		})
		c := s.connect(t)
		defer c.Close()
		var calls sync.WaitGroup
		for range width {
			calls.Go(func() {
				if _, _, err := call(ctx, c, "x", nil); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	})
}

// A refusal does not wait for room, and reaches the caller.
func TestRefusals(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		s.server.MaxConcurrent = 1
		s.handler = mcp.HandlerFunc(fixture)
		c := s.connect(t)
		defer c.Close()
		hanging, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _, _, _ = call(hanging, c, "hang", nil) }()
		synctest.Wait()
		if _, _, err := call(ctx, c, "echo", nil); err == nil || !strings.Contains(err.Error(), "requests are in flight") {
			t.Errorf("got %v", err)
		}
		cancel()
		<-done
		synctest.Wait()
		if _, err := c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage("{\"name\":\"\xff\"}")}); err == nil {
			t.Error("a request that is not UTF-8 was accepted")
		}
		if _, _, err := call(ctx, c, "echo", nil); err != nil {
			t.Error(err)
		}
	})
}

// The default limits end a call that its handler would not end, and cancel the handler.
func TestDefaultLimits(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		s.handler = mcp.HandlerFunc(fixture)
		c := s.connect(t)
		defer c.Close()
		start := time.Now()
		_, _, err := call(ctx, c, "hang", nil)
		var late *timeout.DefaultError
		if took := time.Since(start); !errors.As(err, &late) || took < timeout.DefaultIdle || took > timeout.DefaultIdle+2*time.Minute {
			t.Errorf("%v after %v", err, took)
		}
		if _, _, err := call(ctx, c, "echo", nil); err != nil {
			t.Error(err)
		}
	})
}

// Only responses are delivered to a client: everything else reaches its Inbound, on the reading
// loop.
func TestWhatIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := memory.Pipe()
		in := newInbound()
		served := make(chan struct{})
		go func() {
			defer close(served)
			frame, _ := far.Read() // server/discover
			_ = far.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}`, rawjson.Lookup(frame, "id")))
		}()
		c, err := overconn.Connect(context.Background(), near, in, "", transport.ClientOptions{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		<-served
		synctest.Wait() // until the frame has been handled
		for frame, want := range map[string]bool{
			`{"jsonrpc":"2.0","id":9,"result":{}}`:                          true,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`: false,
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                      false,
			`[{"jsonrpc":"2.0","id":9,"result":{}}]`:                        false,
			`{"jsonrpc":"2.0","id":9`:                                       false,
		} {
			if got := far.(direct.Conn).Deliver([]byte(frame), direct.Sending{}); got != want {
				t.Errorf("%s was delivered: %v, want %v", frame, got, want)
			}
		}
		if len(in.notes) > 0 {
			t.Error("a notification reached the Inbound")
		}
	})
}

// Many calls of every kind at once break no rule of the protocol, at either side.
func TestManyCallsOfEveryKind(t *testing.T) {
	eachWay(t, func(t *testing.T, s setup, ctx context.Context) {
		s.handler = mcp.HandlerFunc(fixture)
		s.client.Capabilities.Elicitation = &mcp.ElicitationCapability{}
		s.client.Tap, s.server.Tap = mcptest.ClientTap(t), mcptest.ServerTap(t)
		c := s.connect(t)
		defer c.Close()
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() {
				for j := range 8 {
					name := []string{"echo", "progress", "panic", "ask"}[(i+j)%4]
					var notify func(mcp.Notification)
					got := 0
					if name == "progress" {
						notify = func(mcp.Notification) { got++ }
					}
					text, res, err := call(ctx, c, name, notify)
					switch {
					case name == "echo" && text != `{"a":1}`, name == "panic" && err == nil, name != "panic" && err != nil,
						name == "progress" && (text != "done" || got != 3),
						name == "ask" && text != `hello "Ada"` && res.Type != mcp.ResultInputRequired:
						t.Errorf("%s: %q, %d notifications, %v", name, text, got, err)
					}
				}
			})
		}
		calls.Wait()
	})
}
