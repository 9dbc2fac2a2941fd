package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// resumable answers calls with a stream that is cut after an event with an id. The test decides how
// the server answers when the client resumes.
type resumable struct {
	fakeServer
	begins string                                                                  // the stream up to the cut
	back   func(w http.ResponseWriter, r *http.Request, n int32, call posted) bool // answers the nth resumption; false refuses it with 405
	times  atomic.Int32
}

func newResumable(begins string, back func(w http.ResponseWriter, r *http.Request, n int32, call posted) bool) *resumable {
	s := &resumable{begins: begins, back: back}
	var call atomic.Pointer[posted]
	s.session = "s"
	s.post = onCall(func(w http.ResponseWriter, _ *http.Request, m posted) {
		call.Store(&m)
		beginStream(w, s.begins)
		abort()
	})
	s.get = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") == "" || !s.back(w, r, s.times.Add(1), *call.Load()) {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}
	return s
}

// pausesDuringCall makes a call, lets the client resume it three times, and cancels it. It returns
// the two pauses between the resumptions.
func (s *resumable) pausesDuringCall(t *testing.T, c *client.Client) (pauses []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var resumed []time.Time
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer := s.back
	s.back = func(w http.ResponseWriter, r *http.Request, n int32, call posted) bool {
		mu.Lock()
		if resumed = append(resumed, time.Now()); len(resumed) == 3 {
			cancel()
		}
		mu.Unlock()
		return answer(w, r, n, call)
	}
	if _, err := client.Call[string](ctx, c, "t", nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return []time.Duration{resumed[1].Sub(resumed[0]), resumed[2].Sub(resumed[1])}
}

const primed = "id: one\nretry: 1\ndata:\n\n"

// A call with a stream that was cut must be resumed as often as needed, despite temporary errors
// and further cuts.
func TestResumeCall(t *testing.T) {
	response := func(w http.ResponseWriter, call posted) { beginStream(w, "id: end\ndata: "+proper(call)+"\n\n") }
	for name, test := range map[string]struct {
		back func(w http.ResponseWriter, r *http.Request, n int32, call posted)
		last []string // the Last-Event-ID of each resumption
	}{
		"at once": {func(w http.ResponseWriter, _ *http.Request, _ int32, call posted) { response(w, call) }, []string{"one"}},
		"cut again": {func(w http.ResponseWriter, _ *http.Request, n int32, call posted) {
			if n < 3 {
				beginStream(w, fmt.Sprintf("id: %d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\ndata: half", n))
				abort()
			}
			response(w, call)
		}, []string{"one", "1", "2"}},
		"polled": {func(w http.ResponseWriter, _ *http.Request, n int32, call posted) {
			if beginStream(w, ": nothing yet\n\n"); n > 12 {
				fmt.Fprintf(w, "data: %s\n\n", proper(call))
			}
		}, []string{"one", "one", "one", "one", "one", "one", "one", "one", "one", "one", "one", "one", "one"}},
		"unavailable for a while": {func(w http.ResponseWriter, _ *http.Request, n int32, call posted) {
			if n < 3 {
				w.WriteHeader([]int{0, 503, 429}[n])
				return
			}
			response(w, call)
		}, []string{"one", "one", "one"}},
		"gone for a while": {func(w http.ResponseWriter, _ *http.Request, n int32, call posted) {
			if n < 3 {
				abort()
			}
			response(w, call)
		}, []string{"one", "one", "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			var last []string
			s := newResumable(primed, func(w http.ResponseWriter, r *http.Request, n int32, call posted) bool {
				last = append(last, r.Header.Get("Last-Event-ID")) // one after the other
				test.back(w, r, n, call)
				return true
			})
			c := mustDialFake(t, s.start(t), mcp.Revision20251125, client.Options{})
			if got, err := callFake(t, c); err != nil || got != "fine" {
				t.Errorf("%q, %v", got, err)
			}
			if fmt.Sprint(last) != fmt.Sprint(test.last) {
				t.Errorf("came back for %v, want %v", last, test.last)
			}
			if h := s.last("GET"); h.Get("Mcp-Session-Id") != "s" || h.Get("Mcp-Protocol-Version") != "2025-11-25" || h.Get("Accept") != "text/event-stream" {
				t.Errorf("came back with %v", h)
			}
		})
	}
}

// If a call cannot be resumed, it must end with an error.
func TestCallThatCannotBeResumed(t *testing.T) {
	for name, test := range map[string]struct {
		begins string
		back   func(w http.ResponseWriter, n int32) bool
		is     func(error) bool
	}{
		"the server resumes nothing":        {primed, func(http.ResponseWriter, int32) bool { return false }, isStatus(405)},
		"it does not know the event":        {primed, func(w http.ResponseWriter, _ int32) bool { w.WriteHeader(400); return true }, isStatus(400)},
		"it wants other credentials":        {primed, func(w http.ResponseWriter, _ int32) bool { w.WriteHeader(401); return true }, isStatus(401)},
		"it does not know the session":      {primed, func(w http.ResponseWriter, _ int32) bool { w.WriteHeader(404); return true }, is(mcp.ErrConnection)},
		"what comes is not an event stream": {primed, func(w http.ResponseWriter, _ int32) bool { fmt.Fprint(w, "<p>Hello"); return true }, isStatus(200)},
		"there was no event with an id":     {"data: {}\n\n", func(http.ResponseWriter, int32) bool { return false }, is(mcp.ErrConnection)},
		"the id was taken back":             {primed + "id\ndata:\n\n", func(http.ResponseWriter, int32) bool { return false }, is(mcp.ErrConnection)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newResumable(test.begins, func(w http.ResponseWriter, _ *http.Request, n int32, _ posted) bool { return test.back(w, n) })
			c := mustDialFake(t, s.start(t), mcp.Revision20251125, client.Options{})
			if _, err := callFake(t, c); err == nil || !test.is(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func isStatus(status int) func(error) bool {
	return func(err error) bool {
		var answered *streamable.HTTPError
		return errors.As(err, &answered) && answered.Status == status
	}
}

// The client must wait for the time that the server asks for.
func TestRetry(t *testing.T) {
	const wait = 150 * time.Millisecond
	var cut time.Time
	s := newResumable(fmt.Sprintf("id: 1\nretry: %d\ndata:\n\n", wait.Milliseconds()), func(w http.ResponseWriter, _ *http.Request, _ int32, call posted) bool {
		if early := wait - time.Since(cut); early > 0 {
			t.Errorf("came back %v too early", early)
		}
		beginStream(w, "data: "+proper(call)+"\n\n")
		return true
	})
	begin := s.post
	s.post = func(w http.ResponseWriter, r *http.Request, m posted) bool {
		if m.Method == mcp.MethodCallTool {
			cut = time.Now()
		}
		return begin(w, r, m)
	}
	if got, err := callFake(t, mustDialFake(t, s.start(t), mcp.Revision20251125, client.Options{})); err != nil || got != "fine" {
		t.Errorf("%q, %v", got, err)
	}
}

// If resuming keeps failing, the pauses must grow.
func TestResumeBacksOff(t *testing.T) {
	s := newResumable(primed, func(w http.ResponseWriter, _ *http.Request, _ int32, _ posted) bool {
		beginStream(w, "da")
		abort()
		return true
	})
	c := mustDialFake(t, s.start(t), mcp.Revision20251125, client.Options{})
	pauses := s.pausesDuringCall(t, c)
	if pauses[0] < 100*time.Millisecond || pauses[1] < 200*time.Millisecond {
		t.Errorf("the pauses between attempts do not grow: %v", pauses)
	}
}

// Even if the server asks for no pause, the client must make one.
func TestRetryAtOnce(t *testing.T) {
	s := newResumable("id: 1\nretry: 0\ndata:\n\n", func(w http.ResponseWriter, _ *http.Request, _ int32, _ posted) bool {
		beginStream(w, "retry: 0\n\n")
		return true
	})
	c := mustDialFake(t, s.start(t), mcp.Revision20251125, client.Options{})
	if pauses := s.pausesDuringCall(t, c); slices.Min(pauses) < 20*time.Millisecond {
		t.Errorf("the server is polled without a pause: %v", pauses)
	}
}

// The client waits for any retry time, but its context ends the wait.
func TestRetryInAnAge(t *testing.T) {
	s := newResumable(primed, func(w http.ResponseWriter, _ *http.Request, _ int32, _ posted) bool {
		beginStream(w, fmt.Sprintf("retry: %d\n\nda", math.MaxInt64))
		abort()
		return true
	})
	c := mustDialFake(t, s.start(t), mcp.Revision20251125, client.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := client.Call[string](ctx, c, "t", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

const changedEvent = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"

// The session stream must be resumed after a cut.
func TestStandingStream(t *testing.T) {
	var last []string
	done := make(chan struct{})
	b := &fakeServer{session: "s"}
	b.get = func(w http.ResponseWriter, r *http.Request) {
		last = append(last, r.Header.Get("Last-Event-ID"))
		switch len(last) {
		case 1:
			beginStream(w, "id: a\nretry: 1\n\nid: b\n"+changedEvent+"id: c\ndata: {\"json")
			abort()
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3:
			beginStream(w, "id: d\n"+changedEvent) // and ends well
		case 4:
			w.WriteHeader(http.StatusBadRequest) // it does not know the event any more
		case 5:
			beginStream(w, changedEvent)
			close(done)
			b.silent(r)
		}
	}
	var changes atomic.Int32
	c := mustDialFake(t, b.start(t), mcp.Revision20251125, client.Options{OnNotification: func(n mcp.Notification) {
		if n.Method == mcp.NotificationToolsChanged {
			changes.Add(1)
		}
	}})
	select {
	case <-done:
	case <-time.After(polltest.Limit):
		t.Fatal("the client has not come back")
	}
	polltest.Until(t, "three changes come", func() bool { return changes.Load() == 3 })
	if want := "[ b b d ]"; fmt.Sprint(last) != want {
		t.Errorf("came for %v, want %v", fmt.Sprint(last), want)
	}
	if err := ping(c); err != nil {
		t.Error(err)
	}
}

// A server without a session stream can still be called, however it refuses the stream. The client
// must not ask without end, and must not take the new session for lost.
func TestStandingStreamRefused(t *testing.T) {
	for _, session := range []string{"", "s"} {
		for name, get := range map[string]http.HandlerFunc{
			"405":    nil,
			"404":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Cannot GET /mcp", 404) },
			"400":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) },
			"401":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
			"500":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
			"501":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(501) },
			"a page": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<p>Welcome") },
			"a document": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, "{}")
			},
			"no answer":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			"an early end":  func(w http.ResponseWriter, _ *http.Request) { beginStream(w, "") },
			"an early end!": func(w http.ResponseWriter, _ *http.Request) { beginStream(w, "retry: 0\n\n") },
			"a hang-up":     func(http.ResponseWriter, *http.Request) { abort() },
		} {
			t.Run(name+strings.Repeat(" in a session", len(session)), func(t *testing.T) {
				t.Parallel()
				b := &fakeServer{session: session, get: get}
				c := mustDialFake(t, b.start(t), mcp.Revision20251125, client.Options{Restart: client.Restart{Base: time.Millisecond}})
				begun := time.Now()
				for end := begun.Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					if got, err := callFake(t, c); err != nil || got != "fine" {
						t.Fatalf("%q, %v", got, err)
					}
				}
				polltest.Until(t, "a request for the stream", func() bool { return b.count("GET") > 0 })
				if n := b.count(mcpwire.MethodInitialize); n != 1 {
					t.Errorf("the session was opened %d times", n)
				}
				if n, most := b.count("GET"), 5+int(time.Since(begun)/(20*time.Millisecond)); n > most {
					t.Errorf("the stream was asked for %d times", n)
				}
			})
		}
	}
}
