package streamable_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/streamable/internal/memstore"
)

// unreadableEvents is an event store that cannot be read while the test says so.
type unreadableEvents struct {
	streamable.EventStore
	broken atomic.Bool
}

func (e *unreadableEvents) After(ctx context.Context, id string) (iter.Seq2[string, []byte], error) {
	if e.broken.Load() {
		return nil, errors.New("the store does not answer")
	}
	return e.EventStore.After(ctx, id)
}

// A client that resumes while the events cannot be read misses none: it is told to try again.
func TestResumeWhileEventsUnreadable(t *testing.T) {
	events := &unreadableEvents{EventStore: memstore.NewEvents(memstore.EventLimits{})}
	r := &clusterReplica{steps: make(chan string)}
	r.server = server.New("replica", "1", nil)
	server.Tool(r.server, "steps", "Reports steps.", func(ctx context.Context, _ struct{}) (string, error) {
		for text := range r.steps {
			if text == "end" {
				break
			}
			server.Log(ctx).Info(text)
		}
		return "done", nil
	})
	quiet := transport.ServerOptions{Logger: slog.New(slog.DiscardHandler)}
	_, web := serve(t, r.server, streamable.Options{ServerOptions: quiet, Sessions: streamable.SessionOptions{Events: events}})
	r.url = web.URL + "/mcp"
	in := inSession(open(t, r.url, mcp.Revision20251125), mcp.Revision20251125)
	in = append(in, "Last-Event-ID", beginSteps(t, r, in))

	r.steps <- "two"
	events.broken.Store(true)
	lines, cut := stream(t, r.url, in...)
	r.steps <- "three"
	for line := range lines { // the connection ends, so that the client tries again
		if strings.Contains(line, "data:") {
			t.Errorf("without the events before it: %s", line)
		}
	}
	cut()
	events.broken.Store(false)
	lines, cut = stream(t, r.url, in...)
	for _, want := range []string{`"two"`, `"three"`} {
		if got := until(t, lines, "data:"); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	cut()

	r.steps <- "end"
	events.broken.Store(true)
	status := 0
	polltest.Until(t, "the call has ended", func() bool {
		status = send(t, "GET", r.url, "", append(in, "Accept", "text/event-stream")...).status
		return status != 200
	})
	if status != 503 {
		t.Errorf("a stream that has ended and cannot be read: status %d", status)
	}
	events.broken.Store(false)
	lines, cut = stream(t, r.url, in...)
	defer cut()
	for range 3 {
		if got := until(t, lines, "data:"); strings.Contains(got, "done") {
			return
		}
	}
	t.Error("the answer is lost")
}

// gatedEvents is an event store whose Append waits once the test has closed shut, until it closes
// open.
type gatedEvents struct {
	streamable.EventStore
	shut, open chan struct{}
	waiting    atomic.Int32 // calls that wait
}

func newGatedEvents(store streamable.EventStore) *gatedEvents {
	return &gatedEvents{EventStore: store, shut: make(chan struct{}), open: make(chan struct{})}
}

func (e *gatedEvents) Append(ctx context.Context, stream string, data []byte) (string, error) {
	select {
	case <-e.shut:
		e.waiting.Add(1)
		<-e.open
		e.waiting.Add(-1)
	default:
	}
	return e.EventStore.Append(ctx, stream, data)
}

// A client that reads is not cut off because the event store is slow: it would miss the change.
func TestSlowEventStore(t *testing.T) {
	events := newGatedEvents(memstore.NewEvents(memstore.EventLimits{}))
	s := testServer(nil)
	endpoint, web := serve(t, s, streamable.Options{Sessions: streamable.SessionOptions{Events: events}})
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20250618), mcp.Revision20250618)
	lines, _ := stream(t, url, in...)
	until(t, lines, ": open")
	close(events.shut)
	grower(s)()
	polltest.Until(t, "the change is being stored", func() bool { return events.waiting.Load() == 1 })

	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", "/mcp", nil)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", in[1])
	served := make(chan struct{})
	go func() { defer close(served); endpoint.ServeHTTP(httptest.NewRecorder(), r) }()
	polltest.Until(t, "a second connection waits for the stream", func() bool { return polltest.Blocked("lockOrCutOff") == 1 })
	time.Sleep(3 * streamable.MaxSend)
	close(events.open)
	if got := until(t, lines, "data:"); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("got %s", got)
	}
	cancel()
	<-served
}
