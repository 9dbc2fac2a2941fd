package resource

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// tokenLeft is how long the token of these tests is accepted: less than the transports wait for a
// client that says nothing.
const tokenLeft = 15 * time.Second

// pipeServer serves endpoints behind a [Server] over [net.Pipe], for bubbles of testing/synctest.
// It is the listener, too.
type pipeServer struct {
	conns  chan net.Conn
	closed chan struct{}
	client *http.Client
	server *server.Server
}

func (p *pipeServer) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeServer) Close() error   { close(p.closed); return nil }
func (p *pipeServer) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipeServer) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.conns <- far
	return near, nil
}

// startPipeServer starts a server that knows the token "short". Clean-up ends all of its
// goroutines.
func startPipeServer(t *testing.T) *pipeServer {
	t.Helper()
	guard, err := New(Options{URL: "http://127.0.0.1:80", Issuers: []Issuer{{URL: "https://as.example"}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	token := &Token{Issuer: "https://as.example", Subject: "ann", Expires: time.Now().Add(tokenLeft - clockSkew), forAllPaths: true}
	guard.cache.addVerdict(newTokenKey("short"), verdict{
		auth:    &httpwire.Authorization{Principal: token.principal(), Challenge: guard.challengeScopes, Token: token},
		expires: token.Expires, until: time.Now().Add(time.Hour),
	})
	s := server.New("s", "1", nil)
	server.Tool(s, "noop", "", func(context.Context, struct{}) (string, error) { return "", nil })
	endpoints := map[string]interface {
		http.Handler
		Shutdown(context.Context) error
	}{"/mcp": streamable.Handler(s, nil), "/sse": sse.Handler(s, nil), "/ws": websocket.Handler(s, nil)}
	mux := http.NewServeMux()
	for path, endpoint := range endpoints {
		mux.Handle(path, endpoint)
	}
	p := &pipeServer{conns: make(chan net.Conn), closed: make(chan struct{}), server: s}
	web := &http.Server{Handler: guard.Protect(mux), ErrorLog: log.New(io.Discard, "", 0)}
	go web.Serve(p)
	transport := &http.Transport{DialContext: p.dial}
	p.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		for _, endpoint := range endpoints {
			if err := endpoint.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}
		transport.CloseIdleConnections()
		web.Close()
		s.Close()
	})
	return p
}

// open sends a request with the token, and returns the answer with an open body.
func (p *pipeServer) open(t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer short")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	resp, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

var listen = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
	mcp.MethodListen, mcp.LatestRevision)

// openSubscription opens a stream of the latest revision.
func openSubscription(t *testing.T, p *pipeServer) *http.Response {
	return p.open(t, http.MethodPost, "/mcp", listen, "Mcp-Protocol-Version", string(mcp.LatestRevision), "Mcp-Method", mcp.MethodListen)
}

// TestSubscriptionOfClosedServer checks that a subscription to a closed server is answered and
// ends.
func TestSubscriptionOfClosedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPipeServer(t)
		p.server.Close()
		begin := time.Now()
		resp := openSubscription(t, p)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if lasted := time.Since(begin); err != nil || lasted > time.Second {
			t.Errorf("the stream ended after %v with %v, want at once", lasted, err)
		}
		if !strings.Contains(string(body), mcp.NotificationAcknowledged) || !strings.Contains(string(body), `"result"`) {
			t.Errorf("the stream is %s, want an acknowledgement and a result", body)
		}
	})
}

// TestStreamsEndWithTheirToken checks that each kind of stream ends when its token expires, not
// before, and that the token opens none afterwards.
func TestStreamsEndWithTheirToken(t *testing.T) {
	for name, open := range map[string]func(*testing.T, *pipeServer) *http.Response{
		"session": func(t *testing.T, p *pipeServer) *http.Response {
			first := p.open(t, http.MethodPost, "/mcp", initialize)
			first.Body.Close()
			return p.open(t, http.MethodGet, "/mcp", "", "Mcp-Session-Id", first.Header.Get("Mcp-Session-Id"))
		},
		"subscription": openSubscription,
		"HTTP+SSE":     func(t *testing.T, p *pipeServer) *http.Response { return p.open(t, http.MethodGet, "/sse", "") },
		"WebSocket": func(t *testing.T, p *pipeServer) *http.Response {
			return p.open(t, http.MethodGet, "/ws", "", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13",
				"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol", "mcp")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := startPipeServer(t)
				opened := time.Now()
				resp := open(t, p)
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusSwitchingProtocols {
					t.Fatalf("status %d", resp.StatusCode)
				}
				_, err := io.Copy(io.Discard, bufio.NewReader(resp.Body))
				if lasted := time.Since(opened); lasted < tokenLeft || lasted > tokenLeft+10*time.Second {
					t.Errorf("the stream ended after %v (%v), want %v", lasted, err, tokenLeft)
				}
				time.Sleep(time.Second) // of the bubble
				again := p.open(t, http.MethodGet, "/sse", "")
				again.Body.Close()
				if again.StatusCode != http.StatusUnauthorized {
					t.Errorf("the expired token: status %d, want 401", again.StatusCode)
				}
			})
		})
	}
}
