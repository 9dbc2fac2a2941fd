package calling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	c, err := overconn.Connect(t.Context(), &transporttest.LossyConn{Conn: f.near}, in, "", transport.ClientOptions{Revision: r, Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
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
		{"with Notify", mcp.Request{Notify: notify}, `{` + meta(`,"progressToken":2`) + `}`, `{"_meta":{"progressToken":2}}`},
		{"with Notify and NoProgress", mcp.Request{Notify: notify, NoProgress: true}, `{` + meta(``) + `}`, `{}`},
		{"with params and Notify", mcp.Request{Notify: notify, Params: json.RawMessage(`{"name":"n"}`)}, `{` + meta(`,"progressToken":2`) + `,"name":"n"}`, `{"_meta":{"progressToken":2},"name":"n"}`},
		{"a log level", mcp.Request{LogLevel: mcp.LevelError}, `{` + meta(`,"io.modelcontextprotocol/logLevel":"error"`) + `}`, `{}`},
		{"with other capabilities", mcp.Request{ClientCapabilities: json.RawMessage(`{"roots":{}}`), LogLevel: mcp.LevelError},
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
					tap := mcptest.ClientTap(t, mcptest.SentOnly(), mcptest.WithoutChecks("legacy"))
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
