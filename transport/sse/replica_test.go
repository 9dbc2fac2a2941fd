package sse_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/replicatest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// twoReplicas are two endpoints of one cluster.
type twoReplicas struct {
	net       *replicatest.Net
	first     *sse.Server
	web, next *httptest.Server // of the first endpoint and of the other one
}

// startReplicas serves h at two endpoints.
func startReplicas(t *testing.T, h mcp.Handler, opts streamable.Options) *twoReplicas {
	r, keys := &twoReplicas{net: replicatest.New()}, new(mcp.Keys)
	replica.Attach(keys, r.net)
	t.Cleanup(func() { replica.Attach(keys, nil) })
	opts.Sessions.Keys = keys
	r.first, r.web = serve(t, h, opts)
	_, r.next = serve(t, h, opts)
	return r
}

// open opens a stream at the first endpoint. The client sends its messages to the other one.
func (r *twoReplicas) open(t *testing.T, query string) (p *peer, owner string) {
	p = open(t, r.web, "/sse"+query)
	owner = p.endpoint
	p.endpoint = strings.Replace(p.endpoint, r.web.URL, r.next.URL, 1)
	return p, owner
}

// A message that reaches another replica arrives in its session: a request, a notification and the
// answer to a question.
func TestPostAtAnotherReplica(t *testing.T) {
	r := startReplicas(t, newTestServer(), streamable.Options{})
	p, owner := r.open(t, "")
	p.initialize()
	if got := p.post(toolCall(2, "echo", `{"text":"<hello>"}`)); got != "202" {
		t.Error(got)
	}
	if got := p.next(); !strings.Contains(got, "hello") {
		t.Error(got)
	}
	if got := p.post(`[not JSON`); got != "202" {
		t.Error(got)
	}
	if got := post(t, owner, "application/json", toolCall(3, "echo", `{"text":"at the owner"}`)); got != "202" {
		t.Error(got)
	}
	if got := p.next(); !strings.Contains(got, "at the owner") {
		t.Error(got)
	}
	if got := p.post(`not JSON`); !strings.HasPrefix(got, "400") {
		t.Error(got)
	}
}

// Calls and questions of a client must work behind a balancer. The server itself has the keys.
func TestReplicasBehindABalancer(t *testing.T) {
	keys := new(mcp.Keys)
	replica.Attach(keys, replicatest.New())
	t.Cleanup(func() { replica.Attach(keys, nil) })
	var all []http.Handler
	for range 2 {
		s := server.New("replica", "1", &server.Options{Logger: quiet, Keys: keys})
		server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) {
			answer, err := server.Ask[struct {
				Name string `json:"name"`
			}](ctx, "who", "Who?")
			return "hello " + answer.Name, err
		})
		h := sse.Handler(s, &streamable.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})
		t.Cleanup(func() { _ = h.Shutdown(within(t)); _ = s.Close() })
		all = append(all, h)
	}
	turns := make(chan http.Handler, 2)
	turns <- all[0]
	turns <- all[1]
	web := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := <-turns
		turns <- h
		h.ServeHTTP(w, r)
	}))
	tr := dial(t, sse.URL{URL: web.URL + "/sse"}, newInbound(), transport.ClientOptions{Capabilities: elicits})
	for range 3 {
		if got, err := call(within(t), tr, "ask", `{}`, nil); err != nil || got != "hello Ada" {
			t.Errorf("%q, %v", got, err)
		}
	}
	_ = tr.Close()
}

// The owner must check the principal, and the handler must see the principal and the header fields
// of the POST.
func TestPrincipalAtAnotherReplica(t *testing.T) {
	h, seen := newTestServer(), make(chan *mcp.Request, 8)
	h.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				seen <- req
			}
			return next.ServeMCP(ctx, req)
		})
	})
	r := startReplicas(t, h, streamable.Options{Principal: func(r *http.Request) mcp.Principal {
		return mcp.Principal{ID: r.URL.Query().Get("user"), Scopes: []string{r.Method}}
	}})
	p, _ := r.open(t, "?user=ada")
	p.initialize()
	if got := post(t, strings.Replace(p.endpoint, "ada", "eve", 1), "application/json", toolCall(2, "echo", `{"text":"eve"}`)); !strings.HasPrefix(got, "403") {
		t.Error("another principal:", got)
	}
	if got := p.post(toolCall(3, "echo", `{"text":"ada"}`)); got != "202" {
		t.Error(got)
	}
	if got := p.next(); !strings.Contains(got, `"id":3`) {
		t.Error(got)
	}
	_, id, _ := strings.Cut(p.endpoint, "sessionId=")
	req := <-seen
	if header := http.Header(req.Header); req.Principal.ID != "ada" || !req.Principal.HasScopes("POST") || header.Get("Mcp-Session-Id") != id || header.Get("User-Agent") == "" {
		t.Errorf("%+v, %v", req.Principal, req.Header)
	}
}

// When the stream has ended, or its replica, the client must be told to open another one.
func TestStreamAtAnotherReplicaEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(r *twoReplicas, p *peer, instance string)
	}{
		{"the client has gone", func(_ *twoReplicas, p *peer, _ string) { p.close() }},
		{"the replica has ended", func(r *twoReplicas, _ *peer, _ string) { _ = r.first.Shutdown(within(t)) }},
		{"the replica was killed", func(r *twoReplicas, _ *peer, instance string) { r.net.Remove("sse-" + instance) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := startReplicas(t, newTestServer(), streamable.Options{})
			p, _ := r.open(t, "")
			p.initialize()
			_, id, _ := strings.Cut(p.endpoint, "sessionId=")
			instance, _, _ := strings.Cut(id, "-")
			tt.end(r, p, instance)
			polltest.Until(t, "the end is noticed", func() bool {
				return strings.HasPrefix(p.post(toolCall(2, "echo", `{"text":"a"}`)), "404")
			})
		})
	}
}

// Ids that no replica has made must be refused, and reach no part of another replica than its
// endpoint.
func TestMadeUpSessionID(t *testing.T) {
	r := startReplicas(t, newTestServer(), streamable.Options{})
	p, _ := r.open(t, "")
	before, id, _ := strings.Cut(p.endpoint, "sessionId=")
	instance, secret, _ := strings.Cut(id, "-")
	if len(secret) < 26 {
		t.Errorf("the secret part is short: %s", secret)
	}
	for _, made := range []string{instance + "-" + strings.Repeat("A", 26), instance + "-", instance, "AAAAAAAAAA-" + secret} {
		if got := post(t, before+"sessionId="+made, "application/json", initialize); !strings.HasPrefix(got, "404") {
			t.Errorf("%s: %s", made, got)
		}
	}
	sent := r.net.Sent()
	for _, made := range []string{"%3E-a", "*-a", "AAAA.AAAAA-a", "aaaaaaaaaa-a", "AAAAAAAAAAA-a"} {
		if got := post(t, before+"sessionId="+made, "application/json", initialize); !strings.HasPrefix(got, "404") || r.net.Sent() != sent {
			t.Errorf("%s: %s, and %d messages", made, got, r.net.Sent()-sent)
		}
	}
	if _, err := r.net.Send(t.Context(), "sse-"+instance, []byte("AAAA\n"+initialize)); err == nil {
		t.Error("the replica accepted a message without a seal")
	}
}

// Without the cluster, a message for another replica must be refused at once. The owner takes its
// own ones.
func TestNoClusterForAStream(t *testing.T) {
	r := startReplicas(t, newTestServer(), streamable.Options{})
	p, owner := r.open(t, "")
	p.initialize()
	r.net.SetCut(true)
	if got := p.post(toolCall(2, "echo", `{"text":"a"}`)); !strings.HasPrefix(got, "503") || !strings.HasSuffix(got, "after 5") {
		t.Error(got)
	}
	if got := post(t, owner, "application/json", toolCall(3, "echo", `{"text":"b"}`)); got != "202" {
		t.Error("at the owner:", got)
	}
	r.net.SetCut(false)
	if got := p.post(toolCall(4, "echo", `{"text":"c"}`)); got != "202" {
		t.Error("with the cluster:", got)
	}
}

// A message that the cluster cannot carry must be refused, and the session stays.
func TestLargeMessageAtAnotherReplica(t *testing.T) {
	r := startReplicas(t, newTestServer(), streamable.Options{})
	p, _ := r.open(t, "")
	p.initialize()
	if got := p.post(toolCall(2, "echo", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)); !strings.HasPrefix(got, "413") {
		t.Error(got)
	}
	if got := p.post(toolCall(3, "echo", `{"text":"small"}`)); got != "202" {
		t.Error(got)
	}
	if got := p.next(); !strings.Contains(got, "small") {
		t.Error(got)
	}
}

// A replica that shuts down must refuse requests of other replicas, but accept the answers to its
// questions.
func TestOwnerShutsDown(t *testing.T) {
	r := startReplicas(t, newTestServer(), streamable.Options{ServerOptions: transport.ServerOptions{DrainTimeout: polltest.Limit}})
	p, _ := r.open(t, "")
	if got := p.post(strings.NewReplacer("sampling", "elicitation", "2024-11-05", "2025-11-25").Replace(initialize)); got != "202" {
		t.Fatal(got)
	}
	p.next()
	p.post(toolCall(2, "ask", `{}`))
	_, rest, _ := strings.Cut(p.next(), `"id":`)
	question := strings.TrimRight(strings.Split(rest, ",")[0], "}")
	done := make(chan error, 1)
	go func() { done <- r.first.Shutdown(within(t)) }()
	polltest.Until(t, "requests are refused", func() bool {
		return strings.HasPrefix(p.post(`{"jsonrpc":"2.0","id":9,"method":"ping"}`), "503")
	})
	if got := p.post(`{"jsonrpc":"2.0","id":` + question + `,"result":{"action":"accept","content":{"name":"Ada"}}}`); got != "202" {
		t.Error("the answer:", got)
	}
	for got := ""; !strings.Contains(got, "hello Ada"); {
		got = p.next() // the pings have answers, too
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// slowNotices is a handler that waits with each notification until the test lets it.
type slowNotices struct {
	*testServer
	begun, release chan struct{}
}

func (s *slowNotices) NotifyMCP(context.Context, mcp.Notification) {
	s.begun <- struct{}{}
	<-s.release
}

// A message for a session that takes none at the moment must wait, and arrive once.
func TestBusySessionAtAnotherReplica(t *testing.T) {
	h := &slowNotices{newTestServer(), make(chan struct{}, 8), make(chan struct{})}
	r := startReplicas(t, h, streamable.Options{})
	p, _ := r.open(t, "")
	p.initialize()
	const notice = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
	if got := p.post(notice); got != "202" {
		t.Fatal(got)
	}
	<-h.begun
	sent, answered := r.net.Sent(), make(chan string, 1)
	go func() { answered <- p.post(notice) }()
	polltest.Until(t, "the sender tries again", func() bool { return r.net.Sent() > sent+1 })
	close(h.release)
	if got := <-answered; got != "202" {
		t.Error(got)
	}
	<-h.begun
	p.post(toolCall(2, "echo", `{"text":"next"}`))
	p.next()
	if len(h.begun) > 0 {
		t.Error("the message arrived twice")
	}
}
