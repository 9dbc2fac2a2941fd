package sse_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func TestSession(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{ServerOptions: transport.ServerOptions{Tap: mcptest.ServerTap(t)}})
	p := open(t, web, "/sse")
	if !regexp.MustCompile(`^sse\?sessionId=[A-Z2-7]{26}$`).MatchString(p.told) {
		t.Errorf("the endpoint is %q", p.told)
	}
	p.initialize()
	if got := p.post(toolCall(2, "echo", `{"text":"a"}`)); got != "202" {
		t.Error(got)
	}
	if got, want := p.next(), `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"a"}]}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if other := open(t, web, "/sse"); other.told == p.told {
		t.Error("two sessions have one id")
	}
}

// Messages must be events with the name "message", because some clients ignore others.
func TestEventsOnTheWire(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{})
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(polltest.Limit))
	_, _ = io.WriteString(conn, "GET /sse HTTP/1.0\r\nHost: localhost\r\n\r\n")
	var got strings.Builder
	buf := make([]byte, 4096)
	session := regexp.MustCompile(`\r\n\r\nevent: endpoint\ndata: (sse\?sessionId=\w+)\n\n`)
	for !session.MatchString(got.String()) {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err, got.String())
		}
		got.Write(buf[:n])
	}
	post(t, web.URL+"/"+session.FindStringSubmatch(got.String())[1], "application/json", initialize)
	for !strings.Contains(got.String(), "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,") {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err, got.String())
		}
		got.Write(buf[:n])
	}
}

func TestStatuses(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{MaxBody: 100})
	p := open(t, web, "/sse")
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, tt := range []struct{ name, url, contentType, body, want string }{
		{"no session", web.URL + "/sse", "application/json", ping, `400 .*sessionId`},
		{"an empty session", web.URL + "/sse?sessionId=", "application/json", ping, `400 .*sessionId`},
		{"an unknown session", web.URL + "/sse?sessionId=x", "application/json", ping, `404 .*session is unknown`},
		{"a type", p.endpoint, "text/plain", ping, `415 .*application/json`},
		{"no type", p.endpoint, "", ping, `415 .*application/json`},
		{"a charset", p.endpoint, "application/json; charset=utf-8", ping, `202`},
		{"too large", p.endpoint, "application/json", strings.Repeat(" ", 101), `413 .*100 bytes`},
		{"the limit", p.endpoint, "application/json", ping + strings.Repeat(" ", 100-len(ping)), `202`},
		{"no JSON", p.endpoint, "application/json", `{"jsonrpc":`, `400 .*not JSON`},
		{"no body", p.endpoint, "application/json", ``, `400 .*not JSON`},
		{"no message", p.endpoint, "application/json", `{"jsonrpc":"1.0","id":5,"method":"ping"}`, `202`},
	} {
		if got := post(t, tt.url, tt.contentType, tt.body); !regexp.MustCompile("^" + tt.want).MatchString(got) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	// Calls run concurrently, so their answers come in any order.
	answers := []string{p.next(), p.next(), p.next()}
	slices.Sort(answers)
	for i, id := range []string{"1", "1", "5"} {
		if !strings.HasPrefix(answers[i], `{"jsonrpc":"2.0","id":`+id+`,`) {
			t.Errorf("%s, want the answer to %s", answers[i], id)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "HEAD", "PATCH"} {
		r, _ := http.NewRequestWithContext(t.Context(), method, web.URL+"/sse", nil)
		resp, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, POST" {
			t.Error(method, resp.Status, resp.Header)
		}
	}
}

// A body of unknown length must be bounded too.
func TestChunkedBody(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{MaxBody: 100})
	p := open(t, web, "/sse")
	resp, err := web.Client().Post(p.endpoint, "application/json", io.LimitReader(zeros{}, 101))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Error(resp.Status)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A body that arrives byte by byte is refused after BodyTimeout, and the session continues.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	const bodyTimeout = 2 * time.Second
	_, web := serve(t, newTestServer(), streamable.Options{BodyTimeout: bodyTimeout})
	p := open(t, web, "/sse")
	in, out := io.Pipe()
	go func() {
		for {
			if _, err := out.Write([]byte(" ")); err != nil {
				return
			}
			time.Sleep(bodyTimeout / 10)
		}
	}()
	defer in.Close()
	resp, err := web.Client().Post(p.endpoint, "application/json", in)
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != 408 {
			t.Error(resp.Status)
		}
	}
	p.initialize()
}

func TestGuard(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{})
	p := open(t, web, "/sse")
	for _, r := range []struct{ method, url, host, origin, want string }{
		{"GET", web.URL + "/sse", "evil.example", "", "403"},
		{"GET", web.URL + "/sse", "", "https://evil.example", "403"},
		{"POST", p.endpoint, "evil.example", "", "403"},
		{"POST", p.endpoint, "", "https://evil.example", "403"},
		{"POST", p.endpoint, "", web.URL, "202"},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), r.method, r.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		req.Header.Set("Content-Type", "application/json")
		req.Host = r.host
		if r.origin != "" {
			req.Header.Set("Origin", r.origin)
		}
		resp, err := web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if !strings.HasPrefix(resp.Status, r.want) {
			t.Errorf("%+v: %s", r, resp.Status)
		}
	}
}

func TestPrincipal(t *testing.T) {
	seen := make(chan mcp.Principal, 1)
	h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		seen <- req.Principal
		return nil, errors.New("no")
	})
	_, web := serve(t, h, streamable.Options{Principal: func(r *http.Request) mcp.Principal { return mcp.Principal{ID: r.URL.Query().Get("user")} }})
	p := open(t, web, "/sse?user=ada&x=%20y")
	if !strings.HasPrefix(p.told, "sse?user=ada&x=%20y&sessionId=") {
		t.Error("the query is lost:", p.told)
	}
	if got := post(t, strings.Replace(p.endpoint, "ada", "eve", 1), "application/json", initialize); !strings.HasPrefix(got, "403") {
		t.Error(got)
	}
	if got := p.post(initialize); got != "202" {
		t.Error(got)
	}
	if got := <-seen; got.ID != "ada" {
		t.Errorf("%+v", got)
	}
}

// The endpoint must work wherever the handler is mounted.
func TestMounted(t *testing.T) {
	s := sse.Handler(newTestServer(), &streamable.Options{ServerOptions: transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t, mcptest.SentOnly())}})
	t.Cleanup(func() { _ = s.Shutdown(within(t)) })
	mux := http.NewServeMux()
	mux.Handle("/a/b/sse", s)
	mux.Handle("/stripped/", http.StripPrefix("/stripped/", s))
	mux.Handle("/whole/sse", http.StripPrefix("/whole/sse", s))
	mux.Handle("/slash/sse/", http.StripPrefix("/slash", s))
	mux.Handle("/x:y", s)
	mux.Handle("/{$}", s)
	web := listen(t, mux)
	to, _ := url.Parse(web.URL)
	front := listen(t, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.URL.Path = strings.Replace(r.In.URL.Path, "/public/", "/a/b/", 1)
	}})
	for _, path := range []string{"/a/b/sse", "/stripped/sse", "/whole/sse", "/slash/sse/", "/x:y", "/", "/a/b/sse?sessionId=mine&a=b"} {
		open(t, web, path).initialize()
	}
	open(t, front, "/public/sse").initialize()
}

func TestTooManySessions(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{ServerOptions: transport.ServerOptions{Quota: transport.NewQuota(transport.Limits{Streams: 1})}})
	p := open(t, web, "/sse")
	resp, err := web.Client().Get(web.URL + "/sse")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Error(resp.Status)
	}
	p.close()
	polltest.Until(t, "a free place", func() bool {
		resp, err := web.Client().Get(web.URL + "/sse")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
}

// If a client disconnects, its calls and its session must end.
func TestClientGoes(t *testing.T) {
	w := newTestServer()
	_, web := serve(t, w, streamable.Options{})
	p := open(t, web, "/sse")
	p.initialize()
	p.post(toolCall(2, "wait", `{}`))
	<-w.entered
	p.close()
	if err := <-w.ended; !errors.Is(err, mcp.ErrConnection) {
		t.Error(err)
	}
	polltest.Until(t, "the end of the session", func() bool {
		return strings.HasPrefix(p.post(`{"jsonrpc":"2.0","id":3,"method":"ping"}`), "404")
	})
}

func TestShutdown(t *testing.T) {
	w := newTestServer()
	s, web := serve(t, w, streamable.Options{ServerOptions: transport.ServerOptions{DrainTimeout: polltest.Limit}})
	p := open(t, web, "/sse")
	p.initialize()
	p.post(toolCall(2, "wait", `{}`))
	<-w.entered
	ended := make(chan error)
	go func() { ended <- s.Shutdown(within(t)) }()
	for {
		resp, err := web.Client().Get(web.URL + "/sse")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == 503 && resp.Header.Get("Retry-After") != "" {
			break
		}
	}
	for _, body := range []string{toolCall(3, "echo", `{"text":"a"}`), "[" + toolCall(3, "echo", `{"text":"a"}`) + "]"} {
		if got := p.post(body); !regexp.MustCompile(`^503 .*shutting down.* after \d`).MatchString(got) {
			t.Error(got)
		}
	}
	if got := post(t, web.URL+"/sse?sessionId=x", "application/json", `{}`); !strings.HasPrefix(got, "503") {
		t.Error(got)
	}
	if got := p.post(`{"jsonrpc":"2.0","id":1,"result":{}}`); got != "202" {
		t.Error("an answer that a call may wait for is refused:", got)
	}
	close(w.release)
	if got := p.next(); !strings.Contains(got, "released") {
		t.Error(got)
	}
	if _, err := p.events.Next(); err != io.EOF {
		t.Error("the stream was not ended properly:", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestShutdownIsBounded(t *testing.T) {
	w := newTestServer()
	s, web := serve(t, w, streamable.Options{ServerOptions: transport.ServerOptions{DrainTimeout: polltest.Limit}})
	p := open(t, web, "/sse")
	p.initialize()
	p.post(toolCall(2, "wait", `{}`))
	<-w.entered
	reason := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, reason)
	defer cancel()
	if err := s.Shutdown(ctx); err != reason {
		t.Error(err)
	}
	if err := <-w.ended; err == nil {
		t.Error("the call was not cancelled")
	}
	if _, err := p.events.Next(); err == nil || err == io.EOF {
		t.Error("what was cut off looks as if it had ended:", err)
	}
}

// An idle session ends, but not during a call.
func TestSessionIdle(t *testing.T) {
	t.Parallel()
	const idle = 5 * time.Second // enough for initialize on a busy machine
	w := newTestServer()
	_, web := serve(t, w, streamable.Options{Sessions: streamable.SessionOptions{Idle: idle}})
	p := open(t, web, "/sse")
	p.initialize()
	p.post(toolCall(2, "wait", `{}`))
	<-w.entered
	unused, initialized := open(t, web, "/sse"), open(t, web, "/sse")
	initialized.initialize()
	for name, other := range map[string]*peer{"nothing": unused, "initialize": initialized} {
		if _, err := other.events.Next(); err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(w.release) // the call has lasted longer than the others were idle
	if got := p.next(); !strings.Contains(got, "released") {
		t.Error(got)
	}
	if _, err := p.events.Next(); err != io.EOF {
		t.Error(err)
	}
}

// The transport has a handshake, so it has only revisions with one.
func TestNothingModern(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{})
	p := open(t, web, "/sse")
	p.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if got := p.next(); !strings.Contains(got, `"error"`) || strings.Contains(got, `"supported":["2026-07-28"`) {
		t.Error(got)
	}
	p.post(strings.Replace(initialize, "2024-11-05", "2026-07-28", 1))
	if got := p.next(); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
		t.Error(got)
	}
}

// A handler must see the header fields of the POST with its request.
func TestHeaderOfARequest(t *testing.T) {
	h := newTestServer()
	seen := make(chan string, 1)
	h.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				seen <- http.Header(req.Header).Get("X-Tenant")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	_, web := serve(t, h, streamable.Options{})
	header := func(context.Context) (http.Header, error) { return http.Header{"X-Tenant": {"one"}}, nil }
	tr := dial(t, sse.URL{URL: web.URL + "/sse", Header: header}, newInbound(), transport.ClientOptions{})
	if _, err := call(within(t), tr, "echo", `{"text":"x"}`, nil); err != nil {
		t.Error(err)
	}
	if got := <-seen; got != "one" {
		t.Errorf("the handler saw %q", got)
	}
}

// The stream and its POSTs must pass a reverse proxy that changes the path.
func TestBehindAProxy(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{})
	origin, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := listen(t, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(origin)
			r.Out.URL.Path = strings.TrimPrefix(r.Out.URL.Path, "/tools")
		},
		ErrorLog: log.New(io.Discard, "", 0),
	})
	tr := dial(t, sse.URL{URL: front.URL + "/tools/sse"}, newInbound(), transport.ClientOptions{})
	if got, err := call(within(t), tr, "echo", `{"text":"through"}`, nil); err != nil || got != "through" {
		t.Errorf("%q, %v", got, err)
	}
	_ = tr.Close() // before the proxy, which would cut the stream
}
