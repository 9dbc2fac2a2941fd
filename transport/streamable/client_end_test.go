package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

// If a server never answers, each message must wait only as long as its context lasts.
func TestServerNeverAnswers(t *testing.T) {
	for _, test := range []struct {
		on       string
		revision mcp.Revision
		dials    bool // the dial succeeds
	}{
		{mcp.MethodDiscover, mcp.LatestRevision, false},
		{mcp.MethodDiscover, "", false}, // initialize is not answered either
		{mcpwire.MethodInitialize, mcp.Revision20251125, false},
		{mcpwire.NotificationInitialized, mcp.Revision20251125, false},
		{mcp.MethodListTools, mcp.LatestRevision, true},
		{mcp.MethodCallTool, mcp.LatestRevision, true},
		{mcp.MethodCallTool, mcp.Revision20251125, true},
	} {
		for _, how := range []string{"nothing", "a header", "half a line", "comments"} {
			t.Run(test.on+" "+string(test.revision)+" with "+how, func(t *testing.T) {
				t.Parallel()
				b := &fakeServer{session: "s"}
				b.post = func(w http.ResponseWriter, r *http.Request, m posted) bool {
					if m.Method != test.on && (test.revision != "" || m.Method != mcpwire.MethodInitialize) {
						return false
					}
					b.stall(w, r, how)
					return true
				}
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				c, err := dialFor(ctx, t, b.start(t), test.revision)
				if err == nil && test.dials {
					polltest.Within(t, func() {
						if test.on == mcp.MethodListTools {
							_, err = client.All(c.Tools(ctx))
						} else {
							_, err = client.Call[string](ctx, c, "t", nil)
						}
					})
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					// A notification is accepted with the header.
					if accepted := test.on == mcpwire.NotificationInitialized && how != "nothing"; !accepted || err != nil {
						t.Errorf("%v", err)
					}
				}
			})
		}
	}
}

// stall begins an answer and never ends it.
func (b *fakeServer) stall(w http.ResponseWriter, r *http.Request, how string) {
	switch how {
	case "a header":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
	case "half a line":
		beginStream(w, "data: {")
	case "comments":
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			beginStream(w, ": alive\n\n")
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			case <-b.gone:
				return
			}
		}
	}
	b.silent(r)
}

// dialFor dials while ctx lasts. It fails the test if the dial does not end then.
func dialFor(ctx context.Context, t *testing.T, url string, r mcp.Revision) (*client.Client, error) {
	t.Helper()
	type dialed struct {
		c   *client.Client
		err error
	}
	done := make(chan dialed, 1)
	own := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(own.CloseIdleConnections)
	go func() {
		c, err := client.Dial(ctx, url, &client.Options{HTTP: client.HTTP{Client: own}, Limits: client.Limits{Connect: -1}, Wire: client.Wire{Revision: r, Tap: mcptest.ClientTap(t, mcptest.SentOnly())}})
		done <- dialed{c, err}
	}()
	select {
	case d := <-done:
		if d.err == nil {
			t.Cleanup(func() { d.c.Close() })
		}
		return d.c, d.err
	case <-time.After(polltest.Limit):
		t.Fatal("the dial continues after the end of its context")
		return nil, nil
	}
}

// Close must end calls in flight with ErrClosed, whatever they wait for, and promptly even if the
// server does not answer the end of the session. TestMain checks that no goroutine remains.
func TestCloseWithCallsInFlight(t *testing.T) {
	inBothEras(t, func(t *testing.T, r mcp.Revision) {
		for _, how := range []string{"nothing", "a header", "half a line", "comments", "a cut"} {
			t.Run(how, func(t *testing.T) {
				t.Parallel()
				const calls = 20
				b := &fakeServer{session: "s"}
				b.post = onCall(func(w http.ResponseWriter, r *http.Request, _ posted) {
					if how == "a cut" && r.Header.Get("Mcp-Method") == "" {
						beginStream(w, "id: 1\nretry: 60000\ndata:\n\n") // the client waits before it resumes
						return
					}
					b.stall(w, r, how)
				})
				b.get = func(w http.ResponseWriter, r *http.Request) { beginStream(w, ": open\n\n"); b.silent(r) }
				c := mustDialFake(t, b.start(t), r, client.Options{})
				failed := make(chan error, calls)
				for range calls {
					go func() {
						_, err := client.Call[string](t.Context(), c, "t", nil)
						failed <- err
					}()
				}
				polltest.Until(t, "the calls arrive", func() bool { return b.count(mcp.MethodCallTool) == calls })
				polltest.Within(t, func() { c.Close() })
				for range calls {
					select {
					case err := <-failed:
						if !errors.Is(err, mcp.ErrClosed) && !errors.Is(err, mcp.ErrConnection) {
							t.Errorf("%v", err)
						}
					case <-time.After(polltest.Limit):
						t.Fatal("a call still waits")
					}
				}
				if got := b.count("DELETE"); got != 1 && !r.Modern() {
					t.Errorf("the session was ended %d times", got)
				}
			})
		}
	})
}

// If the server does not answer the end of a session, Close must wait only for a moment.
func TestCloseWhereTheServerIsSilent(t *testing.T) {
	b := &fakeServer{session: "s", silence: "DELETE"}
	c := mustDialFake(t, b.start(t), mcp.Revision20251125, client.Options{})
	polltest.Within(t, func() { c.Close() })
}
