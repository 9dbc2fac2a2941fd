package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

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
	for _, path := range []string{"/", "/mcp/none", "/client/none/mcp", "/client/small", "/x"} {
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
	url := frontOver(t, gateway.HTTPOptions{Token: "right", Page: http.NotFoundHandler()}, false)
	for _, path := range []string{"/mcp", "/mcp/every", "/sse", "/status.json"} {
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
	if got := names(t, url+"/mcp", client.Options{HTTP: client.HTTP{Header: header}}); !slices.Contains(got, "every__echo") {
		t.Errorf("%v", got)
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
	call := func(h mcp.Handler, principal string) error {
		_, err := h.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"wait","arguments":{}}`),
			Revision: mcp.LatestRevision, Principal: mcp.Principal{ID: principal}})
		return err
	}
	h := mcp.Chain(s, gateway.Limit(gateway.Limits{Concurrent: 1}))
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- call(h, "ann") }()
	}
	if err := <-done; err == nil { // the second of the two, while the first one waits
		t.Error("a second call runs beside the first")
	}
	close(gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
	limited := mcp.Chain(s, gateway.Limit(gateway.Limits{Rate: 0.001, Burst: 2}))
	for i, want := range []bool{true, true, false} {
		if got := call(limited, "ann") == nil; got != want {
			t.Errorf("call %d passes: %v", i+1, got)
		}
	}
	if call(limited, "bob") != nil {
		t.Error("one client's use counts against another")
	}
}

// After Shutdown every path refuses, also a path without earlier requests.
func TestFrontAfterShutdown(t *testing.T) {
	g, _ := over(t, hub.Definition{Name: "up", Target: everything.New()})
	f := g.HTTPHandler(&gateway.HTTPOptions{})
	if err := f.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/mcp", "/mcp/up"} {
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
