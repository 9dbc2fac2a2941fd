package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// counting is a server whose results may be reused for a minute; it counts the requests.
func counting(calls map[string]int) handlers {
	give := func(result string) func(context.Context, *mcp.Request) (*mcp.Result, error) {
		return func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
			calls[req.Method]++
			res := raw(result)
			res.Cache.TTL = time.Minute
			return res, nil
		}
	}
	return handlers{
		mcp.MethodDiscover:              give(discovery),
		mcp.MethodListTools:             give(`{"tools":[{"name":"t","inputSchema":{}}]}`),
		mcp.MethodListPrompts:           give(`{"prompts":[]}`),
		mcp.MethodListResources:         give(`{"resources":[]}`),
		mcp.MethodListResourceTemplates: give(`{"resourceTemplates":[]}`),
		mcp.MethodReadResource:          give(`{"contents":[]}`),
		mcp.MethodCallTool:              give(done),
		mcp.MethodListen:                (&feed{grant: `{"toolsListChanged":true,"resourceSubscriptions":["x://a"]}`}).listen,
	}
}

// useAll makes each call that has a cacheable result once, and a tools/call.
func useAll(t *testing.T, c *client.Client, opts ...client.CallOptions) {
	t.Helper()
	ctx := t.Context()
	_, err0 := c.Discover(ctx, opts...)
	_, err1 := client.All(c.Tools(ctx, opts...))
	_, err2 := client.All(c.Prompts(ctx, opts...))
	_, err3 := client.All(c.Resources(ctx, opts...))
	_, err4 := client.All(c.ResourceTemplates(ctx, opts...))
	_, err5 := c.ReadResource(ctx, "x://a", opts...)
	_, err6 := client.Call[string](ctx, c, "t", nil, opts...)
	if err := errors.Join(err0, err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
}

func tally(calls map[string]int) string {
	text := ""
	for _, m := range []string{mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates,
		mcp.MethodReadResource, mcp.MethodCallTool, mcp.MethodDiscover} {
		text += fmt.Sprint(calls[m], " ")
	}
	clear(calls)
	return strings.TrimSpace(text)
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]int{}
		l := &fakeDialer{handler: counting(calls)}
		c := dialFake(t, l, client.Options{})
		step := func(name, want string, opts ...client.CallOptions) {
			t.Helper()
			useAll(t, c, opts...)
			if got := tally(calls); got != want {
				t.Errorf("%s: tools, prompts, resources, templates, read, call, discover were asked %s times, want %s", name, got, want)
			}
		}
		clear(calls) // the greeting
		step("at first", "1 1 1 1 1 1 1")
		step("again", "0 0 0 0 0 1 0")
		step("NoCache", "1 1 1 1 1 1 1", client.CallOptions{NoCache: true})
		step("with _meta, which does not matter", "0 0 0 0 0 1 0", client.CallOptions{Meta: mcp.Meta{"trace": 1}})
		time.Sleep(time.Minute - 1)
		step("at the end of the time", "0 0 0 0 0 1 0")
		time.Sleep(1)
		step("after the time", "1 1 1 1 1 1 1")

		notify := func(method, params string) {
			l.inbound().Notify(mcp.Notification{Method: method, Params: []byte(params)})
		}
		notify(mcp.NotificationToolsChanged, `{}`)
		step("tools changed", "1 0 0 0 0 1 0")
		notify(mcp.NotificationPromptsChanged, `{}`)
		step("prompts changed", "0 1 0 0 0 1 0")
		notify(mcp.NotificationResourcesChanged, `{}`)
		step("resources changed", "0 0 1 1 0 1 0")
		notify(mcp.NotificationResourceUpdated, `{"uri":"x://other"}`)
		step("another resource updated", "0 0 0 0 0 1 0")
		notify(mcp.NotificationResourceUpdated, `{"uri":"x://a"}`)
		step("the resource updated", "0 0 0 0 1 1 0")
		notify(mcp.NotificationResourceUpdated, `{"uri":"x://a/part"}`)
		step("a part of the resource updated", "0 0 0 0 1 1 0")

		l.loseConnection("gone")
		if err := c.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		clear(calls)
		step("after a new connection", "1 1 1 1 1 1 1")
	})
}

func TestNoCache(t *testing.T) {
	calls := map[string]int{}
	c := dialWire(t, counting(calls), client.Options{NoCache: true})
	useAll(t, c)
	clear(calls)
	useAll(t, c)
	if got, want := tally(calls), "1 1 1 1 1 1 1"; got != want {
		t.Errorf("asked %s times, want %s", got, want)
	}
}

func TestAWatchInvalidatesTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]int{}
		h := counting(calls)
		f := &feed{changes: make(chan mcp.Notification), grant: `{"toolsListChanged":true}`}
		h[mcp.MethodListen] = f.listen
		c := dialWire(t, h, client.Options{})
		w, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		useAll(t, c)
		clear(calls)
		f.changes <- toolsChanged
		synctest.Wait()
		useAll(t, c)
		if got, want := tally(calls), "1 0 0 0 0 1 0"; got != want {
			t.Errorf("asked %s times, want %s", got, want)
		}
	})
}

func TestWhatIsNotCached(t *testing.T) {
	calls := 0
	var result *mcp.Result
	h := handlers{mcp.MethodReadResource: func(context.Context, *mcp.Request) (*mcp.Result, error) {
		calls++
		return result, nil
	}}
	state := "given"
	for _, test := range []struct {
		name   string
		result *mcp.Result
		params mcp.ReadResourceParams
	}{
		{"no time to live", &mcp.Result{Raw: []byte(`{"contents":[]}`)}, mcp.ReadResourceParams{URI: "x://0"}},
		{"a negative one", &mcp.Result{Raw: []byte(`{"contents":[]}`), Cache: mcp.Cache{TTL: -time.Hour}}, mcp.ReadResourceParams{URI: "x://0"}},
		{"a retry of the caller", &mcp.Result{Raw: []byte(`{"contents":[]}`), Cache: mcp.Cache{TTL: time.Hour}},
			mcp.ReadResourceParams{URI: "x://0", InputResponseParams: mcp.InputResponseParams{RequestState: &state}}},
		{"a big one", &mcp.Result{Raw: []byte(`{"contents":[{"uri":"x://0","text":"` + strings.Repeat("x", 5<<20) + `"}]}`), Cache: mcp.Cache{TTL: time.Hour}},
			mcp.ReadResourceParams{URI: "x://0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dialWire(t, h, client.Options{})
			calls, result = 0, test.result
			for range 2 {
				if _, err := client.Do(t.Context(), c, mcp.Method[mcp.ReadResourceParams, mcp.ReadResourceResult]{Name: mcp.MethodReadResource}, test.params); err != nil {
					t.Fatal(err)
				}
			}
			if calls != 2 {
				t.Errorf("asked %d times, want 2", calls)
			}
		})
	}
}

func TestResultsThatTookARetryAreNotCached(t *testing.T) {
	calls := 0
	h := handlers{mcp.MethodReadResource: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		calls++
		if param(req, "requestState") == "" {
			return asks(`{"requestState":"s","inputRequests":{"r":{"method":"roots/list"}}}`), nil
		}
		return &mcp.Result{Raw: []byte(`{"contents":[]}`), Cache: mcp.Cache{TTL: time.Hour}}, nil
	}}
	c := dialWire(t, h, client.Options{Answers: client.Answers{Roots: client.FixedRoots()}})
	for range 2 {
		if _, err := c.ReadResource(t.Context(), "x://a"); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 4 {
		t.Errorf("%d requests, want 2 for each read", calls)
	}
}

// A cached result answers requests with its own method and parameters only.
func TestCachedResultsBelongToOneRequest(t *testing.T) {
	text := func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		uri := rawjson.Lookup(req.Params, "uri")
		return &mcp.Result{Raw: []byte(`{"contents":[{"uri":` + string(uri) + `,"text":""}],"tools":[],"prompts":[]}`), Cache: mcp.Cache{TTL: time.Hour}}, nil
	}
	methods := ""
	list := func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		methods += req.Method + " "
		return &mcp.Result{Raw: []byte(`{"tools":[],"prompts":[]}`), Cache: mcp.Cache{TTL: time.Hour}}, nil
	}
	c := dialWire(t, handlers{mcp.MethodReadResource: text, mcp.MethodListTools: list, mcp.MethodListPrompts: list}, client.Options{})
	for _, uri := range []string{"x://a", "x://b", "x://a", "x://b"} {
		if r, err := c.ReadResource(t.Context(), uri); err != nil || r.Contents[0].URI != uri {
			t.Errorf("%s: %+v, %v", uri, r, err)
		}
	}
	for range 2 {
		_, err1 := client.All(c.Tools(t.Context()))
		_, err2 := client.All(c.Prompts(t.Context()))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
	}
	if methods != "tools/list prompts/list " {
		t.Errorf("the server got %s", methods)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	calls := 0
	h := handlers{mcp.MethodReadResource: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		calls++
		return &mcp.Result{Raw: []byte(`{"contents":[]}`), Cache: mcp.Cache{TTL: time.Hour}}, nil
	}}
	c := dialWire(t, h, client.Options{})
	read := func(i int) {
		if _, err := c.ReadResource(t.Context(), fmt.Sprint("x://", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1025 {
		read(i)
		read(1) // stays in use
	}
	if calls != 1025 {
		t.Fatalf("%d requests", calls)
	}
	if read(1); calls != 1025 {
		t.Error("what is in use was dropped")
	}
	if read(0); calls != 1026 {
		t.Error("what was not used for longest is still there")
	}
}

// A change that is notified while the list is on its way makes what arrives stale.
func TestInvalidWhileOnItsWay(t *testing.T) {
	calls := 0
	l := &fakeDialer{}
	l.handler = handlers{mcp.MethodListTools: func(context.Context, *mcp.Request) (*mcp.Result, error) {
		if calls++; calls == 1 {
			l.inbound().Notify(mcp.Notification{Method: mcp.NotificationToolsChanged})
		}
		return &mcp.Result{Raw: []byte(`{"tools":[]}`), Cache: mcp.Cache{TTL: time.Hour}}, nil
	}}
	c := dialFake(t, l, client.Options{})
	for range 3 {
		if _, err := client.All(c.Tools(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 2 {
		t.Errorf("asked %d times, want 2", calls)
	}
}
