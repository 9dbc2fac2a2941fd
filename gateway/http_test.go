package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// All endpoints of a gateway share its limits, and the name in the path is a client.
func TestEndpointsShareLimits(t *testing.T) {
	quota := transport.NewQuota(transport.Limits{Streams: 3, ClientStreams: 2})
	o := gateway.HTTPOptions{Streamable: streamable.Options{ServerOptions: transport.ServerOptions{Quota: quota}}}
	url := frontOver(t, o, true)
	for _, tt := range []struct {
		path   string
		status int
	}{{"/client/small/mcp", 200}, {"/client/small/mcp", 200}, {"/client/small/mcp", 429}, {"/mcp", 200}, {"/mcp/every", 503}} {
		if got := listenOn(t, url+tt.path); got != tt.status {
			t.Errorf("%s: status %d, want %d", tt.path, got, tt.status)
		}
	}
	if _, streams, _ := quota.Used(); streams != 3 {
		t.Errorf("%d streams are counted", streams)
	}
}

// listenOn opens a subscription until the test ends, and returns the HTTP status.
func listenOn(t *testing.T, url string) int {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + string(mcp.LatestRevision) +
		`","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": string(mcp.LatestRevision), "Mcp-Method": mcp.MethodListen,
	} {
		r.Header.Set(name, value)
	}
	pool := &http.Transport{}
	resp, err := (&http.Client{Transport: pool}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close(); pool.CloseIdleConnections() })
	return resp.StatusCode
}

// frontOver serves a gateway over a built-in server and a slow one.
func frontOver(t *testing.T, o gateway.HTTPOptions, searching bool) string {
	t.Helper()
	h := hub.New(nil)
	h.Apply([]hub.Definition{{Name: "every", Target: everything.New()}}, "the test begins")
	h.Settle(t.Context())
	g := gateway.New(h, nil)
	if searching {
		o.Clients = map[string]*gateway.Gateway{"small": g.WithToolSearch("every.echo")}
	}
	f := g.HTTPHandler(&o)
	web := httptest.NewServer(f)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		web.Close()
		g.Close()
		h.Close()
	})
	return web.URL
}

func names(t *testing.T, url string, o client.Options) (all []string) {
	t.Helper()
	transport := &http.Transport{}
	o.HTTP.Client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.Dial(t.Context(), url, &o)
	if err != nil {
		t.Fatal(url, err)
	}
	t.Cleanup(func() { c.Close() })
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(url, err)
		}
		all = append(all, tool.Name)
	}
	return all
}

func TestFront(t *testing.T) {
	url := frontOver(t, gateway.HTTPOptions{}, true)
	for path, tool := range map[string]string{"/mcp": "every__echo", "/mcp/": "every__echo", "/mcp/every": "echo", "/sse": "every__echo", "/client/small/mcp": "search_tools"} {
		if got := names(t, url+path, client.Options{}); !slices.Contains(got, tool) {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got := names(t, url+"/client/small/mcp", client.Options{}); !slices.Equal(got, []string{"search_tools", "describe_tool", "call_tool", "dowel__status", "every__echo"}) {
		t.Errorf("%v", got)
	}
	for path, tool := range map[string]string{"/ws": "every__echo", "/ws/": "every__echo", "/ws/every": "echo", "/client/small/ws": "search_tools"} {
		if got := names(t, "ws"+strings.TrimPrefix(url, "http")+path, client.Options{}); !slices.Contains(got, tool) {
			t.Errorf("%s: %v", path, got)
		}
	}
	for _, path := range []string{"/", "/mcp/none", "/ws/none", "/client/none/mcp", "/client/none/ws", "/client/small", "/client/small/ws/x", "/x"} {
		resp, err := http.Post(url+path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// Without the token every path refuses.
func TestToken(t *testing.T) {
	authorize := func(r *http.Request) (string, error) {
		switch scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); {
		case strings.EqualFold(scheme, "Bearer") && token == "right":
			return "", nil
		case token == "of-small":
			return "small", nil
		}
		return "", errors.New("the token is missing")
	}
	url := frontOver(t, gateway.HTTPOptions{Authorize: authorize, Page: http.NotFoundHandler()}, true)
	for _, path := range []string{"/mcp", "/mcp/every", "/sse", "/ws", "/ws/every", "/client/small/mcp", "/client/small/ws", "/status.json"} {
		for token, want := range map[string]bool{"": false, "Bearer wrong": false, "Basic right": false, "bearer right": true} {
			r, err := http.NewRequest(http.MethodGet, url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", token)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			resp, err := http.DefaultClient.Do(r.WithContext(ctx))
			if err != nil {
				t.Fatal(path, err)
			}
			resp.Body.Close()
			cancel()
			if got := resp.StatusCode != http.StatusUnauthorized; got != want {
				t.Errorf("%s with %q: %s", path, token, resp.Status)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
	header := func(context.Context) (http.Header, error) { return http.Header{"Authorization": {"Bearer right"}}, nil }
	for _, at := range []string{url + "/mcp", "ws" + strings.TrimPrefix(url, "http") + "/ws"} {
		if got := names(t, at, client.Options{HTTP: client.HTTP{Header: header}}); !slices.Contains(got, "every__echo") {
			t.Errorf("%s: %v", at, got)
		}
	}
}

// The token of a client leads to its own gateway and to nothing else. Paths at which clients look
// for a login answer 404 with the reason of the refusal.
func TestClientToken(t *testing.T) {
	authorize := func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") == "Bearer of-small" {
			return "small", nil
		}
		return "", errors.New("the token is missing")
	}
	url := frontOver(t, gateway.HTTPOptions{Authorize: authorize, Page: http.NotFoundHandler()}, true)
	header := func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer of-small"}}, nil
	}
	ws := "ws" + strings.TrimPrefix(url, "http")
	for _, at := range []string{url + "/mcp", url + "/client/small/mcp", ws + "/ws", ws + "/client/small/ws"} {
		if got := names(t, at, client.Options{HTTP: client.HTTP{Header: header}}); !slices.Contains(got, "search_tools") {
			t.Errorf("%s: %v", at, got)
		}
	}
	status := func(path, token string) (int, string, http.Header) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), resp.Header
	}
	defer http.DefaultClient.CloseIdleConnections()
	for _, path := range []string{"/mcp/every", "/ws/every", "/sse", "/status.json", "/client/other/mcp", "/client/other/ws", "/x"} {
		if code, body, _ := status(path, "Bearer of-small"); code != http.StatusForbidden || !strings.Contains(body, "small") {
			t.Errorf("%s with the client's token: %d %s", path, code, body)
		}
	}
	for _, path := range []string{
		"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server",
		"/.well-known/openid-configuration", "/mcp/.well-known/openid-configuration", "/register", "/authorize", "/token",
	} {
		if code, body, _ := status(path, ""); code != http.StatusNotFound || !strings.Contains(body, "the token is missing") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	code, body, h := status("/mcp", "")
	if code != http.StatusUnauthorized || !strings.Contains(body, "the token is missing") || strings.Contains(h.Get("WWW-Authenticate"), "resource_metadata") {
		t.Errorf("%d %s %v", code, body, h)
	}
}

// A connection that is open when its token is revoked ends, also an event stream, and so does the
// client's own.
func TestRevokedToken(t *testing.T) {
	defer gateway.SetAuthorizationInterval(20 * time.Millisecond)()
	var revoked atomic.Bool
	authorize := func(*http.Request) (string, error) {
		if revoked.Load() {
			return "", errors.New("the token is not valid")
		}
		return "", nil
	}
	url := frontOver(t, gateway.HTTPOptions{Authorize: authorize}, false)
	lost := make(chan struct{}, 2)
	for _, at := range []string{"ws" + strings.TrimPrefix(url, "http") + "/ws", url + "/sse"} {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		c := dial(t, at, client.Options{Logger: quiet, HTTP: client.HTTP{Client: &http.Client{Transport: transport}}, Restart: client.Restart{Max: -1}})
		if _, err := client.Call[string](t.Context(), c, "every__echo", map[string]string{"message": "x"}); err != nil {
			t.Fatal(at, err)
		}
		go func() {
			defer func() { lost <- struct{}{} }()
			for {
				if _, err := client.Call[string](t.Context(), c, "every__echo", map[string]string{"message": "x"}); err != nil {
					return
				}
			}
		}()
	}
	resp, err := http.Get(url + "/sse")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	revoked.Store(true)
	_, _ = io.Copy(io.Discard, resp.Body) // ends with the stream
	for range cap(lost) {
		<-lost
	}
}

func TestLimit(t *testing.T) {
	gate := make(chan struct{})
	s := server.New("s", "1", nil)
	server.Tool(s, "wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return "", nil
	})
	h := mcp.Chain(s, gateway.Limit(gateway.Limits{Concurrent: 1}))
	done := make(chan string, 2)
	for range 2 {
		go func() { done <- callRefusal(t, h, "ann") }()
	}
	if refusal := <-done; !strings.Contains(refusal, "1 requests of this client are in progress") { // the second one, while the first one waits
		t.Errorf("a second call runs beside the first: %q", refusal)
	}
	close(gate)
	if refusal := <-done; refusal != "" {
		t.Error(refusal)
	}
}

// callRefusal calls the tool wait and returns the text of a result that is an error, or "".
func callRefusal(t *testing.T, h mcp.Handler, principal string) string {
	res, err := h.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"wait","arguments":{}}`),
		Revision: mcp.LatestRevision, Principal: mcp.Principal{ID: principal}})
	if err != nil {
		t.Error(err)
		return ""
	}
	if result, ok := res.Value.(*mcp.CallToolResult); ok && result.IsError {
		return result.Content[0].Text
	}
	return ""
}

// Calls above the rate wait, or get a result that tells a model when to try again. Lists do not
// count, and clients do not count against each other.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New("s", "1", nil)
		server.Tool(s, "wait", "Returns at once.", func(context.Context, struct{}) (string, error) { return "", nil })
		h := mcp.Chain(s, gateway.Limit(gateway.Limits{Rate: 0.25, Burst: 2}))
		start := time.Now()
		for i, want := range []time.Duration{0, 0, 4 * time.Second, 8 * time.Second} {
			if refusal := callRefusal(t, h, "ann"); refusal != "" || time.Since(start) != want {
				t.Errorf("call %d after %v: %s", i+1, time.Since(start), refusal)
			}
		}
		refused := make(chan string, 4)
		for range 4 {
			go func() { refused <- callRefusal(t, h, "ann") }()
		}
		for range 2 {
			if refusal := <-refused; !strings.Contains(refusal, "15 calls a minute") || !strings.Contains(refusal, "try again in") {
				t.Errorf("got %q", refusal)
			}
		}
		for range 2 {
			if refusal := <-refused; refusal != "" {
				t.Error(refusal)
			}
		}
		for range 10 {
			if _, err := h.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodListTools, Revision: mcp.LatestRevision, Principal: mcp.Principal{ID: "ann"}}); err != nil {
				t.Fatal(err)
			}
		}
		if refusal := callRefusal(t, h, "bob"); refusal != "" {
			t.Error(refusal)
		}
	})
}

// After Shutdown every path refuses, also a path without earlier requests.
func TestFrontAfterShutdown(t *testing.T) {
	g, _ := over(t, hub.Definition{Name: "up", Target: everything.New()})
	f := g.HTTPHandler(&gateway.HTTPOptions{})
	if err := f.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/mcp", "/mcp/up", "/ws/up"} {
		const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		if f.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestMeant(t *testing.T) {
	h := hub.New(nil)
	defer h.Close()
	h.Apply([]hub.Definition{{Name: "every", Target: everything.New(), Policy: hub.Policy{Tools: hub.ToolRules{Only: []string{"add", "echo"}}}}}, "the test begins")
	h.Settle(t.Context())
	g := gateway.New(h, nil)
	defer g.Close()
	for name, want := range map[string]string{
		"every__ecko": "unknown tool: every__ecko; did you mean every__echo?", "Every-Echo": "",
		"nobody__does_this_thing":           "unknown tool: nobody__does_this_thing; there is no server nobody: dowel__status tells which there are",
		"every__nothing_of_the_kind_at_all": "unknown tool: every__nothing_of_the_kind_at_all; its tools are every__echo, every__add",
	} {
		_, err := g.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"` + name + `","arguments":{"message":"x"}}`), Revision: mcp.LatestRevision})
		if got := message(err); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func message(err error) string {
	var e *mcp.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return ""
}
