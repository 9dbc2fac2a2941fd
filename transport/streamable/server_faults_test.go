package streamable_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

const flood = 6 << 20 // bytes; more than sockets buffer for a reader with a small receive buffer

// flooding returns a server with tools that send far more than a stuck client can receive.
func flooding() *server.Server {
	s := testServer(nil)
	server.Tool(s, "much", "Says much.", func(context.Context, struct{}) (string, error) { return strings.Repeat("x", flood), nil })
	server.Tool(s, "ask-much", "Asks much.", func(ctx context.Context, _ struct{}) (string, error) {
		who, err := server.Ask[person](ctx, "who", strings.Repeat("x", flood))
		return who.Name, err
	})
	return s
}

// checkServes checks that the server still answers other clients.
func checkServes(t *testing.T, url string, fields ...string) {
	t.Helper()
	body := pingBody
	if len(fields) == 0 {
		body, fields = listBody, modernFields("tools/list")
	}
	soon(t, "40 requests of another client", func() {
		for range 40 {
			if got := send(t, "POST", url, body, fields...); got.status != 200 {
				t.Fatalf("another client got %d", got.status)
			}
		}
	})
}

// Clients that do not read their answers must not block others, and must leave nothing behind.
func TestAnswerThatIsNeverRead(t *testing.T) {
	for _, accept := range []string{"application/json", "text/event-stream"} {
		t.Run(accept, func(t *testing.T) {
			endpoint, web := serve(t, flooding())
			url := web.URL + "/mcp"
			in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
			body := modernBody("tools/call", `"name":"much","arguments":{}`)
			legacy := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"much","arguments":{}}}`
			var stuck []*rawClient
			for range 3 {
				c := dialRaw(t, web)
				lines := modernLines("tools/call", "Mcp-Name: much", length(len(body)))
				c.write(strings.Replace(head("POST", lines...), "application/json, text/event-stream", accept, 1) + body)
				c.readUntil("HTTP/1.1 200")
				l := dialRaw(t, web)
				other := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
				l.write(strings.Replace(head("POST", "Mcp-Session-Id: "+other[1], length(len(legacy))), "application/json, text/event-stream", accept, 1) + legacy)
				l.readUntil("HTTP/1.1 200")
				stuck = append(stuck, c, l)
			}
			checkServes(t, url)
			checkServes(t, url, in...)
			for _, c := range stuck {
				c.conn.Close()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := endpoint.Shutdown(ctx); err != nil {
				t.Errorf("something is left: %v", err)
			}
		})
	}
}

// stuckStream opens the session stream with a client that does not read it, and makes the server
// send more than fits. It returns the session's header fields and a function that closes the
// connection.
func stuckStream(t *testing.T, web *httptest.Server) (session []string, leave func()) {
	t.Helper()
	id := open(t, web.URL+"/mcp", mcp.Revision20251125)
	c := dialRaw(t, web)
	c.write(head("GET", "Mcp-Session-Id: "+id))
	c.readUntil("retry:")
	asking := dialRaw(t, web)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask-much","arguments":{}}}`
	// The answer cannot be a stream, so the question goes over the session stream.
	asking.write(strings.Replace(head("POST", "Mcp-Session-Id: "+id, length(len(body))), ", text/event-stream", "", 1) + body)
	c.readUntil("id:") // the beginning of the question
	return inSession(id, mcp.Revision20251125), func() { c.conn.Close(); asking.conn.Close() }
}

// stuckLimit is shorter than the 30 seconds after which the server gives up a write that is stuck.
const stuckLimit = 25 * time.Second

// soon fails the test if f takes as long as something that waits for a stuck write.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	begun := time.Now()
	f()
	if took := time.Since(begun); took > stuckLimit {
		t.Errorf("%s took %v", what, took)
	}
}

// A client that does not read its session stream must not block other sessions, the end of its own,
// a second connection of the client, or Shutdown.
func TestStandingStreamThatIsNeverRead(t *testing.T) {
	t.Run("others", func(t *testing.T) {
		endpoint, web := serve(t, flooding())
		_, leave := stuckStream(t, web)
		defer leave()
		sweepSessions(t, endpoint)
		checkServes(t, web.URL+"/mcp")
		soon(t, "another session", func() {
			checkServes(t, web.URL+"/mcp", inSession(open(t, web.URL+"/mcp", mcp.Revision20251125), mcp.Revision20251125)...)
		})
	})
	t.Run("its own requests", func(t *testing.T) {
		endpoint, web := serve(t, flooding())
		in, leave := stuckStream(t, web)
		defer leave()
		sweepSessions(t, endpoint)
		checkServes(t, web.URL+"/mcp", in...)
	})
	t.Run("coming back", func(t *testing.T) {
		_, web := serve(t, flooding())
		in, leave := stuckStream(t, web)
		defer leave()
		soon(t, "coming back", func() {
			lines, _ := stream(t, web.URL+"/mcp", in...)
			until(t, lines, ":")
		})
	})
	t.Run("the end of the session", func(t *testing.T) {
		_, web := serve(t, flooding())
		in, leave := stuckStream(t, web)
		defer leave()
		soon(t, "DELETE", func() {
			if got := send(t, "DELETE", web.URL+"/mcp", "", in...); got.status != 204 {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	})
	t.Run("Shutdown", func(t *testing.T) {
		endpoint, web := serve(t, flooding())
		_, leave := stuckStream(t, web)
		defer leave()
		soon(t, "Shutdown", func() {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_ = endpoint.Shutdown(ctx) // usually an error, because the stream cannot be ended properly
		})
	})
}

// sweepSessions makes the registry check the sessions all the time until the test ends.
func sweepSessions(t *testing.T, endpoint *streamable.Server) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			endpoint.SweepSessions()
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(end); <-ended })
}

// A client that does not read the question on the stream of its answer must not block the end of
// its session.
func TestQuestionThatIsNeverRead(t *testing.T) {
	_, web := serve(t, flooding())
	id := open(t, web.URL+"/mcp", mcp.Revision20251125)
	c := dialRaw(t, web)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask-much","arguments":{}}}`
	c.write(head("POST", "Mcp-Session-Id: "+id, length(len(body))) + body)
	c.readUntil("id:") // the beginning of the question
	soon(t, "DELETE", func() {
		if got := send(t, "DELETE", web.URL+"/mcp", "", inSession(id, mcp.Revision20251125)...); got.status != 204 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// watched returns a test server with a tool "wait" that reports its begin and the cause of its
// context's end.
func watched(gate chan struct{}) (s *server.Server, begun chan struct{}, ended chan error) {
	s = testServer(gate)
	begun, ended = make(chan struct{}, 10), make(chan error, 10)
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return next.ServeMCP(ctx, req)
			}
			begun <- struct{}{}
			res, err := next.ServeMCP(ctx, req)
			ended <- context.Cause(ctx)
			return res, err
		})
	})
	return s, begun, ended
}

// If a modern client disconnects, its call must be cancelled, with a stream or without.
func TestModernClientGoesAway(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate) // if the test fails, its call ends all the same
	s, begun, ended := watched(gate)
	_, web := serve(t, s)
	for _, accept := range []string{"application/json", "text/event-stream"} {
		c := dialRaw(t, web)
		c.write(strings.Replace(modernCall("wait"), "application/json, text/event-stream", accept, 1))
		<-begun
		if accept == "text/event-stream" {
			c.readUntil(":")
		}
		c.conn.Close()
		select {
		case cause := <-ended:
			if cause == nil {
				t.Errorf("%s: the handler has ended, and its context had not", accept)
			}
		case <-time.After(polltest.Limit):
			t.Fatalf("%s: the handler goes on", accept)
		}
	}
}

// If a legacy client disconnects, its call must continue. If the client has an event id to resume
// from, it can read the answer over any connection, any number of times. Other clients cannot.
func TestLegacyClientGoesAway(t *testing.T) {
	gate := make(chan struct{})
	s, begun, ended := watched(gate)
	_, web := serve(t, s, streamable.Options{JSONFor: 10 * time.Millisecond})
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	body := `{"jsonrpc":"2.0","id":"the call","method":"tools/call","params":{"name":"wait","arguments":{}}}`
	c := dialRaw(t, web)
	c.write(head("POST", "Mcp-Session-Id: "+in[1], length(len(body))) + body)
	<-begun
	last := c.readUntil("id:")
	c.conn.Close()
	early, _ := stream(t, url, append(in, "Last-Event-ID", last)...) // before the answer
	until(t, early, ":")
	select {
	case cause := <-ended:
		t.Fatalf("the handler has ended: %v", cause)
	case <-time.After(100 * time.Millisecond):
	}
	openGate(t, gate)
	if cause := <-ended; cause != nil {
		t.Errorf("the handler's context had ended: %v", cause)
	}
	if got := until(t, early, "data:"); !strings.Contains(got, "the call") || !strings.Contains(got, "let go") {
		t.Errorf("got %s", got)
	}
	for range 2 {
		late, _ := stream(t, url, append(in, "Last-Event-ID", last)...)
		if got := until(t, late, "data:"); !strings.Contains(got, "let go") {
			t.Errorf("later: %s", got)
		}
		for range late { // until it ends
		}
	}
	other := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	if got := send(t, "GET", url, "", append(other, "Accept", "text/event-stream", "Last-Event-ID", last)...); got.status != 400 {
		t.Errorf("another session: %d %s", got.status, got.body)
	}
}

// If a client resumes an answer while its first connection still exists, the new connection must
// get the answer. The first one must end without it.
func TestLegacyClientComesBackEarly(t *testing.T) {
	gate := make(chan struct{})
	s, begun, _ := watched(gate)
	_, web := serve(t, s, streamable.Options{JSONFor: time.Millisecond, KeepAlive: 2 * time.Millisecond})
	in := inSession(open(t, web.URL+"/mcp", mcp.Revision20251125), mcp.Revision20251125)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}`
	for range 5 {
		first := dialRaw(t, web)
		first.write(head("POST", "Mcp-Session-Id: "+in[1], length(len(body))) + body)
		<-begun
		last := first.readUntil("id:")
		second := dialRaw(t, web)
		second.write(head("GET", "Mcp-Session-Id: "+in[1], "Last-Event-ID: "+last))
		for range 10 {
			second.readUntil(": keep-alive")
		}
		first.readUntil("0\r\n") // the end of the response; the connection can be reused
		first.readUntil("\r\n")
		first.write(listRequest())
		if got := first.read(); got.status != 200 {
			t.Errorf("the first connection, afterwards: %d %s", got.status, got.body)
		}
		openGate(t, gate)
		if got := second.readUntil("data:"); !strings.Contains(got, "let go") {
			t.Errorf("got %s", got)
		}
	}
}

// A legacy call must end when the client cancels it, and with its session.
func TestLegacyCallEnds(t *testing.T) {
	s, begun, ended := watched(nil)
	_, web := serve(t, s)
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	for _, end := range []func(){
		func() {
			send(t, "POST", url, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`, in...)
		},
		func() { send(t, "DELETE", url, "", in...) },
	} {
		c := dialRaw(t, web)
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}`
		c.write(head("POST", "Mcp-Session-Id: "+in[1], length(len(body))) + body)
		<-begun
		end()
		select {
		case cause := <-ended:
			if cause == nil {
				t.Error("the handler has ended, and its context had not")
			}
		case <-time.After(polltest.Limit):
			t.Fatal("the handler still runs")
		}
		c.conn.Close()
	}
}

// MaxConcurrent bounds the calls of one session. It must not affect other sessions or other
// messages.
func TestMaxConcurrent(t *testing.T) {
	gate := make(chan struct{})
	s, begun, _ := watched(gate)
	_, web := serve(t, s, streamable.Options{ServerOptions: transport.ServerOptions{MaxConcurrent: 2}})
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	wait := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{}}}`, id)
	}
	answers := make(chan answer, 2)
	for id := range 2 {
		go func() { answers <- send(t, "POST", url, wait(id), in...) }()
		<-begun
	}
	if got := send(t, "POST", url, wait(3), in...); got.status != 200 || code(t, got.body) != -32603 {
		t.Errorf("the third call: %d %s", got.status, got.body)
	}
	if got := send(t, "POST", url, `{"jsonrpc":"2.0","method":"notifications/x"}`, in...); got.status != 202 {
		t.Errorf("a notification: %d %s", got.status, got.body)
	}
	other := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	if got := send(t, "POST", url, pingBody, other...); code(t, got.body) != 0 {
		t.Errorf("another session: %d %s", got.status, got.body)
	}
	for range 2 {
		openGate(t, gate)
		if got := <-answers; got.status != 200 || !strings.Contains(got.body, "let go") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if got := send(t, "POST", url, pingBody, in...); got.status != 200 || code(t, got.body) != 0 {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}

// The limit of a client's sessions must hold if many are opened at the same time. New ones take the
// places of idle ones, and are refused while others are being opened.
func TestMaxSessions(t *testing.T) {
	const most, tried = 10, 60
	endpoint, web := serve(t, testServer(nil), streamable.Options{ServerOptions: transport.ServerOptions{
		Quota: transport.NewQuota(transport.Limits{ClientSessions: most}), Principal: mcp.Principal{ID: "one"},
	}})
	url := web.URL + "/mcp"
	var opened atomic.Int32
	var wg sync.WaitGroup
	for range tried {
		wg.Go(func() {
			switch got := send(t, "POST", url, initializeBody(mcp.Revision20251125, "")); {
			case got.status == 200 && got.header.Get("Mcp-Session-Id") != "":
				opened.Add(1)
			case got.status != 429 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "clientSessions"):
				t.Errorf("%d %v %s", got.status, got.header, got.body)
			}
		})
	}
	wg.Wait()
	if n := opened.Load(); n < most || endpoint.Sessions() != most {
		t.Errorf("%d sessions were opened, and %d are kept", n, endpoint.Sessions())
	}
	if got := send(t, "POST", url, listBody, modernFields("tools/list")...); got.status != 200 {
		t.Errorf("a modern request, which needs none: %d", got.status)
	}
}
