package hub_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// unreliable is a dialer that fails while down is true.
type unreliable struct {
	transport.Dialer
	down *atomic.Bool
}

func (m unreliable) Dial(ctx context.Context, in mcp.Inbound, o transport.ClientOptions) (mcp.Transport, error) {
	if m.down.Load() {
		return nil, errors.New("it is in no mood")
	}
	return m.Dialer.Dial(ctx, in, o)
}

// A server that cannot start is listed from the first moment, with the reason.
func TestFailuresAreShown(t *testing.T) {
	folder := t.TempDir()
	h := start(t, hub.Options{MinBackoff: time.Hour, Logger: quiet},
		hub.Definition{Name: "fine", Target: echo("fine")},
		hub.Definition{Name: "absent", Target: []string{"no-such-program-anywhere"}},
		hub.Definition{Name: "path", Target: []string{filepath.Join(folder, "none")}},
		hub.Definition{Name: "folder", Target: stdio.Command{Path: "go", Dir: filepath.Join(folder, "gone")}},
		hub.Definition{Name: "nowhere", Target: "http://127.0.0.1:1/mcp"},
		hub.Definition{Name: "nothing", Target: ""},
	)
	var names []string
	for _, u := range h.Upstreams() {
		names = append(names, u.Name())
		if s := u.State(); s.Status == 0 || s.Since.IsZero() {
			t.Errorf("%s: %+v", u.Name(), s)
		}
	}
	if want := []string{"fine", "absent", "path", "folder", "nowhere", "nothing"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	settled(t, h)
	for name, why := range map[string]string{
		"absent": "no-such-program-anywhere", "path": "none", "folder": "gone", "nowhere": "127.0.0.1:1", "nothing": "URL",
	} {
		s := h.Upstream(name).State()
		if s.Status != hub.Failed || s.Err == nil || s.Attempt != 1 || time.Until(s.Next) < time.Minute || s.Diagnosis == nil {
			t.Errorf("%s: %+v", name, s)
			continue
		}
		if d := s.Diagnosis; !strings.Contains(d.Summary, why) || d.Advice == "" {
			t.Errorf("%s: %q, %q", name, d.Summary, d.Advice)
		}
		if _, err := call(t, h.Upstream(name), ""); err == nil || !strings.Contains(err.Error(), "the server "+name+" failed: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A restart of a failed server publishes each state, clears the error, and does not wait for the
// next attempt.
func TestRestartOfFailed(t *testing.T) {
	down := new(atomic.Bool)
	down.Store(true)
	h := start(t, hub.Options{MinBackoff: time.Hour, Logger: quiet}, hub.Definition{Name: "m", Target: unreliable{memory.Dialer(echo("m")), down}})
	settled(t, h)
	u := h.Upstream("m")
	if s := u.State(); s.Status != hub.Failed || s.Err == nil || !strings.Contains(s.Err.Error(), "no mood") {
		t.Fatalf("%+v", s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events := h.Events(ctx, hub.StateChanged)
	u.Restart("the user wants it")
	settled(t, h)
	if s := u.State(); s.Status != hub.Failed || s.Attempt != 1 {
		t.Errorf("it counts on: %+v", s)
	}
	down.Store(false)
	u.Restart("the user wants it again")
	if s := u.State(); s.Status == hub.Failed || s.Err != nil || s.Diagnosis != nil || s.Attempt != 0 {
		t.Errorf("%+v", s)
	}
	settled(t, h)
	if _, err := call(t, u, "hi"); err != nil {
		t.Error(err)
	}
	var states []string
	for e := range events {
		states = append(states, e.State.Status.String()+" "+e.State.Cause)
		if e.State.Status == hub.Ready {
			break
		}
	}
	want := []string{"starting the user wants it", "failed it could not be started", "starting the user wants it again", "ready connected in "}
	if len(states) != len(want) || !slices.EqualFunc(states, want, strings.HasPrefix) {
		t.Errorf("%q", states)
	}
}

// web is an HTTP server that can drop all its connections.
func web(t *testing.T) (url string, down *atomic.Bool) {
	down = new(atomic.Bool)
	quietly := transport.ServerOptions{Logger: quiet}
	now, then := streamable.Handler(echo("web"), &streamable.Options{ServerOptions: quietly}), sse.Handler(echo("web"), &streamable.Options{ServerOptions: quietly})
	mux := http.NewServeMux()
	mux.Handle("/mcp", now)
	mux.Handle("/sse", then)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = now.Shutdown(ctx)
		_ = then.Shutdown(ctx)
		s.Close()
	})
	return s.URL, down
}

// The loss of an HTTP server is noticed without a call, and so is its return.
func TestLostOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		path     string
		revision mcp.Revision
	}{{"/mcp", mcp.LatestRevision}, {"/mcp", mcp.LatestLegacyRevision}, {"/sse", mcp.Revision20241105}} {
		t.Run(string(tt.revision), func(t *testing.T) {
			url, down := web(t)
			h := start(t, hub.Options{MinBackoff: 10 * time.Millisecond, MaxBackoff: 20 * time.Millisecond, PingInterval: 20 * time.Millisecond, Logger: quiet},
				hub.Definition{Name: "web", Target: url + tt.path, Options: client.Options{Wire: client.Wire{Revision: tt.revision}}},
				hub.Definition{Name: "other", Target: echo("other")})
			settled(t, h)
			u, since := h.Upstream("web"), h.Upstream("other").State().Since
			if s := u.State(); s.Status != hub.Ready {
				t.Fatalf("%+v", s)
			}
			down.Store(true)
			until(t, "it is missed", func() bool { s := u.State(); return s.Status == hub.Failed && s.Err != nil && s.Diagnosis != nil })
			down.Store(false)
			until(t, "it is back", func() bool { return u.State().Status == hub.Ready })
			if got, err := call(t, u, "hi"); err != nil || !strings.Contains(got, "hi") {
				t.Errorf("%s, %v", got, err)
			}
			if h.Upstream("other").State().Since != since {
				t.Error("another server was restarted")
			}
		})
	}
}

// The loss of a WebSocket server is noticed with its reason, and so is its return.
func TestLostOverWebSocket(t *testing.T) {
	for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		t.Run(string(revision), func(t *testing.T) {
			newEndpoint := func() *websocket.Server {
				return websocket.Handler(echo("web"), &websocket.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})
			}
			var serving atomic.Pointer[websocket.Server]
			first, second := newEndpoint(), newEndpoint()
			serving.Store(first)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serving.Load().ServeHTTP(w, r) }))
			defer s.Close()
			defer second.Shutdown(t.Context())
			h := start(t, hub.Options{MinBackoff: 10 * time.Millisecond, MaxBackoff: 20 * time.Millisecond, PingInterval: 20 * time.Millisecond, Logger: quiet},
				hub.Definition{Name: "web", Target: "ws" + strings.TrimPrefix(s.URL, "http"), Options: client.Options{Wire: client.Wire{Revision: revision}}})
			defer h.Close()
			settled(t, h)
			u := h.Upstream("web")
			if s := u.State(); s.Status != hub.Ready {
				t.Fatalf("%+v", s)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			events := h.Events(ctx, hub.StateChanged)
			if err := first.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			for e := range events {
				if e.State.Status == hub.Failed {
					if e.State.Err == nil || !strings.Contains(e.State.Err.Error(), "shutting down") || e.State.Diagnosis == nil {
						t.Errorf("%+v", e.State)
					}
					break
				}
			}
			serving.Store(second)
			until(t, "it is back", func() bool { return u.State().Status == hub.Ready })
			if got, err := call(t, u, "hi"); err != nil || !strings.Contains(got, "hi") {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// Changed limits apply from the next call on, and restart no server.
func TestLimitsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New("s", "1", &server.Options{Logger: quiet})
		server.Tool(s, "echo", "Takes an hour.", func(ctx context.Context, _ struct{ Text string }) (string, error) {
			for i := range 360 {
				select {
				case <-time.After(10 * time.Second):
					server.Progress(ctx, float64(i+1), 360, "")
				case <-ctx.Done():
					return "", context.Cause(ctx)
				}
			}
			return "done", nil
		})
		d := hub.Definition{Name: "s", Target: s, Fingerprint: "1"}
		h := start(t, hub.Options{Logger: quiet}, d)
		settled(t, h)
		u := h.Upstream("s")
		since := u.State().Since
		for _, tt := range []struct {
			idle, total, want time.Duration
			says              string
		}{
			{0, 20 * time.Second, 20 * time.Second, "has not answered within 20s"},
			{0, 5 * time.Minute, 5 * time.Minute, "has not answered within 5m0s"},
			{5 * time.Second, 0, 5 * time.Second, "no sign of life for 5s"},
			{15 * time.Second, 0, time.Hour, ""},
			{0, 0, time.Hour, ""},
		} {
			d.Idle, d.Total = tt.idle, tt.total
			h.Apply([]hub.Definition{d}, "the file changed")
			began := time.Now()
			_, err := call(t, u, "")
			if took := time.Since(began); took != tt.want || !strings.Contains(fmt.Sprint(err), tt.says) || (err == nil) != (tt.says == "") {
				t.Errorf("idle %v, total %v: after %v: %v", tt.idle, tt.total, took, err)
			}
		}
		if s := u.State(); s.Status != hub.Ready || s.Since != since {
			t.Errorf("it was restarted: %+v", s)
		}
	})
}

// A removed upstream stays removed.
func TestRestartOfRemoved(t *testing.T) {
	h := start(t, hub.Options{Logger: quiet}, with("s", "read"))
	settled(t, h)
	u := h.Upstream("s")
	h.Apply(nil, "the file changed")
	until(t, "it is removed", func() bool { return u.State().Status == hub.Removed })
	u.Restart("it was asked for")
	if s := u.State(); s.Status != hub.Removed {
		t.Errorf("%+v", s)
	}
}
