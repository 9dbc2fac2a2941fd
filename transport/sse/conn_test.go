package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// carried is a connection between client and server, perhaps with a proxy between.
type carried struct {
	name          string
	back, front   bool // HTTP/2 with TLS
	proxy         bool
	writeDeadline time.Duration
}

func (c carried) serve(t *testing.T, h http.Handler) *httptest.Server {
	web := start(t, c.back, c.writeDeadline, h)
	if !c.proxy {
		return web
	}
	to, _ := url.Parse(web.URL)
	return start(t, c.front, 0, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: web.Client().Transport, ErrorLog: log.New(io.Discard, "", 0),
	})
}

func start(t *testing.T, http2 bool, deadline time.Duration, h http.Handler) *httptest.Server {
	web := httptest.NewUnstartedServer(h)
	web.Config.ErrorLog, web.Config.WriteTimeout = log.New(io.Discard, "", 0), deadline
	if web.EnableHTTP2 = http2; http2 {
		web.StartTLS()
	} else {
		web.Start()
	}
	t.Cleanup(web.Close)
	return web
}

// Client and server together, with every message checked, over all kinds of connections. If the
// server has a write timeout, the stream must outlast it. The timeout also bounds each POST, so it
// is long.
func TestBothEnds(t *testing.T) {
	for _, c := range []carried{
		{name: "HTTP1"}, {name: "HTTP2", back: true}, {name: "a proxy", proxy: true}, {name: "a proxy in front of HTTP2", proxy: true, back: true},
		{name: "a proxy over HTTP2", proxy: true, front: true, back: true}, {name: "a server with a write timeout", writeDeadline: 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newTestServer()
			s := sse.Handler(w, &streamable.Options{ServerOptions: transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t)}})
			web := c.serve(t, s)
			t.Cleanup(func() { _ = s.Shutdown(within(t)) })
			in := newInbound()
			tr := dial(t, sse.URL{URL: web.URL, Client: web.Client()}, in, transport.ClientOptions{Capabilities: elicits, Tap: mcptest.ClientTap(t)})
			time.Sleep(c.writeDeadline + c.writeDeadline/10)
			ctx := within(t)
			for tool, want := range map[string]string{"echo": "a\nb", "ask": "hello Ada", "progress": "done"} {
				var notes []string
				got, err := call(ctx, tr, tool, map[string]string{"echo": `{"text":"a\nb"}`, "ask": `{}`, "progress": `{}`}[tool], func(n mcp.Notification) { notes = append(notes, n.Method) })
				if err != nil || got != want {
					t.Errorf("%s: %q %v", tool, got, err)
				}
				if tool == "progress" && len(notes) != 3 {
					t.Errorf("progress: %v", notes)
				}
			}
			if got, err := call(ctx, tr, "big", `{"size":1000000}`, nil); err != nil || len(got) != 1_000_000 {
				t.Fatal(len(got), err) // without a stream, the notification below does not arrive
			}
			server.Tool(w.Server, "late", "", func(context.Context, struct{}) (string, error) { return "", nil })
			if n := <-in.notes; n.Method != mcp.NotificationToolsChanged {
				t.Error(n)
			}
			cancelled, cancel := context.WithCancelCause(ctx)
			go func() { <-w.entered; cancel(errors.New("enough")) }()
			if _, err := call(cancelled, tr, "wait", `{}`, nil); err == nil || err.Error() != "enough" {
				t.Error(err)
			}
			if err := <-w.ended; err == nil {
				t.Error("the server did not receive the cancellation")
			}
		})
	}
}

func TestManyCalls(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{})
	tr := dial(t, sse.URL{URL: web.URL}, newInbound(), transport.ClientOptions{})
	ctx := within(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 20 {
				want := fmt.Sprintf("%d %d", i, n)
				if got, err := call(ctx, tr, "echo", fmt.Sprintf(`{"text":%q}`, want), nil); err != nil || got != want {
					t.Errorf("%q, want %q: %v", got, want, err)
				}
			}
		})
	}
	wg.Wait()
}

// Sessions that end must leave nothing behind. The leak check finds goroutines.
func TestManySessions(t *testing.T) {
	w := newTestServer()
	s, web := serve(t, w, streamable.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 12 {
				tr, err := sse.URL{URL: web.URL + "/sse"}.Dial(within(t), newInbound(), transport.ClientOptions{Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := call(within(t), tr, "echo", `{"text":"a"}`, nil); err != nil || got != "a" {
					t.Error(got, err)
				}
				if err := tr.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := s.Shutdown(within(t)); err != nil {
		t.Error(err)
	}
}

func TestCloseFailsCalls(t *testing.T) {
	w := newTestServer()
	_, web := serve(t, w, streamable.Options{})
	in := newInbound()
	tr := dial(t, sse.URL{URL: web.URL}, in, transport.ClientOptions{})
	go func() { <-w.entered; _ = tr.Close() }()
	if _, err := call(within(t), tr, "wait", `{}`, nil); !errors.Is(err, mcp.ErrClosed) {
		t.Error(err)
	}
	<-w.ended
	if _, err := call(within(t), tr, "echo", `{}`, nil); !errors.Is(err, mcp.ErrClosed) {
		t.Error(err)
	}
	select {
	case err := <-in.down:
		t.Error("Down after Close:", err)
	default:
	}
}

// If a stream is lost, the connection and the call in flight must end with the reason.
func TestLostStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(f *fake)
		want string
	}{
		{"it ends", func(f *fake) { close(f.out) }, "has ended the stream"},
		{"it is cut", func(f *fake) { close(f.cut) }, "cut off"},
		{"it is cut in an event", func(f *fake) { f.out <- "data: {\"jsonrpc\":"; close(f.cut) }, "cut off"},
		{"it ends in an event", func(f *fake) { f.out <- "data: {}\n"; close(f.out) }, "cut off"},
	} {
		f := newFake(t)
		in := newInbound()
		tr := dial(t, sse.URL{URL: f.url()}, in, transport.ClientOptions{})
		f.post = func(f *fake, w http.ResponseWriter, _ *http.Request, _ jsonrpc.Message) {
			w.WriteHeader(200)
			tt.lose(f)
		}
		_, err := call(within(t), tr, "echo", `{}`, nil)
		if !errors.Is(err, mcp.ErrConnection) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err := <-in.down; !errors.Is(err, mcp.ErrConnection) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Down: %v", tt.name, err)
		}
	}
}

// reply answers a call.
func (f *fake) reply(m jsonrpc.Message, text string) {
	f.message(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, m.ID, text)
}

// Servers answer a POST in different ways.
func TestAcceptance(t *testing.T) {
	for _, status := range []int{200, 202, 204} {
		f := newFake(t)
		tr := dial(t, sse.URL{URL: f.url()}, newInbound(), transport.ClientOptions{})
		f.post = func(f *fake, w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) {
			w.WriteHeader(status)
			if status != 204 {
				_, _ = io.WriteString(w, "Accepted")
			}
			f.reply(m, "a")
		}
		if got, err := call(within(t), tr, "echo", `{}`, nil); err != nil || got != "a" {
			t.Errorf("%d: %q %v", status, got, err)
		}
	}
}

// A POST that is refused must fail its call with the status. The connection must live.
func TestRefusedCall(t *testing.T) {
	f := newFake(t)
	in := newInbound()
	tr := dial(t, sse.URL{URL: f.url()}, in, transport.ClientOptions{})
	for _, late := range []time.Duration{0, 800 * time.Millisecond} {
		f.post = func(f *fake, w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) {
			time.Sleep(late)
			http.Error(w, "too many", 429)
		}
		_, err := call(within(t), tr, "echo", `{}`, nil)
		var answered *streamable.HTTPError
		if !errors.As(err, &answered) || answered.Status != 429 || string(answered.Body) != "too many\n" {
			t.Errorf("after %v: %v", late, err)
		}
	}
	f.post = func(f *fake, w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) { f.reply(m, "a") }
	if got, err := call(within(t), tr, "echo", `{}`, nil); err != nil || got != "a" {
		t.Error(got, err)
	}
	if len(in.down) > 0 {
		t.Error(<-in.down)
	}
}

// If the server does not know the session, the connection is lost.
func TestUnknownSession(t *testing.T) {
	f := newFake(t)
	in := newInbound()
	tr := dial(t, sse.URL{URL: f.url()}, in, transport.ClientOptions{})
	f.post = func(_ *fake, w http.ResponseWriter, _ *http.Request, _ jsonrpc.Message) {
		http.Error(w, "Session not found", 404)
	}
	_, err := call(within(t), tr, "echo", `{}`, nil)
	var answered *streamable.HTTPError
	if !errors.Is(err, mcp.ErrConnection) || !errors.As(err, &answered) || answered.Status != 404 {
		t.Error(err)
	}
	if err := <-in.down; !errors.As(err, &answered) {
		t.Error(err)
	}
}

// If a server serves a request before it accepts its POST, questions and cancellations must pass
// meanwhile.
func TestServedBeforeAccepted(t *testing.T) {
	f := newFake(t)
	tr := dial(t, sse.URL{URL: f.url()}, newInbound(), transport.ClientOptions{Capabilities: elicits})
	answered, cancelled := make(chan struct{}), make(chan struct{})
	f.post = func(f *fake, w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) {
		switch {
		case m.IsResponse():
			close(answered)
		case m.Method == mcpwire.NotificationCancelled:
			close(cancelled)
		case strings.Contains(string(m.Params), "ask"):
			f.message(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}`)
			<-answered
			time.Sleep(800 * time.Millisecond) // longer than the client waits for the POST
			f.reply(m, "asked")
		default:
			<-cancelled
		}
		w.WriteHeader(200)
	}
	if got, err := call(within(t), tr, "ask", `{}`, nil); err != nil || got != "asked" {
		t.Error(got, err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("enough"))
	defer cancel()
	began := time.Now()
	if _, err := call(ctx, tr, "wait", `{}`, nil); err == nil || err.Error() != "enough" || time.Since(began) > polltest.Limit {
		t.Error(err, time.Since(began))
	}
	select {
	case <-cancelled:
	case <-time.After(polltest.Limit):
		t.Error("the server did not receive the cancellation")
	}
}

// A message over the limit must fail the call that it answers, and the next messages must be read.
func TestHugeMessage(t *testing.T) {
	f := newFake(t)
	in := newInbound()
	tr := dial(t, sse.URL{URL: f.url(), MaxMessage: 100_000}, in, transport.ClientOptions{})
	f.post = func(f *fake, w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) {
		f.message(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"x":%q}}`, strings.Repeat("x", 200_000)) // a question with an id of the server's
		if strings.Contains(string(m.Params), "huge") {
			f.reply(m, strings.Repeat("x", 200_000))
		} else {
			f.reply(m, "a")
		}
	}
	if _, err := call(within(t), tr, "huge", `{}`, nil); !errors.Is(err, transport.ErrFrame) || !strings.Contains(err.Error(), "limit of 100000") {
		t.Error(err)
	}
	if got, err := call(within(t), tr, "echo", `{}`, nil); err != nil || got != "a" {
		t.Error(got, err)
	}
	if len(in.down) > 0 {
		t.Error(<-in.down)
	}
}

// Events on the stream that are not messages must be ignored.
func TestOtherEvents(t *testing.T) {
	f := newFake(t)
	tr := dial(t, sse.URL{URL: f.url()}, newInbound(), transport.ClientOptions{})
	f.post = func(f *fake, w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) {
		f.out <- ": ping\n\nevent: ping\ndata: 2026-01-01\n\ndata:\n\nid: 7\nretry: 10\n\nevent: endpoint\ndata: https://evil.example/\n\ndata: rubbish\n\n"
		f.out <- fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":%s,\rdata:\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"split\"}]}}\n\n", m.ID)
	}
	for range 2 {
		if got, err := call(within(t), tr, "echo", `{}`, nil); err != nil || got != "split" {
			t.Error(got, err)
		}
	}
	if n := frames.Unaddressed(tr); n != 2 {
		t.Errorf("%d strays, want the rubbish", n)
	}
}

// Taps must see every message once, with its header fields and without secrets.
func TestTap(t *testing.T) {
	var mu sync.Mutex
	shown := map[string][]string{}
	tap := func(side string) transport.Tap {
		return func(f transport.Frame) {
			mu.Lock()
			defer mu.Unlock()
			h := http.Header(f.Header)
			m, _ := jsonrpc.Parse(append([]byte(nil), f.Data...), nil)
			shown[side] = append(shown[side], fmt.Sprintf("%s %s %s %s", f.Kind, m.Method, h.Get("Content-Type"), h.Get("Authorization")))
		}
	}
	_, web := serve(t, newTestServer(), streamable.Options{ServerOptions: transport.ServerOptions{Tap: tap("server")}})
	u := sse.URL{URL: web.URL, Header: func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer secret"}}, nil
	}}
	tr := dial(t, u, newInbound(), transport.ClientOptions{Tap: tap("client")})
	if _, err := call(within(t), tr, "echo", `{"text":"a"}`, nil); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for side, want := range map[string]string{
		"client": "sent initialize application/json Bearer…|received  text/event-stream |sent notifications/initialized application/json Bearer…|sent tools/call application/json Bearer…|received  text/event-stream ",
		"server": "received initialize application/json Bearer…|sent   |received notifications/initialized application/json Bearer…|received tools/call application/json Bearer…|sent   ",
	} {
		if got := strings.Join(shown[side], "|"); got != want {
			t.Errorf("%s: %s\nwant %s", side, got, want)
		}
	}
}

// Header is called for each request. If it fails, the call must fail with its error.
func TestHeaderFails(t *testing.T) {
	_, web := serve(t, newTestServer(), streamable.Options{})
	var asked atomic.Int64
	u := sse.URL{URL: web.URL, Header: func(context.Context) (http.Header, error) {
		if asked.Add(1) == 4 {
			return nil, errors.New("no token")
		}
		return nil, nil
	}}
	u.URL += "/sse"
	tr := dial(t, u, newInbound(), transport.ClientOptions{})
	if _, err := call(within(t), tr, "echo", `{"text":"a"}`, nil); err == nil || !strings.Contains(err.Error(), "no token") {
		t.Error(err)
	}
	if got, err := call(within(t), tr, "echo", `{"text":"a"}`, nil); err != nil || got != "a" {
		t.Error(got, err)
	}
}
