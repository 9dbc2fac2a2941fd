package websocket_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/transporttest"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// answers are options that answer every question with a name.
func answers() client.Options {
	return client.Options{Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: []byte(`{"name":"Ada"}`)}, nil
	}}}
}

// exercise uses every feature of the transport.
func exercise(t *testing.T, w *testServer, c *client.Client) {
	ctx := within(t)
	for tool, want := range map[string]string{"echo": "a\nb", "ask": "hello Ada", "progress": "done"} {
		if tool == "ask" && c.Server().Revision < mcp.Revision20250618 {
			continue // the revision has no elicitation
		}
		progressed := 0
		got, err := call(ctx, c, tool, map[string]string{"echo": `{"text":"a\nb"}`, "ask": `{}`, "progress": `{}`}[tool],
			client.CallOptions{OnProgress: func(mcp.ProgressParams) { progressed++ }})
		if err != nil || got != want {
			t.Errorf("%s: %q %v", tool, got, err)
		}
		if tool == "progress" && progressed != 1 {
			t.Errorf("progress: %d", progressed)
		}
	}
	if got, err := call(ctx, c, "big", `{"size":1000000}`); err != nil || len(got) != 1_000_000 {
		t.Error(len(got), err)
	}
	watch, err := c.Watch(ctx, mcp.SubscriptionFilter{ToolsListChanged: true})
	if err != nil {
		t.Fatal(err)
	}
	server.Tool(w.Server, "late", "", func(context.Context, struct{}) (string, error) { return "", nil })
	for change, err := range watch.Changes() {
		if err != nil || change.Method != mcp.NotificationToolsChanged {
			t.Error(change, err)
		}
		break
	}
	cancelled, cancel := context.WithCancelCause(ctx)
	go func() { <-w.entered; cancel(errors.New("enough")) }()
	if _, err := call(cancelled, c, "wait", `{}`); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Error(err)
	}
	if err := <-w.ended; err == nil {
		t.Error("the server did not receive the cancellation")
	}
}

// Client and server together, with every message checked, in every revision.
func TestEveryRevision(t *testing.T) {
	t.Parallel()
	for _, r := range append(mcp.Revisions(), "") {
		t.Run("revision "+string(r), func(t *testing.T) {
			t.Parallel()
			w := newTestServer()
			_, url := serve(t, w, websocket.Options{ServerOptions: transport.ServerOptions{Tap: mcptest.ServerTap(t)}})
			c := dial(t, websocket.URL{URL: url}, r, answers())
			if want := r; c.Server().Revision != want && (want != "" || c.Server().Revision != mcp.LatestRevision) {
				t.Errorf("revision %s", c.Server().Revision)
			}
			exercise(t, w, c)
		})
	}
}

// The connection over TLS, where HTTP/2 is offered too, and over a proxy.
func TestOverTLSAndProxy(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		for _, proxied := range []bool{false, true} {
			w := newTestServer()
			s := websocket.Handler(w, &websocket.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})
			web := httptest.NewUnstartedServer(s)
			web.EnableHTTP2 = secure
			if secure {
				web.StartTLS()
			} else {
				web.Start()
			}
			at, u := web.URL, websocket.URL{Client: web.Client()}
			if secure {
				u.Client = trust(web)
			}
			var front *httptest.Server
			if proxied {
				to, _ := url.Parse(web.URL)
				front = httptest.NewServer(&httputil.ReverseProxy{
					Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: web.Client().Transport, ErrorLog: log.New(io.Discard, "", 0),
				})
				at, u.Client = front.URL, nil
			}
			u.URL = "ws" + strings.TrimPrefix(at, "http")
			c := dial(t, u, "", answers())
			exercise(t, w, c)
			c.Close()
			if err := s.Shutdown(within(t)); err != nil {
				t.Error(err)
			}
			if front != nil {
				front.Close()
			}
			web.Close()
		}
	}
}

// Both eras on one connection.
func TestBothErasOnOneConnection(t *testing.T) {
	t.Parallel()
	_, url := serve(t, newTestServer(), websocket.Options{})
	c := raw(t, url, nil)
	modern := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"new"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	if got := exchange(t, c, modern); !strings.Contains(got, `"text":"new"`) || !strings.Contains(got, `"resultType":"complete"`) {
		t.Error(got)
	}
	if got := exchange(t, c, initialize); string(rawjson.Lookup(rawjson.Lookup([]byte(got), "result"), "protocolVersion")) != `"2025-11-25"` {
		t.Error(got)
	}
	want := `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"old"}]}}`
	if got := exchange(t, c, toolCall(2, "echo", `{"text":"old"}`)); !transporttest.MatchJSON(want, []byte(got)) {
		t.Error(got)
	}
	if got := exchange(t, c, modern); !strings.Contains(got, `"resultType":"complete"`) {
		t.Error(got)
	}
}

func TestManyCalls(t *testing.T) {
	t.Parallel()
	_, url := serve(t, newTestServer(), websocket.Options{})
	c := dial(t, websocket.URL{URL: url}, "", client.Options{})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if got, err := call(within(t), c, "big", `{"size":40000}`); err != nil || len(got) != 40_000 {
				t.Error(len(got), err)
			}
		})
	}
	wg.Wait()
}

// A message over the limit fails its call and no other.
func TestMessageLimit(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	for _, r := range []mcp.Revision{mcp.LatestLegacyRevision, mcp.LatestRevision} {
		_, url := serve(t, newTestServer(), websocket.Options{MaxMessage: limit})
		c := dial(t, websocket.URL{URL: url, MaxMessage: limit}, r, client.Options{Wire: client.Wire{Tap: mcptest.ClientTap(t, mcptest.SentOnly())}})
		large := strings.Repeat("x", 200_000)
		for _, tt := range []struct{ tool, arguments string }{{"echo", `{"text":"` + large + `"}`}, {"big", `{"size":200000}`}} {
			_, err := call(within(t), c, tt.tool, tt.arguments)
			if err == nil || !strings.Contains(err.Error(), "over the limit of 10000") {
				t.Errorf("%s of revision %s: %v", tt.tool, r, err)
			}
			if got, err := call(within(t), c, "echo", `{"text":"hi"}`); err != nil || got != "hi" {
				t.Errorf("after %s: %q %v", tt.tool, got, err)
			}
		}
	}
}

// A message of exactly the limit passes, and one byte more does not.
func TestMessageAtLimit(t *testing.T) {
	t.Parallel()
	message := toolCall(2, "echo", `{"text":"`+strings.Repeat("x", 5000)+`"}`)
	for _, spare := range []int{0, 1} {
		_, url := serve(t, newTestServer(), websocket.Options{MaxMessage: len(message) - spare})
		c := raw(t, url, nil)
		exchange(t, c, initialize)
		got := []byte(exchange(t, c, message))
		if refused := rawjson.Lookup(got, "error") != nil; refused != (spare == 1) || string(rawjson.Lookup(got, "id")) != "2" {
			t.Errorf("%d bytes over the limit: %s", spare, got)
		}
	}
}

// Binary messages end the connection with status 1003, on either side.
func TestBinaryMessage(t *testing.T) {
	t.Parallel()
	_, url := serve(t, newTestServer(), websocket.Options{})
	c := raw(t, url, nil)
	if err := c.Write(within(t), ws.MessageBinary, []byte(initialize)); err != nil {
		t.Fatal(err)
	}
	_, _, err := c.Read(within(t))
	if ws.CloseStatus(err) != ws.StatusUnsupportedData || !strings.Contains(err.Error(), "text, not binary") {
		t.Error(err)
	}
	ended := make(chan error, 1)
	url = fake(t, nil, func(c *ws.Conn) {
		_ = c.Write(context.Background(), ws.MessageBinary, []byte(`{}`))
		for {
			if _, _, err := c.Read(context.Background()); err != nil {
				ended <- err
				return
			}
		}
	})
	_, err = client.Dial(within(t), websocket.URL{URL: url}, &client.Options{Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "the server sent a binary message") {
		t.Error(err)
	}
	if err := <-ended; ws.CloseStatus(err) != ws.StatusUnsupportedData {
		t.Error(err)
	}
}

// The client learns why the server has ended the connection.
func TestServerShutsDown(t *testing.T) {
	t.Parallel()
	w := newTestServer()
	s, url := serve(t, w, websocket.Options{})
	lost := make(chan error, 1)
	c := dial(t, websocket.URL{URL: url}, mcp.LatestLegacyRevision, client.Options{Restart: client.Restart{Max: -1}, OnState: func(s client.State) {
		if s.Err != nil {
			select {
			case lost <- s.Err:
			default:
			}
		}
	}})
	done := make(chan string, 1)
	go func() {
		got, err := call(within(t), c, "wait", `{}`)
		done <- got
		if err != nil {
			t.Error(err)
		}
	}()
	<-w.entered
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(within(t)) }()
	for { // a call in flight is answered, and no further connection accepted
		further, resp, err := ws.Dial(within(t), url, &ws.DialOptions{Subprotocols: []string{"mcp"}})
		if err == nil {
			_ = further.CloseNow()
		} else if resp != nil && resp.StatusCode == http.StatusServiceUnavailable {
			break
		}
	}
	close(w.release)
	if got := <-done; got != "released" {
		t.Error(got)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	if err := <-lost; !errors.Is(err, mcp.ErrConnection) || !strings.Contains(err.Error(), `status 1001: "the server is shutting down"`) {
		t.Error(err)
	}
}

// A shutdown whose context has ended cuts the connections off.
func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	w := newTestServer()
	s, url := serve(t, w, websocket.Options{ServerOptions: transport.ServerOptions{DrainTimeout: time.Hour}})
	c := dial(t, websocket.URL{URL: url}, "", client.Options{Restart: client.Restart{Max: -1}})
	failed := make(chan error, 1)
	go func() { _, err := call(within(t), c, "wait", `{}`); failed <- err }()
	<-w.entered
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no patience"))
	if err := s.Shutdown(ctx); err == nil || err.Error() != "no patience" {
		t.Error(err)
	}
	close(w.release)
	if err := <-failed; err != nil && !errors.Is(err, mcp.ErrConnection) {
		t.Error(err)
	}
}

// The end of the request's context ends the connection like a shutdown.
func TestServerContextEnds(t *testing.T) {
	t.Parallel()
	s := websocket.Handler(newTestServer(), &websocket.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})
	ctx, cancel := context.WithCancel(t.Context())
	url := wsURL(listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ServeHTTP(w, r.WithContext(ctx)) })))
	c := raw(t, url, nil)
	exchange(t, c, initialize)
	cancel()
	if _, _, err := c.Read(within(t)); ws.CloseStatus(err) != ws.StatusGoingAway {
		t.Error(err)
	}
	if err := s.Shutdown(within(t)); err != nil {
		t.Error(err)
	}
}

// The client closes with status 1000, and its calls fail.
func TestClientCloses(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	url := fake(t, nil, func(c *ws.Conn) {
		for {
			_, message, err := c.Read(context.Background())
			if err != nil {
				ended <- err
				return
			}
			m, _ := jsonrpc.Parse(message, nil)
			if m.Method == "initialize" {
				_ = c.Write(context.Background(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}}`))
			}
		}
	})
	c := dial(t, websocket.URL{URL: url}, mcp.LatestLegacyRevision, client.Options{})
	failed := make(chan error, 1)
	sent := make(chan struct{})
	go func() {
		close(sent)
		_, err := call(within(t), c, "never", `{}`)
		failed <- err
	}()
	<-sent
	c.Close()
	if err := <-failed; !errors.Is(err, mcp.ErrClosed) {
		t.Error(err)
	}
	if err := <-ended; ws.CloseStatus(err) != ws.StatusNormalClosure {
		t.Error(err)
	}
}

// A client that goes without a word cancels its calls.
func TestClientGoes(t *testing.T) {
	t.Parallel()
	w := newTestServer()
	_, url := serve(t, w, websocket.Options{})
	c := raw(t, url, nil)
	exchange(t, c, initialize)
	send(t, c, toolCall(2, "wait", `{}`))
	<-w.entered
	_ = c.CloseNow()
	if err := <-w.ended; !errors.Is(err, mcp.ErrConnection) {
		t.Error(err)
	}
}
