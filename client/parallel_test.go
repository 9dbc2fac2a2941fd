package client_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// This file tests calls at the same time on one connection.

// fileDuplex is a stream of two OS pipes.
type fileDuplex struct {
	io.Reader
	io.WriteCloser
	r io.Closer
}

func (d fileDuplex) Close() error { return errors.Join(d.WriteCloser.Close(), d.r.Close()) }

// servePipes serves s over OS pipes and returns the client's end.
func servePipes(t *testing.T, s *server.Server) io.ReadWriteCloser {
	t.Helper()
	r1, w1, err1 := os.Pipe()
	r2, w2, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = stdio.ServeStream(context.Background(), fileDuplex{r1, w2, r1}, s) }) // fails if the client closes first
	t.Cleanup(serving.Wait)
	return fileDuplex{r2, w1, r2}
}

// eachWire runs a test for each transport and era. dial returns a client of s.
func eachWire(t *testing.T, test func(t *testing.T, dial func(s *server.Server) *client.Client)) {
	wires := map[string]func(*testing.T, *server.Server) any{
		"memory": func(_ *testing.T, s *server.Server) any { return s },
		"pipes":  func(t *testing.T, s *server.Server) any { return servePipes(t, s) },
		"HTTP": func(t *testing.T, s *server.Server) any {
			web := httptest.NewServer(streamable.Handler(s, nil))
			t.Cleanup(web.Close)
			return web.URL
		},
	}
	for name, target := range wires {
		for _, era := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
			t.Run(name+" "+string(era), func(t *testing.T) {
				test(t, func(s *server.Server) *client.Client {
					c, err := client.Dial(t.Context(), target(t, s), &client.Options{Wire: client.Wire{Revision: era}})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { c.Close() })
					return c
				})
			})
		}
	}
}

func newQuietServer() *server.Server {
	return server.New("parallel", "1", &server.Options{Logger: slog.New(slog.DiscardHandler), Limit: server.Limit{PerSecond: -1}})
}

// A handler that waits and one that computes hold up no other call: each of them ends only when
// another call is served.
func TestNoCallHoldsUpOthers(t *testing.T) {
	const waiting = 3
	for name, ctx := range map[string]func(*testing.T) context.Context{
		"cannot end": func(*testing.T) context.Context { return context.Background() },
		"can end":    (*testing.T).Context,
	} {
		t.Run(name, func(t *testing.T) {
			eachWire(t, func(t *testing.T, dial func(*server.Server) *client.Client) {
				s := newQuietServer()
				begun, released := make(chan struct{}, waiting+1), make(chan struct{})
				var isReleased atomic.Bool
				server.Tool(s, "wait", "", func(context.Context, struct{}) (string, error) {
					begun <- struct{}{}
					<-released
					return "waited", nil
				})
				server.Tool(s, "compute", "", func(context.Context, struct{}) (string, error) {
					begun <- struct{}{}
					for !isReleased.Load() { // without a call that could yield
					}
					return "computed", nil
				})
				server.Tool(s, "release", "", func(context.Context, struct{}) (string, error) {
					isReleased.Store(true)
					close(released)
					return "released", nil
				})
				c := dial(s)
				ctx := ctx(t)
				var calls sync.WaitGroup
				call := func(tool, want string) {
					if got, err := client.Call[string](ctx, c, tool, nil); err != nil || got != want {
						t.Errorf("%s returned %q, %v", tool, got, err)
					}
				}
				for range waiting {
					calls.Go(func() { call("wait", "waited") })
				}
				calls.Go(func() { call("compute", "computed") })
				polltest.Within(t, func() {
					for range waiting + 1 {
						<-begun
					}
					call("release", "released")
					calls.Wait()
				})
			})
		})
	}
}

// 64 calls in flight use the same connections again and again: with the two idle connections that
// net/http keeps by default, most calls would open one. A few calls may open one too many, because
// net/http returns a response shortly before it keeps the connection.
func TestConnectionsAreReused(t *testing.T) {
	for _, era := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		t.Run(string(era), func(t *testing.T) {
			const inFlight, rounds, most = 64, 20, 96
			s := newQuietServer()
			arrived := make(chan struct{}, inFlight)
			var released atomic.Pointer[chan struct{}]
			server.Tool(s, "meet", "", func(context.Context, struct{}) (string, error) {
				release := *released.Load()
				arrived <- struct{}{}
				<-release
				return "met", nil
			})
			var accepted atomic.Int32
			web := httptest.NewUnstartedServer(streamable.Handler(s, nil))
			web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					accepted.Add(1)
				}
			}
			web.Start()
			defer web.Close()
			c, err := client.Dial(t.Context(), web.URL, &client.Options{Wire: client.Wire{Revision: era}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range rounds {
				release := make(chan struct{})
				released.Store(&release)
				var calls sync.WaitGroup
				for range inFlight {
					calls.Go(func() {
						if _, err := client.Call[string](t.Context(), c, "meet", nil); err != nil {
							t.Error(err)
						}
					})
				}
				polltest.Within(t, func() {
					for range inFlight {
						<-arrived
					}
					close(release)
					calls.Wait()
				})
			}
			if n := accepted.Load(); n > most {
				t.Errorf("%d connections for %d rounds of %d calls, at most %d are allowed", n, rounds, inFlight, most)
			}
		})
	}
}
