package streamable_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

// If a session stream was cut and cannot be resumed, a watch must report a gap.
func TestStandingStreamWithAGap(t *testing.T) {
	for name, test := range map[string]struct {
		head  string
		again string // the beginning of the stream when the client resumes it
		gap   bool
	}{
		"events without ids":         {"", "", true},
		"events with ids":            {"id: 1\n", "", false},
		"an event that is forgotten": {"id: 1\n", "id: 7\ndata:\n\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			begin, streams := make(chan struct{}), 0
			b := &fakeServer{session: "s"}
			b.get = func(w http.ResponseWriter, r *http.Request) {
				if streams++; streams == 1 {
					beginStream(w, ": open\n\n")
					<-begin
					beginStream(w, "retry: 1\n"+test.head+changedEvent)
					abort()
				}
				beginStream(w, test.again+changedEvent)
				b.silent(r)
			}
			ctx, cancel := context.WithTimeout(t.Context(), polltest.Limit)
			defer cancel()
			c := mustDialFake(t, b.start(t), mcp.Revision20251125, client.Options{Restart: client.Restart{Base: time.Millisecond}})
			w, err := c.Watch(ctx, mcp.SubscriptionFilter{ToolsListChanged: true})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			close(begin)
			gap, changes := false, 0
			for change, err := range w.Changes() {
				if err != nil {
					t.Fatal(err)
				}
				if change.Method == mcp.NotificationToolsChanged {
					changes++
				}
				gap = gap || change.Gap
				if gap || changes == 2 { // a gap comes before the second change
					cancel()
				}
			}
			if gap != test.gap {
				t.Errorf("a gap: %v", gap)
			}
			if n := b.count(mcpwire.MethodInitialize); n != 1 {
				t.Errorf("%d sessions", n)
			}
		})
	}
}
