package client

import (
	"fmt"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

func updated(n int) Change {
	return Change{Method: mcp.NotificationResourceUpdated, URI: fmt.Sprintf("test://%d", n)}
}

// Changes come in order, however many wait, and received changes take no room.
func TestChangeQueueOrder(t *testing.T) {
	q := newChangeQueue()
	put, taken := 0, 0
	for round := range 5000 {
		for range round % 4 {
			q.addChange(updated(put))
			put++
		}
		for range min(round%3, put-taken) {
			if c, ok := q.nextChange(); !ok || c.URI != updated(taken).URI {
				t.Fatalf("%+v, %v, want %s", c, ok, updated(taken).URI)
			}
			taken++
		}
		for put-taken > maxChanges-4 {
			q.nextChange()
			taken++
		}
	}
	q.endChanges()
	for ; taken < put; taken++ {
		if c, ok := q.nextChange(); !ok || c.URI != updated(taken).URI {
			t.Fatalf("after the end: %+v, %v, want %s", c, ok, updated(taken).URI)
		}
	}
	if c, ok := q.nextChange(); ok || len(q.queued) > 0 {
		t.Errorf("after all: %+v, %v, %d are remembered", c, ok, len(q.queued))
	}
	if cap(q.waiting) > 2*maxChanges {
		t.Errorf("room for %d is kept", cap(q.waiting))
	}
}

// A change at a time takes no memory, and it wakes the reader, as the end does.
func TestChangeQueueAllocations(t *testing.T) {
	q := newChangeQueue()
	change := Change{Method: mcp.NotificationToolsChanged}
	q.addChange(change)
	q.nextChange()
	if n := testing.AllocsPerRun(100, func() { q.addChange(change); q.nextChange() }); n > 0 {
		t.Errorf("a change takes %v allocations", n)
	}
	over := make(chan bool)
	go func() {
		_, first := q.nextChange()
		_, second := q.nextChange()
		over <- first && !second
	}()
	q.addChange(change)
	q.endChanges()
	if !<-over {
		t.Error("the waiting loop got something else")
	}
}
