package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// peer records what a request's sender is told.
type peer struct {
	mu      sync.Mutex
	notes   []mcp.Notification
	changes []mcp.Notification
	arrived chan struct{} // gets a token for each change, where it is not nil
	stall   chan struct{} // changes wait for it, where it is not nil
}

func (p *peer) Notify(_ context.Context, n mcp.Notification) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, n)
	return nil
}

func (p *peer) Change(ctx context.Context, c mcp.Notification) error {
	if p.stall != nil && c.Method != mcp.NotificationAcknowledged {
		select {
		case <-p.stall:
		case <-ctx.Done():
			return mcp.ErrPeerGone
		}
	}
	p.mu.Lock()
	p.changes = append(p.changes, c)
	p.mu.Unlock()
	if p.arrived != nil {
		p.arrived <- struct{}{}
	}
	return nil
}

func (p *peer) methods() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.changes {
		name := strings.TrimPrefix(c.Method, "notifications/")
		if c.Params != nil && c.Method == mcp.NotificationResourceUpdated {
			var u mcp.ResourceUpdatedParams
			if err := mcp.Decode(c.Params, &u); err != nil {
				panic(err)
			}
			name += " " + u.URI
		}
		all = append(all, name)
	}
	return all
}

func (p *peer) params() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.notes {
		all = append(all, string(n.Params))
	}
	return all
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func newServer(opts ...server.Options) *server.Server {
	o := server.Options{}
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Logger == nil {
		o.Logger = quiet
	}
	return server.New("test", "1", &o)
}

// everything is what a client that can be asked anything declares.
const everything = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{}}`

func request(method, params string) *mcp.Request {
	return &mcp.Request{
		Method: method, Params: json.RawMessage(params), Revision: mcp.LatestRevision, Peer: &peer{},
		ClientCapabilities: json.RawMessage(everything),
	}
}

func as(principal string, req *mcp.Request) *mcp.Request {
	req.Principal.ID = principal
	return req
}

// serve returns the result's object as text, or the error's.
func serve(t testing.TB, h mcp.Handler, req *mcp.Request) string {
	t.Helper()
	res, err := h.ServeMCP(t.Context(), req)
	return unescapeString(t, res, err)
}

func unescapeString(t testing.TB, res *mcp.Result, err error) string {
	t.Helper()
	if err != nil {
		if res != nil {
			t.Errorf("both a result and the error %v", err)
		}
		if e := (*mcp.Error)(nil); errors.As(err, &e) {
			return fmt.Sprintf("error %d: %s", e.Code, e.Message)
		}
		return "error: " + err.Error()
	}
	if string(res.ServerInfo) != `{"name":"test","version":"1"}` {
		t.Errorf("serverInfo %s", res.ServerInfo)
	}
	return body(t, res)
}

func body(t testing.TB, res *mcp.Result) string {
	t.Helper()
	switch {
	case res.Raw != nil && res.Value != nil:
		t.Error("a result with both Raw and Value")
	case res.Raw != nil:
		return string(res.Raw)
	case res.Value == nil:
		return "{}"
	}
	raw, err := mcp.Encode(res.Value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// call calls a tool with JSON arguments.
func call(t testing.TB, h mcp.Handler, tool, arguments string) string {
	t.Helper()
	return serve(t, h, request(mcp.MethodCallTool, fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)))
}

func want(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func wantPart(t testing.TB, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%s\nis without %s", got, part)
	}
}

func none(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }

func TestDiscover(t *testing.T) {
	discover := request(mcp.MethodDiscover, `{}`)
	empty := newServer(server.Options{Instructions: "Be kind."})
	want(t, serve(t, empty, discover), `{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"logging":{}},"instructions":"Be kind."}`)

	declared := newServer(server.Options{
		Declare: []server.Kind{server.KindPrompt}, NoLogging: true,
		Extensions:   []mcp.Extension{{ID: "example.org/x", Settings: json.RawMessage(`{"a":1}`)}},
		Experimental: map[string]json.RawMessage{"try": json.RawMessage(`{"b":2}`)},
	})
	wantPart(t, serve(t, declared, discover), `"capabilities":{"prompts":{"listChanged":true},"extensions":{"example.org/x":{"a":1}},"experimental":{"try":{"b":2}}}`)

	full := newServer()
	server.Tool(full, "t", "", none)
	server.Prompt(full, "p", "", func(context.Context, struct {
		A string `json:"a" enum:"x,y"`
	}) (string, error) {
		return "", nil
	})
	server.Resource(full, "x://y", "", func(context.Context, struct{}) (string, error) { return "", nil })
	wantPart(t, serve(t, full, discover), `"capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`)

	res, err := full.ServeMCP(t.Context(), discover)
	if err != nil || res.Cache.Scope != mcp.CachePublic {
		t.Errorf("%v, %v", res, err)
	}
}

func TestNotOffered(t *testing.T) {
	s := newServer()
	for _, method := range []string{
		mcp.MethodListTools, mcp.MethodCallTool, mcp.MethodListPrompts, mcp.MethodGetPrompt, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource, mcp.MethodComplete, mcpwire.MethodPing, "x/y",
	} {
		want(t, serve(t, s, request(method, `{"name":"x","uri":"x:"}`)), "error -32601: method not found: "+method)
	}
	item, err := server.NewTool("t", "", none)
	if err == nil {
		err = s.Add(item)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Remove(server.KindTool, "t")
	want(t, serve(t, s, request(mcp.MethodListTools, `{}`)), `{"tools":[]}`) // once offered, always offered
	server.Resource(s, "a://{b}", "", func(context.Context, struct {
		B string `uri:"b"`
	}) (string, error) {
		return "", nil
	})
	want(t, serve(t, s, request(mcp.MethodListResources, `{}`)), `{"resources":[]}`) // one capability with templates
}

func TestMiddleware(t *testing.T) {
	s := newServer()
	server.Tool(s, "t", "", none)
	var order []string
	tag := func(name string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
				order = append(order, name)
				return next.ServeMCP(ctx, req)
			})
		}
	}
	s.Use(tag("a"), tag("b"))
	s.Use(tag("c"))
	want(t, call(t, s, "t", `{}`), `{"content":[]}`)
	want(t, fmt.Sprint(order), "[a b c]")

	s.Use(func(mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (*mcp.Result, error) { panic("boo") })
	})
	want(t, call(t, s, "t", `{}`), "error -32603: internal error")
}

func TestPanics(t *testing.T) {
	var log strings.Builder
	s := newServer(server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	boom := func(context.Context, struct{}) (string, error) { panic("boom") }
	server.Tool(s, "t", "", boom)
	server.Prompt(s, "p", "", boom)
	server.Resource(s, "x://y", "", boom)
	server.Handle(s, mcp.Method[mcp.None, mcp.None]{Name: "own/method"}, func(context.Context, mcp.None) (mcp.None, error) { panic("boom") })
	for method, params := range map[string]string{
		mcp.MethodCallTool: `{"name":"t"}`, mcp.MethodGetPrompt: `{"name":"p"}`, mcp.MethodReadResource: `{"uri":"x://y"}`, "own/method": `{}`,
	} {
		log.Reset()
		want(t, serve(t, s, request(method, params)), "error -32603: internal error")
		wantPart(t, log.String(), "boom")
		wantPart(t, log.String(), "server_test.go") // the stack
	}
}

func TestOwnMethods(t *testing.T) {
	s := newServer()
	type params struct {
		N int `json:"n"`
	}
	double := mcp.Method[params, params]{Name: "example/double"}
	server.Handle(s, double, func(ctx context.Context, p params) (params, error) {
		server.Progress(ctx, 1, 1, "")
		if _, err := server.Ask[string](ctx, "k", "?"); err == nil || !strings.Contains(err.Error(), "can ask, before they return") {
			t.Errorf("Ask: %v", err)
		}
		if p.N < 0 {
			return p, mcp.InvalidParams("negative")
		}
		return params{2 * p.N}, nil
	})
	shared := &mcp.Result{Raw: json.RawMessage(`{"raw":true}`)}
	raw := mcp.Method[json.RawMessage, *mcp.Result]{Name: "example/raw"}
	server.Handle(s, raw, func(ctx context.Context, params json.RawMessage) (*mcp.Result, error) {
		if string(params) != `{"a": 1}` || server.RequestFrom(ctx).Method != raw.Name {
			t.Errorf("%s(%s)", server.RequestFrom(ctx).Method, params)
		}
		return shared, nil
	})
	want(t, serve(t, s, request("example/double", `{"n":4}`)), `{"n":8}`)
	want(t, serve(t, s, request("example/double", `{"n":-4}`)), `error -32602: negative`)
	wantPart(t, serve(t, s, request("example/double", `{"n":"x"}`)), `error -32602: example/double: `)
	want(t, serve(t, s, request("example/raw", `{"a": 1}`)), `{"raw":true}`)
	if shared.ServerInfo != nil {
		t.Error("a handler's result was changed")
	}
	want(t, serve(t, s, request("example/none", `{}`)), `error -32601: method not found: example/none`)

	for _, taken := range []string{"example/raw", mcp.MethodCallTool, mcp.MethodListen} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was handled twice", taken)
				}
			}()
			server.Handle[mcp.None, mcp.None](s, mcp.Method[mcp.None, mcp.None]{Name: taken}, nil)
		}()
	}
}

func TestUnknownLogLevel(t *testing.T) {
	s := newServer()
	server.Tool(s, "t", "", none)
	req := request(mcp.MethodCallTool, `{"name":"t"}`)
	req.LogLevel = "loud"
	wantPart(t, serve(t, s, req), `error -32602: unknown log level "loud"`)
}
