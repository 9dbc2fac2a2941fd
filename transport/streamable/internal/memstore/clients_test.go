package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/transport/streamable/internal/memstore"
)

// appendFor keeps an event of a stream of a client.
func appendFor(s *memstore.Events, client, stream string, size int) (string, error) {
	return s.Append(quota.WithClient(context.Background(), quota.Client{Name: client}), stream, make([]byte, size))
}

func keepFor(t *testing.T, s *memstore.Events, client, stream string, size int) string {
	t.Helper()
	id, err := appendFor(s, client, stream, size)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func countedBytes(q *quota.Quota) int64 { bytes, _, _ := q.Used(); return bytes }

// A client with many or large events costs others none of theirs.
func TestEventsOfAnotherClient(t *testing.T) {
	s := memstore.NewEvents(memstore.EventLimits{MaxBytes: 1 << 20})
	first := keepFor(t, s, "small", "a", 0)
	keepFor(t, s, "small", "a", 100<<10)
	for i := range 40 {
		keepFor(t, s, "large", fmt.Sprint("s", i), 100<<10)
	}
	if got := behind(t, s, first); len(got) != 100<<10 {
		t.Errorf("%.100q is left of the client with few events", got)
	}
}

// Events count for their client, up to its limit. Beyond that its oldest go.
func TestEventsCountForTheirClient(t *testing.T) {
	q := quota.New(quota.Limits{ClientBytes: 1 << 20})
	s := memstore.NewEvents(memstore.EventLimits{Quota: q})
	first := keepFor(t, s, "one", "a", 0)
	for range 40 {
		keepFor(t, s, "one", "a", 100<<10)
	}
	if n := countedBytes(q); n < 900<<10 || n > 1<<20 {
		t.Errorf("%d bytes are counted, want about 1 MiB", n)
	}
	if got := behind(t, s, first); got != memstore.ErrEventGone.Error() {
		t.Errorf("the oldest event: %.100q", got)
	}
	var limit *quota.LimitError
	if _, err := appendFor(s, "one", "a", 2<<20); !errors.As(err, &limit) || !strings.Contains(err.Error(), "(clientBytes)") {
		t.Errorf("an event above the limit: %v", err)
	}
	if n := countedBytes(q); n != 0 {
		t.Errorf("%d bytes are counted without an event", n)
	}
	keepFor(t, s, "one", "a", 100<<10)
}

// lost is a connection that is cut off.
type lost struct{ t *testing.T }

func (l lost) CutOff(error) { l.t.Error("a connection was cut off") }

// Events make room for messages that wait, and cut off no connection.
func TestEventsMakeRoom(t *testing.T) {
	q := quota.New(quota.Limits{ClientBytes: 1 << 20})
	s := memstore.NewEvents(memstore.EventLimits{Quota: q})
	id := keepFor(t, s, "one", "a", 0)
	keepFor(t, s, "one", "a", 700<<10)
	other := keepFor(t, s, "two", "b", 0)
	keepFor(t, s, "two", "b", 700<<10)
	waiting := quota.Account{Quota: q, Client: quota.Client{Name: "one"}}.NewLease(lost{t})
	if err := waiting.Resize(800 << 10); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the events are forgotten", func() bool { return behind(t, s, id) == memstore.ErrEventGone.Error() })
	if got := behind(t, s, other); len(got) != 700<<10 {
		t.Errorf("the events of another client: %.100q", got)
	}
	if _, err := appendFor(s, "one", "a", 700<<10); err == nil {
		t.Error("an event took room of a message that waits")
	}
	keepFor(t, s, "one", "a", 100<<10)
	waiting.Release()
	keepFor(t, s, "one", "a", 700<<10)
}

// A store that is not used any more counts nothing.
func TestForgottenStoreCountsNothing(t *testing.T) {
	q := quota.New(quota.Limits{})
	keepFor(t, memstore.NewEvents(memstore.EventLimits{Quota: q}), "one", "a", 1<<20)
	polltest.Until(t, "nothing is counted", func() bool { runtime.GC(); return countedBytes(q) == 0 })
}
