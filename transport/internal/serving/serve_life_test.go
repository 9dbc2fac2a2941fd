package serving_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/wiretest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/transporttest"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// halfOpen is a Conn to a peer that has stopped sending, once its input is closed, and still
// reads.
type halfOpen struct {
	in  chan []byte
	out chan []byte

	once sync.Once
	done chan struct{}
}

func newHalfOpen() *halfOpen {
	return &halfOpen{in: make(chan []byte, 16), out: make(chan []byte, 1024), done: make(chan struct{})}
}

func (h *halfOpen) Read() ([]byte, error) {
	select {
	case frame, ok := <-h.in:
		if !ok {
			return nil, io.EOF
		}
		return frame, nil
	case <-h.done:
		return nil, mcp.ErrClosed
	}
}

func (h *halfOpen) Write(frame []byte) error {
	select {
	case <-h.done:
		return mcp.ErrClosed
	default:
	}
	h.out <- frame
	return nil
}

func (h *halfOpen) Close() error   { h.once.Do(func() { close(h.done) }); return nil }
func (h *halfOpen) HalfOpen() bool { return true }

func (h *halfOpen) sent() (frames []string) {
	for {
		select {
		case frame := <-h.out:
			frames = append(frames, string(frame))
		default:
			return frames
		}
	}
}

const (
	sleepCall  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep",` + modernMeta + `}}`
	hangCall   = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang",` + modernMeta + `}}`
	listenCall = `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
)

func init() {
	tools["sleep"] = func(w *testServer, c ctx, _ *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
		time.Sleep(time.Second)
		w.saw("slept: %v", context.Cause(c))
		return text("slept")
	}
	tools["sleep long"] = func(w *testServer, c ctx, _ *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
		time.Sleep(time.Hour)
		return text("slept long")
	}
}

// A client that stops sending, as a shell's pipe does, still gets its answers; what would never end
// is cancelled.
func TestHalfOpenDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, conn := newTestServer(), newHalfOpen()
		for _, frame := range []string{sleepCall, hangCall, listenCall} {
			conn.in <- []byte(frame)
		}
		go func() { synctest.Wait(); close(conn.in) }()
		begin := time.Now()
		if err := overconn.Serve(background, conn, w, transport.ServerOptions{Logger: quiet, DrainTimeout: 3 * time.Second, Tap: mcptest.ServerTap(t)}); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d != 3*time.Second {
			t.Errorf("Serve took %v", d)
		}
		frames := conn.sent()
		all := strings.Join(frames, "\n")
		for _, want := range []string{"slept", "acknowledged", `"id":2,"error":{"code":-32603,"message":"the connection ends, and the call was not done within 3s"}`} {
			if len(frames) != 3 || !strings.Contains(all, want) {
				t.Errorf("sent %s, want %s", all, want)
			}
		}
		if got := w.seen(); !strings.Contains(got, "slept: <nil>") || !strings.Contains(got, "hang: the connection failed: the client has gone") || !strings.Contains(got, "listen: cancelled by the client") {
			t.Errorf("the handlers saw\n%s", got)
		}
	})
}

func TestDrainIsOverWhenNothingIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newHalfOpen()
		conn.in <- []byte(sleepCall)
		close(conn.in)
		begin := time.Now()
		if err := overconn.Serve(background, conn, newTestServer(), transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t, mcptest.SentOnly())}); err != nil || time.Since(begin) != time.Second {
			t.Errorf("Serve took %v, %v", time.Since(begin), err)
		}
		if frames := conn.sent(); len(frames) != 1 {
			t.Errorf("sent %q", frames)
		}
	})
}

// A handler that ignores its context is left behind in the end.
func TestDrainGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := memory.Pipe()
		_ = near.Write([]byte(strings.Replace(sleepCall, `"sleep"`, `"sleep long"`, 1)))
		go func() { time.Sleep(time.Second); near.Close() }()
		begin := time.Now()
		if err := overconn.Serve(background, far, newTestServer(), transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t, mcptest.SentOnly())}); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("Serve took %v, %v", time.Since(begin), err)
		}
		time.Sleep(time.Hour)
	})
}

func TestServeEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		end  func(cancel context.CancelCauseFunc, near transport.Conn, conn *transporttest.FailingConn)
		want error
		seen string
	}{
		{"the client closes", func(_ context.CancelCauseFunc, near transport.Conn, _ *transporttest.FailingConn) { near.Close() }, nil, "the connection failed: the client has gone"},
		{"the context ends", func(cancel context.CancelCauseFunc, _ transport.Conn, _ *transporttest.FailingConn) { cancel(broken) }, broken, ""},
		{"the connection fails", func(_ context.CancelCauseFunc, _ transport.Conn, conn *transporttest.FailingConn) {
			conn.Fail <- broken
		}, broken, "the connection failed: the client has gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := memory.Pipe()
				conn := &transporttest.FailingConn{Conn: far, Fail: make(chan error, 1)}
				w := newTestServer()
				c, cancel := context.WithCancelCause(background)
				defer cancel(nil)
				ended := make(chan error, 1)
				go func() {
					ended <- overconn.Serve(c, conn, w, transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t, mcptest.SentOnly())})
				}()
				_ = near.Write([]byte(hangCall))
				_ = near.Write([]byte(listenCall))
				synctest.Wait()
				tt.end(cancel, near, conn)
				if err := <-ended; !errors.Is(err, tt.want) || tt.want == nil && err != nil {
					t.Errorf("Serve returned %v", err)
				}
				if got := w.seen(); strings.Count(got, "\n") != 1 || !strings.Contains(got, tt.seen) {
					t.Errorf("the handlers saw\n%s", got)
				}
				if err := near.Write([]byte(`{}`)); !errors.Is(err, mcp.ErrClosed) {
					t.Errorf("the connection is open: %v", err)
				}
			})
		})
	}
}

// A Peer is dead once its handler has returned.
func TestLeakedPeers(t *testing.T) {
	for name, script := range map[string]string{
		"modern call": `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"leak",$META}}
			$OK 1 "leaked"`,
		"legacy call": `$INIT 2025-06-18
			> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"leak"}}
			$OK 1 "leaked"`,
		"modern subscription": `> {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},$META}}
			< "${acknowledged}"
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		"legacy subscription": `$INIT 2025-06-18
			> {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x://a"}}
			< "${subscribed}"
			> {"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"x://a"}}
			< "${unsubscribed}"`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestServer()
			notify := func(peer mcp.Peer) error {
				return peer.Notify(background, mcp.Notification{Method: mcp.NotificationMessage, Params: []byte(`{"level":"info","data":1}`)})
			}
			tools["use leaked"] = func(w *testServer, _ ctx, _ *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
				peer := w.peers[len(w.peers)-1]
				if strings.Contains(name, "subscription") {
					w.saw("change: %v", peer.Change(background, mcp.Notification{Method: mcp.NotificationToolsChanged}))
				} else {
					w.saw("notify: %v", notify(peer))
				}
				return text("used")
			}
			use := `> {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"use leaked"` + map[bool]string{true: `,$META`}[strings.HasPrefix(name, "modern")] + `}}
				$OK 9 "used"`
			talk(t, w, transport.ServerOptions{}, script+"\n"+use)
			want := "notify: "
			if strings.Contains(name, "subscription") {
				want = "change: "
			}
			if got := w.seen(); !strings.Contains(got, want+mcp.ErrPeerGone.Error()) {
				t.Errorf("the handler saw %s", got)
			}
		})
	}
}

// A handler that acknowledges its subscription late, twice, or after its end breaks nothing.
func TestAcknowledgingOutOfTurn(t *testing.T) {
	var leaked atomic.Pointer[mcp.Peer]
	h := mcp.HandlerFunc(func(c context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method != mcp.MethodListen {
			if peer := leaked.Load(); peer != nil && req.Method == mcp.MethodListTools {
				err := (*peer).Change(background, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":{}}`)})
				if !errors.Is(err, mcp.ErrPeerGone) {
					return nil, fmt.Errorf("got %v", err)
				}
			}
			return newTestServer().ServeMCP(c, req)
		}
		leaked.Store(&req.Peer)
		for range 3 {
			if err := req.Peer.Change(c, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":{}}`)}); err != nil {
				return nil, err
			}
		}
		return &mcp.Result{}, nil
	})
	talk(t, h, transport.ServerOptions{}, `$INIT 2025-06-18
		> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
		< {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`)
}

// Notifications never come behind the result, however a handler's goroutines race with its return.
func TestNotificationsNeverFollowTheResult(t *testing.T) {
	var wg sync.WaitGroup
	defer wg.Wait()
	h := mcp.HandlerFunc(func(c context.Context, req *mcp.Request) (*mcp.Result, error) {
		for i := range 2 {
			wg.Go(func() {
				for n := 0; ; n++ {
					params := fmt.Sprintf(`{"level":"error","data":"%d %d"}`, i, n)
					if err := req.Peer.Notify(background, mcp.Notification{Method: mcp.NotificationMessage, Params: []byte(params)}); err != nil {
						if !errors.Is(err, mcp.ErrPeerGone) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		return text("done")
	})
	near, far := memory.Pipe()
	served := make(chan error)
	go func() {
		served <- overconn.Serve(background, far, h, transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t)})
	}()
	check := wiretest.NewChecker()
	for id := range 200 {
		frame := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","_meta":{%s,%s,"io.modelcontextprotocol/logLevel":"debug"}}}`, id, version, capabilities)
		check.Frame(wiretest.Client, frame)
		if err := near.Write(frame); err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			answer, err := near.Read()
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range check.Frame(wiretest.Server, answer) {
				t.Error(err)
			}
			done = strings.Contains(string(answer), `"result"`)
		}
	}
	near.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Cancelling races with answering: each call is answered once or never, and the connection lives.
func TestCancellationRaces(t *testing.T) {
	h := mcp.HandlerFunc(func(c context.Context, req *mcp.Request) (*mcp.Result, error) { return text("done") })
	near, far := memory.Pipe()
	served := make(chan error)
	go func() {
		served <- overconn.Serve(background, far, h, transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t, mcptest.SentOnly())})
	}()
	answers := make(chan string, 10_000)
	go func() {
		defer close(answers)
		for {
			frame, err := near.Read()
			if err != nil {
				return
			}
			answers <- string(frame)
		}
	}()
	const calls = 500
	for id := range calls {
		_ = near.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, id, modernMeta))
		_ = near.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
	}
	_ = near.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{%s}}`, modernMeta))
	seen := map[string]bool{}
	for frame := range answers {
		if seen[frame] {
			t.Errorf("answered twice: %s", frame)
		}
		seen[frame] = true
		if strings.Contains(frame, `"last"`) {
			break
		}
	}
	near.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A frame that could not be read is answered by its guessed id.
func TestLostFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := memory.Pipe()
		conn := &transporttest.LossyConn{Conn: far}
		ended := make(chan error, 1)
		go func() {
			ended <- overconn.Serve(background, conn, newTestServer(), transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t, mcptest.SentOnly())})
		}()
		for _, tt := range []struct{ frame, want string }{
			{`lose 7`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"${m}"}}`},
			{`lose 8 method`, `{"jsonrpc":"2.0","id":8,"error":{"code":-32600,"message":"${m}"}}`},
			{`lose`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"${m}"}}`},
			{strings.Replace(hangCall, "hang", "echo", 1), `{"jsonrpc":"2.0","id":2,"result":"${r}"}`},
		} {
			_ = near.Write([]byte(`lose 5 response`)) // is not answered
			_ = near.Write([]byte(tt.frame))
			if got, err := near.Read(); err != nil || !transporttest.MatchJSON(tt.want, got) {
				t.Errorf("%s is answered by %s, %v", tt.frame, got, err)
			}
		}
		near.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// An id is free again once its response has come.
func TestAnIDIsFreeAfterItsResponse(t *testing.T) {
	near, far := memory.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = overconn.Serve(t.Context(), far, mcp.HandlerFunc(func(context.Context, *mcp.Request) (*mcp.Result, error) {
			return &mcp.Result{}, nil
		}), transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t, mcptest.SentOnly())})
	}()
	for i := range 5000 {
		_ = near.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		frame, err := near.Read()
		if err != nil || bytes.Contains(frame, []byte("error")) {
			t.Fatalf("call %d: %s, %v", i, frame, err)
		}
	}
	near.Close()
	<-served
}
