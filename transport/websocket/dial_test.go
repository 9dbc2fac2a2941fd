package websocket_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	ws "github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// dialError returns the error of a dial that must fail.
func dialError(t *testing.T, ctx context.Context, u websocket.URL) error {
	t.Helper()
	tr, err := u.Dial(ctx, nil, transport.ClientOptions{Logger: quiet, Verdicts: new(transport.Verdicts)})
	if err == nil {
		_ = tr.Close()
		t.Fatal("the dial succeeded")
	}
	return err
}

func TestDialer(t *testing.T) {
	t.Parallel()
	u := websocket.URL{URL: "wss://user:pass@example.com/ws?key=secret#x"}
	if u.String() != "wss://example.com/ws" || u.Endpoint() != u.URL {
		t.Error(u.String(), u.Endpoint())
	}
	for _, bad := range []string{"", "example.com/ws", "http://example.com?secret", "ws://", "ws://%zz?secret"} {
		if err := dialError(t, within(t), websocket.URL{URL: bad}); strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "wss://host/path") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	err := dialError(t, within(t), websocket.URL{URL: "ws://127.0.0.1:1/?key=secret"})
	if !errors.Is(err, mcp.ErrConnection) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	broken := errors.New("no token")
	err = dialError(t, within(t), websocket.URL{URL: "ws://127.0.0.1:1", Header: func(context.Context) (http.Header, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := (websocket.URL{URL: "ws://127.0.0.1:1"}).Dial(within(t), nil, transport.ClientOptions{Revision: "1999-01-01"}); err == nil || !strings.Contains(err.Error(), "1999-01-01") {
		t.Error(err)
	}
}

// Header fields of the user go with the request that opens the connection, and cannot replace the
// fields of the protocol.
func TestHeader(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 1)
	s := websocket.Handler(newTestServer(), &websocket.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})
	web := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		s.ServeHTTP(w, r)
	}))
	dial(t, websocket.URL{URL: wsURL(web), Header: func(context.Context) (http.Header, error) {
		return http.Header{"authorization": {"Bearer secret"}, "Sec-Websocket-Protocol": {"other"}, "Sec-Websocket-Extensions": {"permessage-deflate"}}, nil
	}}, "", client.Options{})
	if h := <-seen; h.Get("Authorization") != "Bearer secret" || h.Get("Sec-Websocket-Protocol") != "mcp" || h.Get("Sec-Websocket-Extensions") != "" {
		t.Error(h)
	}
}

// Answers that open no connection are errors with their status and text.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 400, 401, 404, 500, 503} {
		web := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "because", status) }))
		err := dialError(t, within(t), websocket.URL{URL: wsURL(web)})
		var answered *streamable.HTTPError
		if !errors.As(err, &answered) || answered.Status != status || !strings.Contains(err.Error(), "because") {
			t.Errorf("%d: %v", status, err)
		}
	}
	elsewhere := listen(t, http.NotFoundHandler())
	web := listen(t, http.RedirectHandler(elsewhere.URL, http.StatusFound))
	if err := dialError(t, within(t), websocket.URL{URL: wsURL(web)}); !strings.Contains(err.Error(), "another origin") {
		t.Error(err)
	}
	url := fake(t, &ws.AcceptOptions{}, func(c *ws.Conn) { _, _, _ = c.Read(context.Background()) })
	if err := dialError(t, within(t), websocket.URL{URL: url}); !strings.Contains(err.Error(), `not the subprotocol "mcp"`) {
		t.Error(err)
	}
}

// A redirect within the origin is followed.
func TestRedirect(t *testing.T) {
	t.Parallel()
	s := websocket.Handler(newTestServer(), &websocket.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})
	mux := http.NewServeMux()
	mux.Handle("/ws", http.RedirectHandler("/other", http.StatusTemporaryRedirect))
	mux.Handle("/other", s)
	c := dial(t, websocket.URL{URL: wsURL(listen(t, mux))}, "", client.Options{})
	if got, err := call(within(t), c, "echo", `{"text":"hi"}`); err != nil || got != "hi" {
		t.Error(got, err)
	}
}

// The context ends a dial in each of its phases.
func TestDialIsCancelled(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 1)
	end := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // accepts TCP connections and says nothing
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			reached <- struct{}{}
		}
	}()
	silent := fake(t, nil, func(c *ws.Conn) {
		_, _, _ = c.Read(context.Background())
		reached <- struct{}{}
		<-end
	})
	defer close(end)
	for _, url := range []string{"ws://" + l.Addr().String(), silent} {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-reached; cancel(errors.New("enough")) }()
		if err := dialError(t, ctx, websocket.URL{URL: url}); !strings.Contains(err.Error(), "enough") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// An old server that closes the connection because of the probe is dialed again.
func TestServerEndsAtProbe(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	url := fake(t, nil, func(c *ws.Conn) {
		connections.Add(1)
		for {
			_, message, err := c.Read(context.Background())
			if err != nil {
				return
			}
			m, _ := jsonrpc.Parse(message, nil)
			switch m.Method {
			case mcp.MethodDiscover:
				_ = c.Close(ws.StatusPolicyViolation, "unknown method")
				return
			case "initialize":
				_ = c.Write(context.Background(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"f","version":"1"}}}`))
			}
		}
	})
	c := dial(t, websocket.URL{URL: url}, "", client.Options{})
	if c.Server().Revision != mcp.Revision20250618 || connections.Load() != 2 {
		t.Error(c.Server().Revision, connections.Load())
	}
	if err := dialError(t, within(t), websocket.URL{URL: fake(t, nil, func(c *ws.Conn) { _ = c.Close(4001, "go away") })}); !strings.Contains(err.Error(), `status 4001: "go away"`) {
		t.Error(err)
	}
}

// An own HTTP client makes the request, with its settings for TLS.
func TestUnknownCertificate(t *testing.T) {
	t.Parallel()
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	defer web.Close()
	if err := dialError(t, within(t), websocket.URL{URL: "wss" + strings.TrimPrefix(web.URL, "https")}); !errors.Is(err, mcp.ErrConnection) || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
}
