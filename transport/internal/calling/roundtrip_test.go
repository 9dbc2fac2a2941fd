package calling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/transporttest"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

const okResult = `"result":{"resultType":"complete","content":[]}`

// The outcome of a call for every form of response.
func TestResponses(t *testing.T) {
	complete := func(raw string) string { return `complete ` + raw }
	for _, tt := range []struct{ name, frame, modern, legacy string }{
		{"a result", `{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":1.0}}`, complete(`{"content":[],"x":1.0}`), ``},
		{"complete", `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete"}}`, complete(`{"resultType":"complete"}`), ``},
		{"input required", `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","requestState":"s"}}`, `input_required {"resultType":"input_required","requestState":"s"}`, complete(`{"resultType":"input_required","requestState":"s"}`)},
		{"an unknown type", `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"task"}}`, `error: a result of type "task"`, complete(`{"resultType":"task"}`)},
		{"a type that is none", `{"jsonrpc":"2.0","id":ID,"result":{"resultType":5}}`, `error: a result of type ""`, complete(`{"resultType":5}`)},
		{"an empty type", `{"jsonrpc":"2.0","id":ID,"result":{"resultType":""}}`, `error: a result of type ""`, complete(`{"resultType":""}`)},
		{"the id as text", `{"jsonrpc":"2.0","id":"ID","result":{}}`, complete(`{}`), ``},
		{"an error", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"m","data":{"a":1}}}`, `error -32602 m {"a":1}`, ``},
		{"an error, the id as text", `{"jsonrpc":"2.0","id":"ID","error":{"code":1,"message":"m"}}`, `error 1 m `, ``},
		{"an error without message", `{"jsonrpc":"2.0","id":ID,"error":{"code":5}}`, `error 5  `, ``},
		{"an error without code", `{"jsonrpc":"2.0","id":ID,"error":{"message":"m"}}`, `error: not a JSON-RPC 2.0 message`, ``},
		{"an error that is text", `{"jsonrpc":"2.0","id":ID,"error":"m"}`, `error: not a JSON-RPC 2.0 message`, ``},
		{"a result that is a list", `{"jsonrpc":"2.0","id":ID,"result":[]}`, `error: not a JSON-RPC 2.0 message`, ``},
		{"a result that is null", `{"jsonrpc":"2.0","id":ID,"result":null}`, `error: not a JSON-RPC 2.0 message`, ``},
		{"result and error", `{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"m"}}`, `error: not a JSON-RPC 2.0 message`, ``},
		{"neither", `{"jsonrpc":"2.0","id":ID}`, `error: not a JSON-RPC 2.0 message`, ``},
		{"another version", `{"jsonrpc":"1.0","id":ID,"result":{}}`, `error: not a JSON-RPC 2.0 message`, ``},
		{"the id as text, and malformed", `{"jsonrpc":"2.0","id":"ID","result":[]}`, `error: not a JSON-RPC 2.0 message`, ``},
		{"too long, and its id was seen", `lose ID`, `error: unusable frame: too long`, ``},
		{"too long, and the only call", `lose`, `error: unusable frame: too long`, ``},
		{"a response, too long, the id as text", `lose "ID" response`, `error: unusable frame: too long`, ``},
	} {
		for _, r := range []mcp.Revision{r26, r25} {
			t.Run(tt.name+"/"+string(r), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, f := lossy(t, r, &recorder{}, func(f *fake, m jsonrpc.Message) { f.send("%s", strings.ReplaceAll(tt.frame, "ID", m.ID.String())) })
					defer c.Close()
					want := tt.modern
					if r == r25 && tt.legacy != "" {
						want = tt.legacy
					}
					for range 2 { // the connection lives
						got := outcome(c.RoundTrip(t.Context(), callTool("x")))
						if got != want && !(strings.HasPrefix(want, "error:") && strings.HasPrefix(got, "error:") && strings.Contains(got, want[7:])) {
							t.Errorf("got %s, want %s", got, want)
						}
					}
					_ = f
				})
			})
		}
	}
}

// lossy is connected, on a connection that loses frames when it is told to.
func lossy(t *testing.T, r mcp.Revision, in *recorder, answer func(f *fake, m jsonrpc.Message)) (mcp.Transport, *fake) {
	t.Helper()
	f := newFake(t, func(f *fake, m jsonrpc.Message) {
		switch m.Method {
		case mcp.MethodDiscover:
			f.reply(m, discovered)
		case mcpwire.MethodInitialize:
			f.reply(m, initialized(r))
		case mcpwire.NotificationInitialized:
		default:
			answer(f, m)
		}
	})
	c, err := overconn.Connect(t.Context(), &transporttest.LossyConn{Conn: f.near}, in, "", transport.ClientOptions{Revision: r, Logger: quiet, Tap: mcptest.ClientSentTap(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c, f
}

func outcome(res *mcp.Response, err error) string {
	var e *mcp.Error
	switch {
	case errors.As(err, &e) && !strings.Contains(err.Error(), "JSON-RPC 2.0"):
		return fmt.Sprintf("error %d %s %s", e.Code, e.Message, e.Data)
	case err != nil:
		return "error: " + err.Error()
	}
	return string(res.Type) + " " + string(res.Raw)
}

func TestCachingHints(t *testing.T) {
	for _, tt := range []struct {
		hints string
		want  mcp.Cache
	}{
		{``, mcp.Cache{}}, {`,"ttlMs":1500,"cacheScope":"public"`, mcp.Cache{TTL: 1500 * time.Millisecond, Scope: mcp.CachePublic}}, {`,"ttlMs":0,"cacheScope":"private"`, mcp.Cache{}},
		{`,"ttlMs":-5`, mcp.Cache{}}, {`,"ttlMs":"5"`, mcp.Cache{}}, {`,"ttlMs":1.5`, mcp.Cache{}}, {`,"ttlMs":null,"cacheScope":"everybody"`, mcp.Cache{}},
		{`,"ttlMs":999999999999999999`, mcp.Cache{TTL: 365 * 24 * time.Hour}}, {`,"ttlMs":99999999999999999999999`, mcp.Cache{}},
	} {
		for _, r := range []mcp.Revision{r26, r25} {
			c, _ := connected(t, r, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
				f.reply(m, `"result":{"resultType":"complete","tools":[]`+tt.hints+`}`)
			})
			res, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListTools})
			want := tt.want
			if r == r25 {
				want = mcp.Cache{}
			}
			if err != nil || res.Cache != want {
				t.Errorf("%s %s: %+v, %v", r, tt.hints, res, err)
			}
			c.Close()
		}
	}
}

// Requests as they go out.
func TestRequests(t *testing.T) {
	meta := func(more string) string {
		return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":"${i}","io.modelcontextprotocol/clientCapabilities":{}` + more + `}`
	}
	notify := func(mcp.Notification) {}
	for _, tt := range []struct {
		name           string
		req            mcp.Request
		modern, legacy string // params
	}{
		{"bare", mcp.Request{}, `{` + meta(``) + `}`, `{}`},
		{"params", mcp.Request{Params: json.RawMessage(`{"name":"n","arguments":{"n":9007199254740993,"f":1.0}}`)}, `{` + meta(``) + `,"name":"n","arguments":{"n":9007199254740993,"f":1.0}}`, `{"name":"n","arguments":{"n":9007199254740993,"f":1.0}}`},
		{"somebody listens", mcp.Request{Notify: notify}, `{` + meta(`,"progressToken":2`) + `}`, `{"_meta":{"progressToken":2}}`},
		{"somebody listens, and not to progress", mcp.Request{Notify: notify, NoProgress: true}, `{` + meta(``) + `}`, `{}`},
		{"params, and somebody listens", mcp.Request{Notify: notify, Params: json.RawMessage(`{"name":"n"}`)}, `{` + meta(`,"progressToken":2`) + `,"name":"n"}`, `{"_meta":{"progressToken":2},"name":"n"}`},
		{"a log level", mcp.Request{LogLevel: mcp.LevelError}, `{` + meta(`,"io.modelcontextprotocol/logLevel":"error"`) + `}`, `{}`},
		{"somebody else's capabilities", mcp.Request{ClientCapabilities: json.RawMessage(`{"roots":{}}`), LogLevel: mcp.LevelError},
			`{` + strings.Replace(meta(`,"io.modelcontextprotocol/logLevel":"error"`), `clientCapabilities":{}`, `clientCapabilities":{"roots":{}}`, 1) + `}`, `{}`},
		{"trace context passes", mcp.Request{Params: json.RawMessage(`{"_meta":{"traceparent":"t","x/y":[1.0]}}`)}, `{` + meta(`,"traceparent":"t","x/y":[1.0]`) + `}`, `{"_meta":{"traceparent":"t","x/y":[1.0]}}`},
		{"what is the edge's is replaced", mcp.Request{Notify: notify, Params: json.RawMessage(`{"a":1,"_meta":{"progressToken":"theirs","io.modelcontextprotocol/protocolVersion":"x","io.modelcontextprotocol/clientInfo":1,"io.modelcontextprotocol/clientCapabilities":2,"io.modelcontextprotocol/logLevel":3,"io.modelcontextprotocol/subscriptionId":4,"k":5}}`)},
			`{` + meta(`,"progressToken":2,"k":5`) + `,"a":1}`, `{"_meta":{"progressToken":2,"k":5},"a":1}`},
		{"_meta with nothing but the edge's", mcp.Request{Params: json.RawMessage(`{"_meta":{"progressToken":"theirs"},"a":1}`)}, `{` + meta(``) + `,"a":1}`, `{"_meta":{},"a":1}`},
		{"an empty _meta", mcp.Request{Notify: notify, Params: json.RawMessage(`{"_meta":{}}`)}, `{` + meta(`,"progressToken":2`) + `}`, `{"_meta":{"progressToken":2}}`},
		{"answers and state", mcp.Request{Params: json.RawMessage(`{"name":"n","inputResponses":{"a":{}},"requestState":"s"}`)}, `{` + meta(``) + `,"name":"n","inputResponses":{"a":{}},"requestState":"s"}`, `{"name":"n","inputResponses":{"a":{}},"requestState":"s"}`},
	} {
		for r, want := range map[mcp.Revision]string{r26: tt.modern, r18: tt.legacy} {
			t.Run(tt.name+"/"+string(r), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					// Answers and state in a legacy request are its caller's fault.
					tap := mcptest.ClientSentTap(t, mcptest.WithoutChecks("legacy"))
					c, f := connected(t, r, nil, transport.ClientOptions{Tap: tap}, func(f *fake, m jsonrpc.Message) { f.reply(m, okResult) })
					defer c.Close()
					req := tt.req
					req.Method = "tools/list"
					if r == r18 {
						req.LogLevel = "" // it has a request of its own there
					}
					before := string(req.Params)
					if _, err := c.RoundTrip(t.Context(), &req); err != nil {
						t.Fatal(err)
					}
					frames := f.received()
					last := frames[len(frames)-1]
					if !transporttest.MatchJSON(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":`+want+`}`, []byte(last)) {
						t.Errorf("got  %s\nwant %s", last, want)
					}
					if err := rawjson.CheckAll([]byte(last)); err != nil || string(req.Params) != before {
						t.Errorf("%v, params %s", err, req.Params)
					}
				})
			})
		}
	}
}

// Legacy sessions have one log level for all: it is set before the call that wants another.
func TestLegacyLogLevel(t *testing.T) {
	c, f := connected(t, r18, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) { f.reply(m, `"result":{}`) })
	defer c.Close()
	for _, level := range []mcp.LoggingLevel{"", "error", "error", "debug", "", "error"} {
		if _, err := c.RoundTrip(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"x"}`), LogLevel: level}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, frame := range f.received()[2:] {
		m, _ := jsonrpc.Parse([]byte(frame), nil)
		got = append(got, strings.TrimPrefix(m.Method, "logging/")+string(rawjson.Lookup(m.Params, "level")))
	}
	if s := strings.Join(got, " "); s != `tools/call setLevel"error" tools/call tools/call setLevel"debug" tools/call tools/call setLevel"error" tools/call` {
		t.Errorf("sent %s", s)
	}
}

// A call ends with its context if the server does not answer setLevel.
func TestLegacyLogLevelHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connected(t, r18, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {})
		defer c.Close()
		first, cancel := context.WithCancel(t.Context())
		one := goCall(c, first, &mcp.Request{Method: "tools/call", LogLevel: "error"})
		synctest.Wait()
		second, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		begin := time.Now()
		two := goCall(c, second, &mcp.Request{Method: "tools/call", LogLevel: "error"})
		after(time.Minute, cancel)
		if got := <-two; !errors.Is(got.err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("the second call ended after %v with %v", time.Since(begin), got.err)
		}
		if got := <-one; !errors.Is(got.err, context.Canceled) {
			t.Errorf("the first call ended with %v", got.err)
		}
	})
}

// Progress goes to the call that it belongs to, with several in flight.
func TestProgressRouting(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		synctest.Test(t, func(t *testing.T) {
			const calls = 5
			var asked []jsonrpc.Message
			in := &recorder{}
			c, _ := connected(t, r, in, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
				if asked = append(asked, m); len(asked) < calls {
					return
				}
				for step := range 3 {
					for _, m := range asked {
						f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, rawjson.Lookup(rawjson.Lookup(m.Params, "_meta"), "progressToken"), step+1)
					}
				}
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":99,"progress":1}}`)
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`)
				for _, m := range asked {
					f.reply(m, okResult)
				}
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":9}}`, asked[0].ID) // too late
			})
			defer c.Close()
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() {
					var got []string
					req := callTool("x")
					req.Notify = func(n mcp.Notification) {
						got = append(got, string(rawjson.Lookup(n.Params, "progress"))+"/"+string(rawjson.Lookup(n.Params, "progressToken")))
					}
					if _, err := c.RoundTrip(t.Context(), req); err != nil {
						t.Error(err)
					}
					tokens := map[string]bool{}
					for i, g := range got {
						step, token, _ := strings.Cut(g, "/")
						if tokens[token] = true; step != fmt.Sprint(i+1) {
							t.Errorf("got %v", got)
						}
					}
					if len(got) != 3 || len(tokens) != 1 {
						t.Errorf("got %v", got)
					}
				})
			}
			wg.Wait()
			synctest.Wait()
			want := `notifications/progress{"progressToken":99,"progress":1} notifications/progress{"progress":1} notifications/progress{"progressToken":` + asked[0].ID.String() + `,"progress":9}`
			if got := in.noted(); got != want {
				t.Errorf("to nobody: %s", got)
			}
		})
	})
}

// A log message on a shared channel names no request. It goes to the only call that asked for
// logs, and to the Inbound if several did.
func TestLogRouting(t *testing.T) {
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}`
	for _, r := range []mcp.Revision{r26, r25} {
		for _, tt := range []struct {
			name          string
			asking, mute  int // calls with a log level, with and without one who listens; and one without level
			mine, nobodys int
		}{{"none", 0, 0, 0, 1}, {"one", 1, 0, 1, 0}, {"one who does not listen", 0, 1, 0, 1}, {"one who listens beside one who does not", 1, 1, 1, 0}, {"two", 2, 0, 0, 1}} {
			t.Run(tt.name+"/"+string(r), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					in := &recorder{}
					var held []jsonrpc.Message
					c, f := connected(t, r, in, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
						if m.Method == mcpwire.MethodSetLevel {
							f.reply(m, `"result":{}`)
							return
						}
						held = append(held, m)
					})
					defer c.Close()
					var mine atomic.Int32
					var done []<-chan called
					for i := range tt.asking + tt.mute + 1 {
						req := callTool("x")
						if i < tt.asking+tt.mute {
							req.LogLevel = mcp.LevelError
						}
						if i < tt.asking || i == tt.asking+tt.mute {
							req.Notify = func(mcp.Notification) { mine.Add(1) }
						}
						done = append(done, goCall(c, t.Context(), req))
						synctest.Wait()
					}
					f.send(log)
					synctest.Wait()
					for _, m := range held {
						f.reply(m, okResult)
					}
					for _, d := range done {
						if got := <-d; got.err != nil {
							t.Error(got.err)
						}
					}
					if int(mine.Load()) != tt.mine || strings.Count(in.noted(), "notifications/message") != tt.nobodys {
						t.Errorf("the calls got %d, nobody %s", mine.Load(), in.noted())
					}
				})
			})
		}
	}
}

// A slow listener delays no other one. Its queue is bounded and keeps the newest notifications.
func TestSlowListener(t *testing.T) {
	const sent = 3000
	c, _ := connected(t, r26, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
		if strings.Contains(string(m.Params), "slow") {
			for i := range sent {
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, i+1)
			}
		}
		f.reply(m, okResult)
	})
	defer c.Close()
	release, first := make(chan struct{}), make(chan struct{})
	var got []string
	req := callTool("slow")
	req.Notify = func(n mcp.Notification) {
		if got = append(got, string(rawjson.Lookup(n.Params, "progress"))); len(got) == 1 {
			close(first)
			<-release
		}
	}
	slow := goCall(c, t.Context(), req)
	<-first
	for range 10 {
		if _, err := c.RoundTrip(t.Context(), callTool("quick")); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if r := <-slow; r.err != nil {
		t.Fatal(r.err)
	}
	for i := 1; i < len(got); i++ {
		var a, b int
		fmt.Sscan(got[i-1], &a)
		fmt.Sscan(got[i], &b)
		if a >= b {
			t.Fatalf("%d comes before %d", a, b)
		}
	}
	if last := got[len(got)-1]; last != fmt.Sprint(sent) || len(got) >= sent || len(got) < 1024 {
		t.Errorf("%d were delivered, the last is %s", len(got), last)
	}
}

// Notifications come one at a time, and never behind the return.
func TestNotificationsOfACall(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c, _ := connected(t, r, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
			for i := range 20 {
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, i+1)
				if i == 10 {
					f.reply(m, okResult)
				}
			}
		})
		defer c.Close()
		for range 50 {
			var running, returned atomic.Bool
			n := 0
			req := callTool("x")
			req.Notify = func(mcp.Notification) {
				if running.Swap(true) || returned.Load() {
					t.Error("concurrent, or behind the return")
				}
				n++
				running.Store(false)
			}
			if _, err := c.RoundTrip(t.Context(), req); err != nil || n != 11 {
				t.Fatalf("%d notifications, %v", n, err)
			}
			returned.Store(true)
		}
	})
}

// When its context ends, a call is cancelled at the server, once, with the cause.
func TestCancelledCall(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		synctest.Test(t, func(t *testing.T) {
			c, f := connected(t, r, nil, transport.ClientOptions{Tap: mcptest.ClientTap(t, mcptest.WithoutServerChecks("after-end", "legacy"))}, func(f *fake, m jsonrpc.Message) {
				if m.IsRequest() && !strings.Contains(string(m.Params), "hang") {
					f.reply(m, okResult)
				}
			})
			defer c.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			done := goCall(c, ctx, callTool("hang"))
			synctest.Wait()
			cancel(errors.New("no longer wanted"))
			if got := <-done; got.err == nil || got.err.Error() != "no longer wanted" {
				t.Errorf("got %v", got.err)
			}
			synctest.Wait()
			frames := f.received()
			if last := frames[len(frames)-1]; last != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"no longer wanted"}}` {
				t.Errorf("sent %s", last)
			}
			f.send(`{"jsonrpc":"2.0","id":2,%s}`, okResult) // which is ignored
			if _, err := c.RoundTrip(t.Context(), callTool("x")); err != nil {
				t.Error(err)
			}
			if _, err := c.RoundTrip(ctx, callTool("x")); err == nil || err.Error() != "no longer wanted" {
				t.Errorf("a context that has ended: %v", err)
			}
			if got := strings.Count(f.methods(), "notifications/cancelled"); got != 1 {
				t.Errorf("cancelled %d times", got)
			}
		})
	})
}

// Many calls, some of which are cancelled while their answers are on their way: no answer goes to another call.
func TestCancellationRacesOfCalls(t *testing.T) {
	for _, r := range []mcp.Revision{r26, r25} {
		dialer := memory.Dialer(mcp.HandlerFunc(func(c context.Context, req *mcp.Request) (*mcp.Result, error) {
			switch req.Method {
			case mcp.MethodDiscover:
				return &mcp.Result{Value: &mcp.DiscoverResult{SupportedVersions: mcp.Revisions()}}, nil
			case mcp.MethodCallTool:
			default:
				return nil, mcp.MethodNotFound(req.Method)
			}
			if req.ProgressToken != nil {
				_ = req.Peer.Notify(c, mcp.Notification{Method: mcp.NotificationProgress, Params: fmt.Appendf(nil, `{"progressToken":%s,"progress":1,"message":%s}`, req.ProgressToken, rawjson.Lookup(req.Params, "name"))})
			}
			return &mcp.Result{Raw: fmt.Appendf(nil, `{"content":[],"of":%s}`, rawjson.Lookup(req.Params, "name"))}, nil
		}), transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerSentTap(t)})
		c, err := dialer.Dial(t.Context(), &recorder{}, transport.ClientOptions{Revision: r, Logger: quiet, Tap: mcptest.ClientSentTap(t)})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var answered, cancelled atomic.Int32
		for worker := range 16 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(worker), 1))
				for i := range 150 {
					name := fmt.Sprintf("%d/%d", worker, i)
					ctx, cancel := context.WithCancel(t.Context())
					if rnd.IntN(2) == 0 {
						after(time.Duration(rnd.IntN(200))*time.Microsecond, cancel)
					}
					req := callTool(name)
					if rnd.IntN(2) == 0 {
						req.Notify = func(n mcp.Notification) {
							if got := string(rawjson.Lookup(n.Params, "message")); got != fmt.Sprintf("%q", name) && !(got == "" && r < r25) {
								t.Errorf("%s got the progress of %s", name, got)
							}
						}
					}
					res, err := c.RoundTrip(ctx, req)
					switch {
					case err == nil && string(rawjson.Lookup(res.Raw, "of")) == fmt.Sprintf("%q", name):
						answered.Add(1)
					case errors.Is(err, context.Canceled):
						cancelled.Add(1)
					default:
						t.Errorf("%s got %+v, %v", name, res, err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if answered.Load() == 0 {
			t.Error("nothing was answered")
		}
	}
}

func TestAnswersToNothing(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		in := &recorder{}
		c, _ := lossy(t, r, in, func(f *fake, m jsonrpc.Message) {
			f.send(`{"jsonrpc":"2.0","id":77,"result":{}}`)
			f.send(`{"jsonrpc":"2.0","id":"x","result":{}}`)
			f.send(`{"jsonrpc":"2.0","id":%s.0,"result":{"wrong":1}}`, m.ID)
			f.send(`{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"m"}}`)
			f.send(`{"jsonrpc":"2.0","id":77,"result":[]}`)
			f.send(`garbage`)
			f.send(`lose %s method`, m.ID)
			f.send(`lose method`)
			f.send("\x00\xff")
			f.send(`{"jsonrpc":"2.0","id":%s,"method":"roots/list","params":[]}`, m.ID) // a question of the same id, malformed
			f.send(`{"jsonrpc":"1.0","id":%s,"method":"roots/list"}`, m.ID)
			f.reply(m, `"result":{"resultType":"complete","right":1}`)
			f.reply(m, `"result":{"resultType":"complete","twice":1}`)
		})
		defer c.Close()
		for range 20 {
			res, err := c.RoundTrip(t.Context(), callTool("x"))
			if err != nil || !strings.Contains(string(res.Raw), "right") {
				t.Fatalf("%+v, %v", res, err)
			}
		}
		if len(in.down()) != 0 || in.noted() != "" {
			t.Errorf("down %v, notes %s", in.down(), in.noted())
		}
	})
}

// A lost connection fails all calls at once, and is told once; Close is not.
func TestConnectionLost(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		end  func(c mcp.Transport, f *fake, conn *transporttest.FailingConn)
		is   []error
		down int
	}{
		{"the server ends it", func(_ mcp.Transport, f *fake, _ *transporttest.FailingConn) { f.far.Close() }, []error{mcp.ErrConnection}, 1},
		{"it breaks", func(_ mcp.Transport, _ *fake, conn *transporttest.FailingConn) { conn.Fail <- broken }, []error{mcp.ErrConnection, broken}, 1},
		{"Close", func(c mcp.Transport, _ *fake, _ *transporttest.FailingConn) { c.Close() }, []error{mcp.ErrConnection, mcp.ErrClosed}, 0},
	} {
		for _, r := range []mcp.Revision{r26, r18} {
			t.Run(tt.name+"/"+string(r), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(t, func(f *fake, m jsonrpc.Message) {
						switch m.Method {
						case mcp.MethodDiscover:
							f.reply(m, discovered)
						case mcpwire.MethodInitialize:
							f.reply(m, initialized(r))
						}
					})
					conn := &transporttest.FailingConn{Conn: f.near, Fail: make(chan error, 1)}
					in := &recorder{}
					c, err := overconn.Connect(t.Context(), conn, in, "", transport.ClientOptions{Revision: r, Logger: quiet, Tap: mcptest.ClientSentTap(t)})
					if err != nil {
						t.Fatal(err)
					}
					var calls []<-chan called
					for range 10 {
						calls = append(calls, goCall(c, t.Context(), callTool("x")))
					}
					calls = append(calls, goCall(c, t.Context(), &mcp.Request{Method: mcp.MethodListen, Params: []byte(`{"notifications":{"toolsListChanged":true}}`), Notify: func(mcp.Notification) {}}))
					synctest.Wait()
					tt.end(c, f, conn)
					for _, done := range calls {
						got := <-done
						for _, is := range tt.is {
							if !errors.Is(got.err, is) {
								t.Errorf("got %v", got.err)
							}
						}
					}
					_, err = c.RoundTrip(t.Context(), callTool("x"))
					for _, is := range tt.is {
						if !errors.Is(err, is) {
							t.Errorf("afterwards: %v", err)
						}
					}
					if err := c.(mcp.Notifier).Notify(t.Context(), mcp.Notification{Method: "x"}); !errors.Is(err, mcp.ErrConnection) {
						t.Errorf("Notify afterwards: %v", err)
					}
					c.Close()
					c.Close()
					if down := in.down(); len(down) != tt.down {
						t.Errorf("Down was told %v", down)
					}
					f.far.Close()
				})
			})
		}
	}
}

func TestNotifier(t *testing.T) {
	for r, want := range map[mcp.Revision]string{r26: "server/discover x/y", r18: "initialize notifications/initialized notifications/roots/list_changed x/y"} {
		synctest.Test(t, func(t *testing.T) {
			c, f := connected(t, r, nil, transport.ClientOptions{}, nil)
			for _, method := range []string{mcp.NotificationRootsChanged, "x/y"} {
				if err := c.(mcp.Notifier).Notify(t.Context(), mcp.Notification{Method: method}); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			if got := f.methods(); got != want {
				t.Errorf("sent %s", got)
			}
			c.Close()
		})
	}
}
