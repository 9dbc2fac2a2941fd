package sse_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func TestDial(t *testing.T) {
	f := newFake(t)
	u := sse.URL{URL: f.url(), Header: func(context.Context) (http.Header, error) {
		return http.Header{"authorization": {"Bearer secret"}, "X-Own": {"1"}, "Accept": {"text/html"}, "Content-Type": {"text/html"}}, nil
	}}
	tr := dial(t, u, newInbound(), transport.ClientOptions{})
	if err := tr.(mcp.Notifier).Notify(within(t), mcp.Notification{Method: "notifications/roots/list_changed"}); err != nil {
		t.Error(err)
	}
	if got, want := f.requests(), "GET /sse, POST /messages?session=1, POST /messages?session=1, POST /messages?session=1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i, h := range f.headers() {
		want := map[string]string{"Authorization": "Bearer secret", "X-Own": "1", "Accept": "text/html", "Content-Type": "application/json", "Mcp-Protocol-Version": ""}
		switch i {
		case 0:
			want["Accept"], want["Content-Type"] = "text/event-stream", "text/html"
		case 2, 3:
			want["Mcp-Protocol-Version"] = "2025-06-18"
		}
		for name, value := range want {
			if h.Get(name) != value {
				t.Errorf("request %d: %s is %q, want %q", i, name, h.Get(name), value)
			}
		}
	}
}

func TestDialer(t *testing.T) {
	u := sse.URL{URL: "https://user:pass@example.com/sse?key=secret#x"}
	if u.String() != "https://example.com/sse" || u.Endpoint() != u.URL {
		t.Error(u.String(), u.Endpoint())
	}
	for _, bad := range []string{"", "example.com/sse", "ftp://example.com", "http://", "http://%zz?secret"} {
		_, err := sse.URL{URL: bad}.Dial(within(t), newInbound(), transport.ClientOptions{Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	_, err := sse.URL{URL: "http://127.0.0.1:1"}.Dial(within(t), newInbound(), transport.ClientOptions{Revision: mcp.Revision20260728})
	if err == nil || !strings.Contains(err.Error(), "2026-07-28") {
		t.Error(err)
	}
	_, err = sse.URL{URL: "http://127.0.0.1:1/?key=secret"}.Dial(within(t), newInbound(), transport.ClientOptions{Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
	if !errors.Is(err, mcp.ErrConnection) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	broken := errors.New("no token")
	_, err = sse.URL{URL: "http://127.0.0.1:1", Header: func(context.Context) (http.Header, error) { return nil, broken }}.Dial(within(t), newInbound(), transport.ClientOptions{Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestPinned(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{})
	memory := new(transport.Verdicts)
	for _, r := range []mcp.Revision{"", mcp.Revision20241105, mcp.Revision20250618} {
		u := sse.URL{URL: web.URL + "/sse"}
		memory.Remember(u.Endpoint(), mcp.Revision20260728) // of Streamable HTTP at the same URL
		tr := dial(t, u, newInbound(), transport.ClientOptions{Revision: r, Verdicts: memory})
		res, err := tr.RoundTrip(within(t), &mcp.Request{Method: mcp.MethodListTools, Params: []byte(`{}`)})
		if want := r; err != nil || res.Revision != want && (want != "" || res.Revision != mcp.LatestLegacyRevision) {
			t.Errorf("%q: %v %v", r, res, err)
		}
		if memory.Lookup(u.Endpoint()) != mcp.Revision20260728 {
			t.Error("the memory of other transports was changed")
		}
	}
}

// Endpoints as servers send them for a stream at /sse.
func TestEndpoints(t *testing.T) {
	elsewhere := newFake(t)
	for _, tt := range []struct{ told, fails string }{
		{"/messages?x=1", ""}, {"messages?x=1", ""}, {"./messages", ""}, {"HOST/messages", ""}, {" /messages ", ""},
		{elsewhere.web.URL + "/messages", "another origin"}, {"https://HOSTNAME/messages", "another origin"}, {"//evil.example/messages", "another origin"},
		{"http://localhost.evil.example/messages", "another origin"}, {"ftp://HOSTNAME/messages", "another origin"}, {"javascript:alert(1)", "another origin"},
		{"", "no valid URL"}, {"http://[::1/messages", "no valid URL"}, {"http://evil.example@HOSTNAME/messages", ""},
	} {
		f := newFake(t)
		f.endpoint = strings.NewReplacer("HOSTNAME", strings.TrimPrefix(f.web.URL, "http://"), "HOST", f.web.URL).Replace(tt.told)
		tr, err := sse.URL{URL: f.url()}.Dial(within(t), newInbound(), transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
		switch {
		case tt.fails == "" && err != nil, tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)):
			t.Errorf("%q: %v", f.endpoint, err)
		case err == nil:
			_ = tr.Close()
		}
	}
	if got := elsewhere.requests(); got != "" {
		t.Error("another origin was asked:", got)
	}
}

// The URL must be tried as it is first, and then its alternative.
func TestOtherForm(t *testing.T) {
	for _, tt := range []struct {
		path, dialed string
		status       int
		want         string
	}{
		{"/sse", "/sse", 404, "GET /sse"}, {"/sse", "", 404, "GET /, GET /sse"}, {"/sse", "/", 405, "GET /, GET /sse"}, {"/a/sse", "/a?k=1", 404, "GET /a?k=1, GET /a/sse?k=1"},
		{"/a", "/a/sse", 404, "GET /a/sse, GET /a"}, {"/a", "/a/sse/", 405, "GET /a/sse/, GET /a"}, {"/a/sse", "/a", 200, "GET /a, GET /a/sse"},
		{"/a/sse", "/a", 401, "HTTP 401"}, {"/a/sse", "/a", 500, "HTTP 500"}, {"/b", "/a", 404, "HTTP 404"}, {"/b", "/a", 405, "HTTP 405"}, {"/b", "/a", 200, "HTTP 200"},
	} {
		f := newFake(t)
		f.path = tt.path
		real := f.web.Config.Handler
		f.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" && r.URL.Path != f.path {
				f.mu.Lock()
				f.seen = append(f.seen, "GET "+r.URL.RequestURI())
				f.mu.Unlock()
				http.Error(w, "why", tt.status)
				return
			}
			real.ServeHTTP(w, r)
		})
		tr, err := sse.URL{URL: f.web.URL + tt.dialed}.Dial(within(t), newInbound(), transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
		var answered *streamable.HTTPError
		if errors.As(err, &answered) {
			if got := fmt.Sprint("HTTP ", answered.Status); got != tt.want || string(answered.Body) != "why\n" {
				t.Errorf("%+v: %v", tt, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		if got, _, _ := strings.Cut(f.requests(), ", POST"); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
		_ = tr.Close()
	}
}

// No request may go to another origin, neither credentials nor messages.
func TestRedirects(t *testing.T) {
	elsewhere := newFake(t)
	for _, tt := range []struct {
		name, from, to string
		status         int
		fails          string
	}{
		{"the stream within the origin", "/old", "/sse", 302, ""}, {"the stream elsewhere", "/old", elsewhere.url(), 307, "another origin"},
		{"messages within the origin", "/first", "/messages", 308, ""}, {"messages elsewhere", "/first", elsewhere.web.URL + "/messages", 307, "another origin"},
		{"a message that would be none", "/first", "/messages", 302, "HTTP status 302"}, {"in a circle", "/old", "/old", 302, "redirected more than 10 times"},
	} {
		f := newFake(t)
		real := f.web.Config.Handler
		f.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == tt.from {
				http.Redirect(w, r, tt.to, tt.status)
				return
			}
			real.ServeHTTP(w, r)
		})
		u := sse.URL{URL: f.url(), Header: func(context.Context) (http.Header, error) { return http.Header{"Authorization": {"secret"}}, nil }}
		if tt.from == "/old" {
			u.URL = f.web.URL + "/old"
		} else {
			f.endpoint = tt.from
		}
		tr, err := u.Dial(within(t), newInbound(), transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
		switch {
		case tt.fails == "" && err != nil, tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)):
			t.Errorf("%s: %v", tt.name, err)
		case err == nil:
			_ = tr.Close()
		}
	}
	if got := elsewhere.requests(); got != "" {
		t.Error("another origin was asked:", got)
	}
}

// The client's CheckRedirect must be asked too, and its Timeout must not end the stream.
func TestOwnClient(t *testing.T) {
	f := newFake(t)
	real := f.web.Config.Handler
	f.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/sse", 302)
			return
		}
		real.ServeHTTP(w, r)
	})
	no := errors.New("never")
	limits := &deadlineRecorder{limited: map[string]bool{}, inner: &http.Transport{DisableKeepAlives: true}}
	own := &http.Client{Transport: limits, Timeout: time.Hour, CheckRedirect: func(*http.Request, []*http.Request) error { return no }}
	if _, err := (sse.URL{URL: f.web.URL + "/old", Client: own}).Dial(within(t), newInbound(), transport.ClientOptions{Tap: mcptest.ClientTap(t, mcptest.SentOnly())}); !errors.Is(err, no) {
		t.Error(err)
	}
	dial(t, sse.URL{URL: f.url(), Client: own}, newInbound(), transport.ClientOptions{})
	limits.mu.Lock()
	defer limits.mu.Unlock()
	if want := map[string]bool{"GET": false, "POST": true}; !maps.Equal(limits.limited, want) {
		t.Errorf("requests with a deadline: %v, want %v", limits.limited, want)
	}
}

// deadlineRecorder records for each method whether its last request had a deadline, as a client's
// Timeout sets it.
type deadlineRecorder struct {
	mu      sync.Mutex
	limited map[string]bool
	inner   http.RoundTripper
}

func (d *deadlineRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	_, d.limited[r.Method] = r.Context().Deadline()
	d.mu.Unlock()
	return d.inner.RoundTrip(r)
}

// If a server hangs at any step, the end of ctx must end the dial.
func TestDialIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name string
		path string
		post func(f *fake, w http.ResponseWriter, r *http.Request, m jsonrpc.Message)
	}{
		{"no header", "/silent", nil}, {"no endpoint", "/mute", nil},
		{"initialize is not accepted", "/sse", func(_ *fake, _ http.ResponseWriter, r *http.Request, _ jsonrpc.Message) { <-r.Context().Done() }},
		{"initialize is not answered", "/sse", func(_ *fake, w http.ResponseWriter, _ *http.Request, _ jsonrpc.Message) { w.WriteHeader(202) }},
		{"initialized is not accepted", "/sse", func(f *fake, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			if m.Method != "initialize" {
				<-r.Context().Done()
			}
			handshake(f, w, r, m)
		}},
	} {
		f := newFake(t)
		f.post = tt.post
		real := f.web.Config.Handler
		f.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/mute":
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, ": hello\n\nevent: ping\ndata: x\n\n")
				_ = http.NewResponseController(w).Flush()
				fallthrough
			case "/silent":
				<-r.Context().Done()
			default:
				real.ServeHTTP(w, r)
			}
		})
		patience := errors.New("patience is over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, patience)
		began := time.Now()
		_, err := sse.URL{URL: f.web.URL + tt.path}.Dial(ctx, newInbound(), transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
		cancel()
		if !errors.Is(err, patience) || time.Since(began) > polltest.Limit {
			t.Errorf("%s: %v after %v", tt.name, err, time.Since(began))
		}
	}
}

// If the handshake is refused, the error must be returned after one attempt.
func TestRefused(t *testing.T) {
	f := newFake(t)
	f.post = func(_ *fake, w http.ResponseWriter, _ *http.Request, _ jsonrpc.Message) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, strings.Repeat("x", 10_000), 401)
	}
	_, err := sse.URL{URL: f.url()}.Dial(within(t), newInbound(), transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
	var answered *streamable.HTTPError
	if !errors.As(err, &answered) || answered.Status != 401 || answered.Header.Get("WWW-Authenticate") != "Bearer" || len(answered.Body) != 4096 {
		t.Error(err)
	}
	if got := f.requests(); got != "GET /sse, POST /messages?session=1" {
		t.Error(got)
	}
}

func TestStreamEndsBeforeEndpoint(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream;charset=utf-8")
	}))
	defer web.Close()
	_, err := sse.URL{URL: web.URL}.Dial(within(t), newInbound(), transport.ClientOptions{Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
	if !errors.Is(err, mcp.ErrConnection) || !strings.Contains(err.Error(), "endpoint") {
		t.Error(err)
	}
}
