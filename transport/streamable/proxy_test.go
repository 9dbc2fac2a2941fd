package streamable_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// idleLimit is how long a proxy with an idle timeout tolerates a silent connection.
const idleLimit = 2 * time.Second

// proxied is a server behind a httputil.ReverseProxy with default settings.
type proxied struct {
	name  string
	http2 bool // with TLS, at both ends of the proxy
	idle  bool // the proxy closes connections that receive nothing for idleLimit
	opts  streamable.Options
}

var proxies = []proxied{
	{name: "HTTP/1.1"},
	{name: "HTTP/2", http2: true},
	{name: "HTTP/1.1 with an idle timeout", idle: true, opts: streamable.Options{KeepAlive: idleLimit / 16}},
	{name: "HTTP/2 with an idle timeout", http2: true, idle: true, opts: streamable.Options{KeepAlive: idleLimit / 16}},
}

// begin serves h behind the proxy until the test ends.
func (p proxied) begin(t *testing.T, h mcp.Handler) (url string, own *http.Client) {
	t.Helper()
	opts := p.opts
	opts.Guard = streamable.Guard{Hosts: []string{"127.0.0.1"}}
	endpoint := streamable.Handler(h, &opts)
	origin := p.web(t, endpoint)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), polltest.Limit)
		defer cancel()
		if err := endpoint.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	front := p.web(t, p.reverse(t, origin))
	p.idle = false // the idle timeout belongs to the proxy, not to the client
	return front.URL + "/mcp", p.client(t, front)
}

func (p proxied) web(t *testing.T, h http.Handler) *httptest.Server {
	web := httptest.NewUnstartedServer(h)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	if p.http2 {
		web.EnableHTTP2 = true
		web.StartTLS()
	} else {
		web.Start()
	}
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web
}

// client returns a client for a server that web has started.
func (p proxied) client(t *testing.T, web *httptest.Server) *http.Client {
	way := &http.Transport{MaxIdleConnsPerHost: 64}
	if p.http2 {
		way.ForceAttemptHTTP2 = true
		way.TLSClientConfig = &tls.Config{RootCAs: web.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	}
	if p.idle {
		way.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return idleLimitConn{conn}, err
		}
	}
	t.Cleanup(way.CloseIdleConnections)
	return &http.Client{Transport: way}
}

func (p proxied) reverse(t *testing.T, origin *httptest.Server) http.Handler {
	to, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: p.client(t, origin).Transport,
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Else net/http reads the rest of the body when the response begins, while the
		// transport of the proxy reads it, too. One of the two fails now and then, and the
		// proxy aborts the response.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 needs it not
		proxy.ServeHTTP(w, r)
	})
}

// idleLimitConn is a connection that fails if it receives nothing for idleLimit. The silence is
// measured in several steps: if the whole process does not run for a while, as on a busy machine,
// the sender of the comments gets time to run before the next step ends.
type idleLimitConn struct{ net.Conn }

func (c idleLimitConn) Read(b []byte) (n int, err error) {
	const steps = 8
	for range steps {
		_ = c.SetReadDeadline(time.Now().Add(idleLimit / steps))
		if n, err = c.Conn.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return n, err
}

// dial connects through the proxy.
func (p proxied) dial(t *testing.T, h mcp.Handler, r mcp.Revision, opts client.Options) *client.Client {
	t.Helper()
	opts.Wire.Revision, opts.Wire.Verdicts, opts.Wire.Tap = r, new(transport.Verdicts), mcptest.ClientTap(t)
	var url string
	url, opts.HTTP.Client = p.begin(t, h)
	c, err := client.Dial(t.Context(), url, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// stepping returns a test server with a tool that waits at the channel after each of three progress
// notifications.
func stepping(heard chan struct{}) *server.Server {
	s := testServer(nil)
	server.Tool(s, "step", "Reports three steps.", func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			server.Progress(ctx, float64(i+1), 3, "")
			select {
			case <-heard:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return "done", nil
	})
	return s
}

func throughProxies(t *testing.T, test func(t *testing.T, p proxied, r mcp.Revision)) {
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			inBothEras(t, func(t *testing.T, r mcp.Revision) {
				t.Parallel()
				test(t, p, r)
			})
		})
	}
}

// Progress, questions and answers pass the proxy at once, not when a buffer is full or the call has
// ended.
func TestCallsThroughProxies(t *testing.T) {
	throughProxies(t, func(t *testing.T, p proxied, r mcp.Revision) {
		gate := make(chan struct{})
		c := p.dial(t, stepping(gate), r, client.Options{Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: []byte(`{"name":"Ada"}`)}, nil
		}}})
		if got, err := client.Call[string](t.Context(), c, "ask", nil); err != nil || got != "hello Ada" {
			t.Errorf("ask: %q, %v", got, err)
		}
		steps := 0
		got, err := client.Call[string](t.Context(), c, "step", nil, client.CallOptions{Limits: client.Limits{Total: time.Minute}, OnProgress: func(mcp.ProgressParams) {
			steps++
			openGate(t, gate) // the server continues after its step has arrived
		}})
		if err != nil || got != "done" || steps != 3 {
			t.Errorf("step: %q, %v, %d steps", got, err, steps)
		}
	})
}

// A call that the client cancels ends at the server, and the connection can be used again.
func TestCancelThroughProxies(t *testing.T) {
	throughProxies(t, func(t *testing.T, p proxied, r mcp.Revision) {
		s, begun, ended := watched(nil)
		c := p.dial(t, s, r, client.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		if _, err := client.Call[string](ctx, c, "wait", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		select {
		case cause := <-ended:
			if cause == nil {
				t.Error("the handler's context had not ended")
			}
		case <-time.After(polltest.Limit):
			t.Error("the handler continues")
		}
		if got, err := client.Call[string](t.Context(), c, "echo", message{"x"}); err != nil || got != "x" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// Keep-alive comments let a stream survive a silence that is longer than a proxy's idle timeout:
// the answer to a call and a change arrive after it.
func TestSilenceThroughProxies(t *testing.T) {
	throughProxies(t, func(t *testing.T, p proxied, r mcp.Revision) {
		gate := make(chan struct{})
		p.opts.JSONFor = idleLimit / 4
		s := testServer(gate)
		c := p.dial(t, s, r, client.Options{})
		w, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		timer := time.AfterFunc(idleLimit+idleLimit/2, func() { openGate(t, gate) })
		defer timer.Stop()
		if got, err := client.Call[string](t.Context(), c, "wait", nil); err != nil || got != "let go" {
			t.Errorf("wait: %q, %v", got, err)
		}
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
		t.Error("the watch ended without a change")
	})
}

// Without keep-alive comments the proxy cuts off a silent call, so the test above can fail.
func TestSilenceThatIsTooLong(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := proxied{idle: true, opts: streamable.Options{KeepAlive: -1}}
	c := p.dial(t, testServer(gate), mcp.LatestRevision, client.Options{})
	timer := time.AfterFunc(2*idleLimit, func() {
		select {
		case gate <- struct{}{}:
		case <-t.Context().Done():
		}
	})
	defer timer.Stop()
	if got, err := client.Call[string](t.Context(), c, "wait", nil); !errors.Is(err, mcp.ErrConnection) {
		t.Errorf("%q, %v", got, err)
	}
}
