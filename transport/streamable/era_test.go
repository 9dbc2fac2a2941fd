package streamable_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// httpRevisions are the revisions with Streamable HTTP, and "" for a client that finds out.
var httpRevisions = append([]mcp.Revision{""}, slices.DeleteFunc(mcp.Revisions(), func(r mcp.Revision) bool { return r == mcp.Revision20241105 })...)

func eachRevision(t *testing.T, test func(t *testing.T, r mcp.Revision)) {
	for _, r := range httpRevisions {
		name := string(r)
		if name == "" {
			name = "found out"
		}
		t.Run(name, func(t *testing.T) { test(t, r) })
	}
}

func TestCalls(t *testing.T) {
	_, web := serve(t, testServer(nil))
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c := dial(t, web.URL+"/mcp", r, client.Options{})
		for _, text := range []string{"hi", "", "äöü\r\n\u2028"} {
			if got, err := client.Call[string](t.Context(), c, "echo", message{text}); err != nil || got != text {
				t.Errorf("echo: %q, %v", got, err)
			}
		}
		var steps []float64
		_, err := client.Call[string](t.Context(), c, "progress", message{"x"}, client.CallOptions{OnProgress: func(p mcp.ProgressParams) { steps = append(steps, p.Progress) }})
		if err != nil || len(steps) == 0 || !slices.IsSorted(steps) {
			t.Errorf("progress: %v, %v", steps, err)
		}
		if _, err := client.Call[string](t.Context(), c, "nothing", nil); err == nil {
			t.Error("an unknown tool was called")
		}
	})
}

// Mcp-Name is base64 if the name is not safe in a header.
func TestNamesInHeaders(t *testing.T) {
	t.Parallel()
	s := testServer(nil)
	server.Resource(s, "x://{name}", "", func(context.Context, struct {
		Name string `uri:"name"`
	}) (string, error) {
		return "", nil
	})
	server.Prompt(s, "greet", "", func(context.Context, struct{}) (string, error) { return "", nil })
	endpoint := streamable.Handler(s, nil)
	var sent string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if method := r.Header.Get("Mcp-Method"); method == mcp.MethodReadResource || method == mcp.MethodGetPrompt {
			sent = r.Header.Get("Mcp-Name")
		}
		endpoint.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	c := dial(t, web.URL, mcp.LatestRevision, client.Options{Wire: client.Wire{Tap: mcptest.ClientTap(t, mcptest.WithoutChecks("schema"))}}) // not all are URIs
	for uri, want := range map[string]string{
		"x://plain": "x://plain", "x://é": "=?base64?eDovL8Op?=", " x://a": "=?base64?IHg6Ly9h?=", "x://a\r\nHost:b": "=?base64?eDovL2ENCkhvc3Q6Yg==?=",
	} {
		sent = ""
		if _, err := c.ReadResource(t.Context(), uri); errors.Is(err, mcp.ErrConnection) {
			t.Errorf("%q: %v", uri, err)
		}
		if sent != want {
			t.Errorf("%q is sent as %q, want %q", uri, sent, want)
		}
	}
	if _, err := c.GetPrompt(t.Context(), "greet", nil); err != nil || sent != "greet" {
		t.Errorf("the prompt is sent as %q, %v", sent, err)
	}
}

func TestAsks(t *testing.T) {
	_, web := serve(t, testServer(nil))
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		if r == mcp.Revision20250326 {
			return // this revision has no elicitation
		}
		type key struct{}
		var own atomic.Bool
		c := dial(t, web.URL+"/mcp", r, client.Options{Answers: client.Answers{Elicit: func(ctx context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			own.Store(ctx.Value(key{}) == "the call's")
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: []byte(`{"name":"Ada"}`)}, nil
		}}})
		got, err := client.Call[string](context.WithValue(t.Context(), key{}, "the call's"), c, "ask", nil)
		if err != nil || got != "hello Ada" {
			t.Errorf("%q, %v", got, err)
		}
		if !own.Load() {
			t.Error("the question was not asked in the context of its call")
		}
	})
}

func TestCancel(t *testing.T) {
	s := testServer(nil)
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				begun <- struct{}{}
			}
			res, err := next.ServeMCP(ctx, req)
			if req.Method == mcp.MethodCallTool {
				ended <- context.Cause(ctx)
			}
			return res, err
		})
	})
	_, web := serve(t, s)
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c := dial(t, web.URL+"/mcp", r, client.Options{})
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-begun; cancel(enough) }()
		if _, err := client.Call[string](ctx, c, "wait", nil); !errors.Is(err, enough) {
			t.Errorf("the call ended with %v", err)
		}
		select {
		case cause := <-ended:
			if cause == nil {
				t.Error("the handler's context had not ended")
			}
		case <-time.After(polltest.Limit):
			t.Error("the handler still runs")
		}
	})
}

func TestWatch(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		_, web := serve(t, testServer(nil))
		c := dial(t, web.URL+"/mcp", r, client.Options{})
		w, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := client.Call[string](t.Context(), c, "grow", nil); err != nil {
			t.Fatal(err)
		}
		defer time.AfterFunc(polltest.Limit, func() { w.Close() }).Stop()
		for change, err := range w.Changes() {
			if err != nil || change.Method != mcp.NotificationToolsChanged {
				t.Errorf("%v, %v", change, err)
			}
			return
		}
		t.Error("nobody was told")
	})
}

// A call that takes longer than JSONFor must be answered by a stream.
func TestSlowCall(t *testing.T) {
	gate := make(chan struct{})
	_, web := serve(t, testServer(gate), streamable.Options{JSONFor: 20 * time.Millisecond, KeepAlive: 10 * time.Millisecond})
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c := dial(t, web.URL+"/mcp", r, client.Options{})
		time.AfterFunc(100*time.Millisecond, func() { openGate(t, gate) })
		if got, err := client.Call[string](t.Context(), c, "wait", nil); err != nil || got != "let go" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// If the server ends the connection during a call, the client must resume it.
func TestDisconnect(t *testing.T) {
	_, web := serve(t, testServer(nil), streamable.Options{Sessions: streamable.SessionOptions{Retry: 20 * time.Millisecond}})
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		want := "not cut"
		if r == mcp.Revision20251125 {
			want = "cut"
		}
		c := dial(t, web.URL+"/mcp", r, client.Options{})
		logs := 0
		got, err := client.Call[string](t.Context(), c, "cut", nil, client.CallOptions{
			OnProgress: func(mcp.ProgressParams) {}, OnLog: func(mcp.LoggingMessageParams) { logs++ },
		})
		if err != nil || got != want {
			t.Errorf("%q, %v", got, err)
		}
		if want == "cut" && logs != 1 {
			t.Errorf("%d log messages came through the cut", logs)
		}
	})
}

// Arguments must be mirrored into header fields, whether the tool was listed before or not.
func TestParameters(t *testing.T) {
	_, web := serve(t, testServer(nil))
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c := dial(t, web.URL+"/mcp", r, client.Options{})
		for _, region := range []string{"eu", " padded ", "日本", "=?base64?x?="} {
			if _, err := client.Call[string](t.Context(), c, "route", routed{Region: region, Level: 3}); err != nil {
				t.Errorf("%q: %v", region, err)
			}
		}
	})
}

// With StreamAtOnce, the header of an event stream arrives before the call is done.
func TestStreamAtOnce(t *testing.T) {
	gate := make(chan struct{})
	_, web := serve(t, testServer(gate), streamable.Options{StreamAtOnce: true, JSONFor: time.Hour, KeepAlive: -1})
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		opened := make(chan struct{}, 100)
		hc := &http.Client{Transport: answerWatcher{&http.Transport{}, opened}}
		c := dial(t, web.URL+"/mcp", r, client.Options{HTTP: client.HTTP{Client: hc}})
		go func() {
			<-opened // the handler waits for the gate
			openGate(t, gate)
		}()
		if got, err := client.Call[string](t.Context(), c, "wait", nil); err != nil || got != "let go" {
			t.Errorf("%q, %v", got, err)
		}
	})
	for accept, want := range map[string]string{"application/json": "application/json", "application/json, text/event-stream": "text/event-stream"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Accept": accept, "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %s, %s", accept, resp.Status, got)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// answerWatcher reports each answer to a POST of tools/call that is an event stream.
type answerWatcher struct {
	*http.Transport
	opened chan struct{}
}

func (a answerWatcher) RoundTrip(r *http.Request) (*http.Response, error) {
	isCall := false
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		isCall = bytes.Contains(body, []byte(`"tools/call"`))
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := a.Transport.RoundTrip(r)
	if err == nil && isCall && resp.Header.Get("Content-Type") == "text/event-stream" {
		a.opened <- struct{}{}
	}
	return resp, err
}
