package websocket_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

var quiet = slog.New(slog.DiscardHandler)

// testServer is a server with a tool for each feature of the transport.
type testServer struct {
	*server.Server
	entered chan struct{} // "wait" is running
	release chan struct{}
	ended   chan error // the cause of the end of the context of "wait"
}

func newTestServer() *testServer {
	w := &testServer{server.New("test-server", "1", &server.Options{Logger: quiet}), make(chan struct{}, 8), make(chan struct{}), make(chan error, 8)}
	server.Tool(w.Server, "echo", "", func(_ context.Context, in struct {
		Text string `json:"text" header:"Text"`
	}) (string, error) {
		return in.Text, nil
	})
	server.Tool(w.Server, "big", "", func(_ context.Context, in struct {
		Size int `json:"size"`
	}) (string, error) {
		return strings.Repeat("x", in.Size), nil
	})
	server.Tool(w.Server, "progress", "", func(ctx context.Context, _ struct{}) (string, error) {
		server.Progress(ctx, 1, 3, "")
		return "done", nil
	})
	server.Tool(w.Server, "ask", "", func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := server.Ask[struct {
			Name string `json:"name"`
		}](ctx, "who", "Who?")
		return "hello " + answer.Name, err
	})
	server.Tool(w.Server, "wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		w.entered <- struct{}{}
		select {
		case <-w.release:
			return "released", nil
		case <-ctx.Done():
			w.ended <- context.Cause(ctx)
			return "", context.Cause(ctx)
		}
	})
	return w
}

// serve serves h at /ws of a real server and returns its URL.
func serve(t testing.TB, h mcp.Handler, opts websocket.Options) (*websocket.Server, string) {
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	if opts.Tap == nil {
		opts.Tap = mcptest.ServerTap(t, mcptest.SentOnly())
	}
	s := websocket.Handler(h, &opts)
	mux := http.NewServeMux()
	mux.Handle("/ws", s)
	web := listen(t, mux)
	t.Cleanup(func() {
		if err := s.Shutdown(within(t)); err != nil {
			t.Error(err)
		}
	})
	return s, wsURL(web)
}

// listen serves h over HTTP/1.1.
func listen(t testing.TB, h http.Handler) *httptest.Server {
	web := httptest.NewUnstartedServer(h)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Start()
	t.Cleanup(web.Close)
	return web
}

// wsURL returns the address of /ws of a server.
func wsURL(web *httptest.Server) string { return "ws" + strings.TrimPrefix(web.URL, "http") + "/ws" }

// within returns a context that outlasts every test that works.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// dial connects a client until the test ends. The zero revision is found out.
func dial(t testing.TB, u websocket.URL, r mcp.Revision, opts client.Options) *client.Client {
	t.Helper()
	opts.Logger, opts.Wire.Revision, opts.Wire.Verdicts = quiet, r, new(transport.Verdicts)
	if opts.Wire.Tap == nil {
		opts.Wire.Tap = mcptest.ClientTap(t)
	}
	c, err := client.Dial(within(t), u, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func call(ctx context.Context, c *client.Client, tool, arguments string, opts ...client.CallOptions) (string, error) {
	res, err := c.CallTool(ctx, mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)}, opts...)
	if err != nil {
		return "", err
	}
	if len(res.Content) == 0 {
		return "", nil
	}
	return res.Content[0].Text, nil
}

// raw connects without MCP.
func raw(t testing.TB, url string, opts *ws.DialOptions) *ws.Conn {
	t.Helper()
	if opts == nil {
		opts = &ws.DialOptions{Subprotocols: []string{"mcp"}}
	}
	c, _, err := ws.Dial(within(t), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(-1)
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// send sends a text message.
func send(t testing.TB, c *ws.Conn, message string) {
	t.Helper()
	if err := c.Write(within(t), ws.MessageText, []byte(message)); err != nil {
		t.Fatal(err)
	}
}

// exchange sends a text message and returns the next one.
func exchange(t testing.TB, c *ws.Conn, message string) string {
	t.Helper()
	send(t, c, message)
	_, answer, err := c.Read(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`

// fake is a server that speaks WebSocket and no MCP: serve gets each connection.
func fake(t testing.TB, opts *ws.AcceptOptions, serve func(c *ws.Conn)) string {
	if opts == nil {
		opts = &ws.AcceptOptions{Subprotocols: []string{"mcp"}}
	}
	return wsURL(listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := ws.Accept(w, r, opts)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		serve(c)
	})))
}

// trust returns an HTTP client that trusts a server's certificate.
func trust(web *httptest.Server) *http.Client {
	roots := web.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
}

func toolCall(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}
