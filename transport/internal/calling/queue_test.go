package calling

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

func note(method string, n int) mcp.Notification {
	return mcp.Notification{Method: method, Params: fmt.Appendf(nil, `{"n":%d}`, n)}
}

func delivered(q *notificationQueue) (got []string) {
	q.deliverAll(func(n mcp.Notification) { got = append(got, n.Method+string(n.Params)) })
	return got
}

// When a queue is full, what repeats another is dropped, else the oldest.
func TestQueueOverflow(t *testing.T) {
	q := &notificationQueue{wake: make(chan struct{}, 1)}
	for range 2 { // delivered notifications leave room
		for i := range maxQueue {
			q.push(note("a", i))
		}
		q.push(note("a", 5))                  // is there already
		q.push(mcp.Notification{Method: "a"}) // is not: 0 goes
		q.push(note("b", 5))                  // is not either: 1 goes
		q.push(note("b", 5))                  // is there by now
		got := delivered(q)
		if len(got) != maxQueue || got[0] != `a{"n":2}` || got[maxQueue-3] != fmt.Sprintf(`a{"n":%d}`, maxQueue-1) || got[maxQueue-2] != "a" || got[maxQueue-1] != `b{"n":5}` {
			t.Errorf("%d: %s … %s", len(got), got[:3], got[len(got)-3:])
		}
		if len(delivered(q)) != 0 {
			t.Error("delivered twice")
		}
	}
}

// A queue that is not full keeps everything, repetitions too.
func TestQueueKeepsRepetitions(t *testing.T) {
	q := &notificationQueue{wake: make(chan struct{}, 1)}
	for range 3 {
		q.push(note("a", 1))
	}
	if got := strings.Join(delivered(q), " "); got != `a{"n":1} a{"n":1} a{"n":1}` {
		t.Errorf("got %s", got)
	}
}

// A queue that becomes inline passes on what waits, and then each notification at once, until it
// stops.
func TestQueueInline(t *testing.T) {
	q := notificationQueue{wake: make(chan struct{}, 1)}
	q.push(note("a", 0))
	var got []string
	q.startInline(func(n mcp.Notification) { got = append(got, string(n.Params)) })
	q.push(note("a", 1))
	q.push(note("a", 1)) // equal ones are not joined: the receiver may do so
	q.stopInline()
	q.push(note("a", 2))
	want := []string{`{"n":0}`, `{"n":1}`, `{"n":1}`}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Notifications that arrive during a delivery are delivered after it, once.
func TestQueueDeliversWhatComesMeanwhile(t *testing.T) {
	q := &notificationQueue{wake: make(chan struct{}, 1)}
	q.push(note("a", 0))
	var got []string
	q.deliverAll(func(n mcp.Notification) {
		got = append(got, string(n.Params))
		if len(got) < 5 {
			q.push(note("a", len(got)))
		}
	})
	if s := strings.Join(got, ""); s != `{"n":0}{"n":1}{"n":2}{"n":3}{"n":4}` {
		t.Errorf("got %s", s)
	}
}

func TestQueueWakes(t *testing.T) {
	q := &notificationQueue{wake: make(chan struct{}, 1)}
	const sent = 5000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range sent {
			q.push(note("a", i))
		}
		q.push(mcp.Notification{Method: "end"})
	})
	last, n := -1, 0
	for end := false; !end; {
		<-q.wake
		q.deliverAll(func(note mcp.Notification) {
			if end = note.Method == "end"; end {
				return
			}
			var i int
			fmt.Sscanf(string(note.Params), `{"n":%d}`, &i)
			if i <= last {
				t.Errorf("%d comes behind %d", i, last)
			}
			last = i
			n++
		})
	}
	wg.Wait()
	if last != sent-1 || n > sent {
		t.Errorf("%d were delivered, the last is %d", n, last)
	}
}
