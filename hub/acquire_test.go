package hub

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
)

// pausing is a server whose tool pauses for an hour in its first call.
func pausing() *server.Server {
	var calls atomic.Int64
	s := server.New("up", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	server.Tool(s, "pause", "Pauses.", func(ctx context.Context, _ struct{}) (string, error) {
		if calls.Add(1) == 1 {
			return "paused", timeout.Sleep(ctx, time.Hour)
		}
		return "at once", nil
	})
	return s
}

var pause = mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"pause","arguments":{}}`)}

// inBubble calls test with the ready upstream of a definition, in a bubble of fake time.
func inBubble(t *testing.T, opts Options, d Definition, test func(t *testing.T, u *Upstream)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts.Logger = slog.New(slog.DiscardHandler)
		h := New(&opts)
		defer h.Close()
		d.Name, d.Target = "up", memory.Dialer(pausing(), transport.ServerOptions{})
		h.Apply([]Definition{d}, "the test begins")
		if !h.Settle(t.Context()) {
			t.Fatal("not settled")
		}
		test(t, h.Upstream("up"))
	})
}

// A call that waits for its turn when the connection is replaced was not sent, so it goes to the
// new connection.
func TestReplacedBeforeSend(t *testing.T) {
	d := Definition{Options: client.Options{Wire: client.Wire{Revision: mcp.LatestLegacyRevision, SerializeAsks: true}}}
	for name, sharing := range map[string]Sharing{"shared": "", "own": SharePerSession} {
		t.Run(name, func(t *testing.T) {
			d.Sharing = sharing
			inBubble(t, Options{}, d, func(t *testing.T, u *Upstream) {
				first, second := make(chan error, 1), make(chan error, 1)
				for _, ended := range []chan error{first, second} {
					go func() {
						_, err := u.RoundTrip(t.Context(), Caller{Session: "s"}, &pause)
						ended <- err
					}()
					synctest.Wait()
				}
				u.Restart("the test wants it")
				if err := <-first; err == nil {
					t.Error("the call in flight has survived the restart")
				}
				if err := <-second; err != nil {
					t.Errorf("the call that was not sent: %v", err)
				}
			})
		})
	}
}

// A restart while the login of a caller is looked up does not fail the call.
func TestReplacedDuringLogin(t *testing.T) {
	for _, login := range []string{"", "ada"} {
		t.Run("login "+login, func(t *testing.T) {
			var u *Upstream
			d := Definition{LoginFor: func(context.Context, Caller) (string, *http.Client, error) {
				u.Restart("the test wants it")
				synctest.Wait() // until it is ready again
				return login, nil, nil
			}}
			inBubble(t, Options{}, d, func(t *testing.T, up *Upstream) {
				u = up
				if _, err := u.RoundTrip(t.Context(), Caller{}, &mcp.Request{Method: mcp.MethodListTools}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A connection that a call has got does not end because it is idle, also if the call is not sent
// for long. Afterwards it ends.
func TestAcquiredIsNotIdle(t *testing.T) {
	const idle = time.Minute
	for name, d := range map[string]Definition{"shared": {Policy: Policy{IdleStop: idle}}, "own": {Policy: Policy{Sharing: SharePerSession}}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{ClientIdle: idle}, d, func(t *testing.T, u *Upstream) {
				conn, err := u.acquireConn(t.Context(), Caller{Session: "s"})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * idle)
				if _, err := conn.client.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListTools}); err != nil {
					t.Errorf("the connection has ended under a call: %v", err)
				}
				conn.endCall()
				time.Sleep(2 * idle)
				if s := conn.client.State().Status; s != client.Closed {
					t.Errorf("without a call it is %v", s)
				}
			})
		})
	}
}
