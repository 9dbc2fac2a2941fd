package hub

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"
)

// Event is something that happened to an upstream.
type Event struct {
	Time     time.Time
	Upstream string
	Kind     EventKind
	// State is set in events of kind StateChanged.
	State State
	// Changed are the kinds of things of which the catalog has other ones now, in events of kind CatalogChanged.
	Changed []Kind
	// Line is what the server wrote to stderr, in events of kind Wrote.
	Line string
	// Missed counts the events before this one that the listener was too slow for.
	Missed int
}

// EventKind says what an event is about.
type EventKind int

const (
	StateChanged EventKind = iota
	CatalogChanged
	Wrote
)

// maxEvents bounds the events that wait for a listener: beyond it, the oldest is dropped.
const maxEvents = 4096

// bus carries events to those who listen. It never waits for them.
type bus struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
}

type listener struct {
	kinds  []EventKind // nil: all
	queue  []Event
	missed int
	some   chan struct{} // holds a token while events may wait
}

func (b *bus) publish(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.listeners {
		if l.kinds == nil || slices.Contains(l.kinds, e.Kind) {
			l.put(e)
		}
	}
}

// put adds an event; the bus is locked.
func (l *listener) put(e Event) {
	if len(l.queue) == maxEvents {
		l.queue = l.queue[1:]
		l.missed++
	}
	l.queue = append(l.queue, e)
	select {
	case l.some <- struct{}{}:
	default:
	}
}

// Events iterates over what happens from the call on, until ctx ends: all of it, or what is of the given kinds. A listener that is too slow misses the oldest events
// and is told how many.
func (h *Hub) Events(ctx context.Context, kinds ...EventKind) iter.Seq[Event] {
	l := &listener{kinds: kinds, some: make(chan struct{}, 1)}
	h.bus.mu.Lock()
	h.bus.listeners[l] = struct{}{}
	h.bus.mu.Unlock()
	context.AfterFunc(ctx, func() { h.bus.leave(l) })
	return func(yield func(Event) bool) {
		defer h.bus.leave(l)
		for {
			for _, e := range h.bus.take(l) {
				if ctx.Err() != nil || !yield(e) {
					return
				}
			}
			select {
			case <-l.some:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (b *bus) take(l *listener) []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := l.queue
	if len(events) > 0 {
		events[0].Missed, l.missed = l.missed, 0
	}
	l.queue = nil
	return events
}

func (b *bus) leave(l *listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, l)
}
