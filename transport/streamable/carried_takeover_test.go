package streamable_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A client loses its stream, and something changes before it resumes at another replica. The first
// replica may still hold the change back: to join it with others, or while its subscription gets
// another goroutine.
func TestChangeBeforeResume(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			all, in, last := watchAtFirst(t)
			awaitConns(t, all[0], 0)
			time.Sleep(delay)
			all[0].server.Updated(watchedURI)
			expectUpdate(t, all[1], in, last)
		})
	}
}

// The same, if the first replica stores the change after the other one has read the store.
func TestChangeStoredAfterResume(t *testing.T) {
	t.Parallel()
	all, in, last, events := watchWithGate(t)
	all[1].endpoint.SetCarrierWait(2 * polltest.Limit)
	lines, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	awaitConns(t, all[1], 1)
	close(events.open)
	expectOnlyUpdate(t, all[1], lines)
}

// A client that has got no event at a replica can leave it again without missing a change.
func TestChangeAfterSilentStay(t *testing.T) {
	t.Parallel()
	all, in, last := watchAtFirst(t)
	_, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	awaitConns(t, all[1], 1)
	polltest.Until(t, "the first replica says that it has carried the stream", func() bool { return all[1].endpoint.AwaitedCarriers() == 0 })
	cut()
	awaitConns(t, all[1], 0)
	time.Sleep(3 * streamable.HandoverOverlap)
	all[1].server.Updated(watchedURI)
	expectUpdate(t, all[0], in, last)
}

// A client goes to another replica and comes back at once with an event of that replica, before the
// first one has passed on a change that was stored before that event.
func TestReturnWithLaterEvent(t *testing.T) {
	t.Parallel()
	all, in, last, events := watchWithGate(t)
	lines, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	awaitConns(t, all[1], 1)
	close(events.open)
	addTool(all[1], "later")
	id, _ := strings.CutPrefix(until(t, lines, "id:"), "id:")
	cut()
	back, cut := stream(t, all[0].url, append(in, "Last-Event-ID", strings.TrimSpace(id))...)
	defer cut()
	for !strings.Contains(until(t, back, "data:"), "resources/updated") {
	}
}

// A replica that shuts down ends its subscription at once, also while a call runs. The next replica
// reports the changes since then.
func TestResumeWhileCarrierShutsDown(t *testing.T) {
	t.Parallel()
	all, in, last := watchAtFirst(t)
	lines, cut := stream(t, all[0].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	awaitConns(t, all[0], 1)
	called := make(chan struct{})
	go func() { defer close(called); send(t, "POST", all[0].url, stepsCall, in...) }()
	all[0].steps <- "one" // the call runs
	ended := make(chan error, 1)
	go func() { ended <- all[0].endpoint.Shutdown(t.Context()) }()
	for range lines {
	}
	addTool(all[0], "later")
	resumed, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	for !strings.Contains(until(t, resumed, "data:"), "tools/list_changed") {
	}
	all[0].steps <- "end"
	<-called
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A client that does not send Last-Event-ID cannot get the change that waits at another replica
// from the store. That replica passes it on.
func TestReconnectWithoutLastEventID(t *testing.T) {
	t.Parallel()
	all, in, _ := watchAtFirst(t)
	awaitConns(t, all[0], 0)
	time.Sleep(3 * streamable.HandoverOverlap)
	all[0].server.Updated(watchedURI)
	awaitItems(t, all[0], all[1])
	lines, cut := stream(t, all[1].url, in...)
	defer cut()
	expectOnlyUpdate(t, all[1], lines)
}

// A client that does not send Last-Event-ID comes back to its first replica. If the second one has
// ended, the first knows that it has missed changes.
func TestReturnWithoutLastEventID(t *testing.T) {
	t.Parallel()
	for _, hasEnded := range []bool{false, true} {
		t.Run(fmt.Sprint("the other has ended: ", hasEnded), func(t *testing.T) {
			t.Parallel()
			all, in, _ := watchAtFirst(t)
			_, cut := stream(t, all[1].url, in...)
			awaitConns(t, all[1], 1)
			polltest.Until(t, "the first replica has ended its subscription", func() bool { return all[0].endpoint.Carries() == 0 })
			if hasEnded {
				all[1].cluster.Close() // as if the process had been killed, for the others
			}
			cut()
			awaitConns(t, all[1], 0)
			if !hasEnded {
				all[0].endpoint.SetCarrierWait(2 * polltest.Limit)
			}
			lines, cut := stream(t, all[0].url, in...)
			defer cut()
			if hasEnded {
				for !strings.Contains(until(t, lines, "data:"), "resources/updated") {
				}
				return
			}
			awaitConns(t, all[0], 1)
			polltest.Until(t, "the second replica says that it has carried the stream", func() bool { return all[0].endpoint.AwaitedCarriers() == 0 })
			addTool(all[0], "later")
			if got := until(t, lines, "data: {"); !strings.Contains(got, "tools/list_changed") {
				t.Errorf("before the change: %s", got)
			}
		})
	}
}

// A resource changes twice while the client is away. The client has read the event of the first
// change at another replica, and hears of the second one at a third.
func TestSecondChangeBeforeResume(t *testing.T) {
	t.Parallel()
	all, in, last := watchAtFirst(t)
	awaitConns(t, all[0], 0)
	time.Sleep(3 * streamable.HandoverOverlap)
	all[0].server.Updated(watchedURI)
	var read string
	polltest.Until(t, "the first change is stored", func() bool {
		events, err := all[1].cluster.After(t.Context(), last)
		if err != nil {
			return false
		}
		for id := range events {
			read = id
		}
		return read != ""
	})
	all[0].server.Updated(watchedURI)
	time.Sleep(streamable.HandoverOverlap) // the first replica holds back the change for less than that
	expectUpdate(t, all[1], in, read)
}

// watchWithGate calls watchAtFirst, and makes a change that the first replica cannot store before
// the test closes events.open.
func watchWithGate(t *testing.T) (all []*clusterReplica, in []string, last string, events *gatedEvents) {
	events = newGatedEvents(nil)
	all, in, last = watchAtFirst(t, func(c *cluster.Cluster) streamable.EventStore {
		if events.EventStore != nil {
			return c
		}
		events.EventStore = c
		return events
	})
	awaitConns(t, all[0], 0)
	time.Sleep(3 * streamable.HandoverOverlap)
	close(events.shut)
	all[0].server.Updated(watchedURI)
	polltest.Until(t, "the change is being stored", func() bool { return events.waiting.Load() > 0 })
	return all, in, last, events
}

func addTool(to *clusterReplica, name string) {
	server.Tool(to.server, name, "New.", func(context.Context, struct{}) (string, error) { return "", nil })
}

// awaitConns waits until the session streams of a replica have n connections.
func awaitConns(t *testing.T, r *clusterReplica, n int) {
	t.Helper()
	polltest.Until(t, "the connections of the stream", func() bool { return r.endpoint.SessionConns() == n })
}

// expectUpdate resumes a stream at a replica, which must tell of an update.
func expectUpdate(t *testing.T, at *clusterReplica, in []string, last string) {
	t.Helper()
	at.endpoint.SetCarrierWait(2 * polltest.Limit)
	lines, cut := stream(t, at.url, append(in, "Last-Event-ID", last)...)
	defer cut()
	expectOnlyUpdate(t, at, lines)
}

// expectOnlyUpdate fails the test unless a replica tells of an update, and of nothing else before a
// change of the tools that comes later. It may tell of the update twice, since both replicas may
// have heard of it.
func expectOnlyUpdate(t *testing.T, at *clusterReplica, lines <-chan string) {
	t.Helper()
	if got := until(t, lines, "data: {"); !strings.Contains(got, "resources/updated") {
		t.Errorf("the change: %s", got)
	}
	polltest.Until(t, "the replica before says that it has carried the stream", func() bool { return at.endpoint.AwaitedCarriers() == 0 })
	addTool(at, "later")
	for {
		switch got := until(t, lines, "data: {"); {
		case strings.Contains(got, "tools/list_changed"):
			return
		case !strings.Contains(got, "resources/updated"):
			t.Errorf("after the change: %s", got)
		}
	}
}

// A replica that does not carry the stream any more stores no changes for it: the other one does.
func TestReleasedStreamStoresNothing(t *testing.T) {
	t.Parallel()
	all, in, last := watchAtFirst(t)
	lines, cut := stream(t, all[1].url, append(in, "Last-Event-ID", last)...)
	defer cut()
	awaitConns(t, all[1], 1)
	polltest.Until(t, "the first replica has ended its subscription", func() bool { return all[0].endpoint.Carries() == 0 })
	all[0].server.Updated(watchedURI)
	if got := until(t, lines, "data: {"); !strings.Contains(got, "resources/updated") {
		t.Errorf("the change: %s", got)
	}
	awaitItems(t, all[1], all[0])
	time.Sleep(streamable.HandoverOverlap) // the first replica holds back a change for less than that
	events, err := all[1].cluster.After(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	var stored []string
	for _, data := range events {
		stored = append(stored, string(data))
	}
	if len(stored) != 1 {
		t.Errorf("stored: %q", stored)
	}
}
