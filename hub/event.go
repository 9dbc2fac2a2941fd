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
	StderrWritten
)

// maxEvents bounds the events that wait for a listener: beyond it, the oldest is dropped.
const maxEvents = 4096

// eventBus carries events to those who listen. It never waits for them.
type eventBus struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
}

type listener struct {
	kinds  []EventKind // nil: all
	queue  []Event
	missed int
	wake   chan struct{} // holds a token while events may wait
}

func (b *eventBus) publish(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.listeners {
		if l.kinds == nil || slices.Contains(l.kinds, e.Kind) {
			l.enqueue(e)
		}
	}
}

// enqueue adds an event; the bus is locked.
func (l *listener) enqueue(e Event) {
	if len(l.queue) == maxEvents {
		l.queue = l.queue[1:]
		l.missed++
	}
	l.queue = append(l.queue, e)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Events iterates over what happens from the call on, until ctx ends: all of it, or what is of the given kinds. A listener that is too slow misses the oldest events
// and is told how many.
func (h *Hub) Events(ctx context.Context, kinds ...EventKind) iter.Seq[Event] {
	l := &listener{kinds: kinds, wake: make(chan struct{}, 1)}
	h.bus.mu.Lock()
	h.bus.listeners[l] = struct{}{}
	h.bus.mu.Unlock()
	context.AfterFunc(ctx, func() { h.bus.removeListener(l) })
	return func(yield func(Event) bool) {
		defer h.bus.removeListener(l)
		for {
			for _, e := range h.bus.takeEvents(l) {
				if ctx.Err() != nil || !yield(e) {
					return
				}
			}
			select {
			case <-l.wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (b *eventBus) takeEvents(l *listener) []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := l.queue
	if len(events) > 0 {
		events[0].Missed, l.missed = l.missed, 0
	}
	l.queue = nil
	return events
}

func (b *eventBus) removeListener(l *listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, l)
}
