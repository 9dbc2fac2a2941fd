package streamable_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A client may open several GET streams. Each message must arrive on exactly one of them, and
// opening one must not end another.
func TestSeveralSessionStreams(t *testing.T) {
	s := testServer(nil)
	subscriptions := &listens{Handler: s}
	endpoint := streamable.Handler(subscriptions, nil)
	t.Cleanup(func() {
		if err := endpoint.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	var gets atomic.Int32 // open GET requests
	web := httptest.NewServer(checked(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			gets.Add(1)
			defer gets.Add(-1)
		}
		endpoint.ServeHTTP(w, r)
	})))
	t.Cleanup(web.Close)
	in := inSession(open(t, web.URL, mcp.Revision20251125), mcp.Revision20251125)
	grow := grower(s)
	first, _ := stream(t, web.URL, in...)
	until(t, first, "id:")
	second, cut := stream(t, web.URL, in...)
	until(t, second, "id:")
	grow()
	last, _ := untilMessage(t, second)
	cut()
	polltest.Until(t, "the server notices the end of the second stream", func() bool { return gets.Load() == 1 })
	grow()
	other, _ := untilMessage(t, first)
	again, _ := stream(t, web.URL, append(in, "Last-Event-ID", last)...)
	until(t, again, ":")
	// The response begins before the connection has joined the stream.
	polltest.Until(t, "the resumed connection is the stream's", func() bool { return endpoint.SessionConns() == 2 })
	grow()
	if id, ids := untilMessage(t, again); slices.Contains(ids, other) {
		t.Errorf("the message %s of the first stream was repeated before %s", other, id)
	}
	polltest.Until(t, "the handovers end", func() bool {
		subscriptions.mu.Lock()
		defer subscriptions.mu.Unlock()
		return subscriptions.now == 1
	})
	if got := send(t, "DELETE", web.URL, "", in...); got.status != http.StatusNoContent {
		t.Errorf("DELETE: %d", got.status)
	}
	for name, lines := range map[string]<-chan string{"first": first, "resumed": again} {
		for line := range lines { // until the stream ends
			if strings.HasPrefix(line, "data: {") {
				t.Errorf("a second message came on the %s stream: %s", name, line)
			}
		}
	}
}

// untilMessage reads up to a message. It returns the id of its event, and the ids of all events
// that it has read.
func untilMessage(t *testing.T, lines <-chan string) (id string, ids []string) {
	t.Helper()
	timeout := time.After(polltest.Limit)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatal("the stream has ended")
			}
			if next, found := strings.CutPrefix(line, "id: "); found {
				id, ids = next, append(ids, next)
			}
			if strings.HasPrefix(line, "data: {") {
				return id, ids
			}
		case <-timeout:
			t.Fatal("no message was received")
		}
	}
}

// A stream that has ended cannot be resumed after its last event: some clients would reconnect
// forever.
func TestCompletedStreamCannotBeResumed(t *testing.T) {
	_, web := serve(t, testServer(nil))
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	lines := postStream(t, url, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"progress","arguments":{"message":"m"},"_meta":{"progressToken":1}}}`, in...)
	last := ""
	for answer := ""; !strings.Contains(answer, `"result"`); {
		last = until(t, lines, "id:")
		answer = until(t, lines, "data:")
	}
	if got := send(t, "GET", url, "", append(in, "Accept", "text/event-stream", "Last-Event-ID", last)...); got.status != 405 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
