package hub

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"
)

// Event is a change of an upstream.
type Event struct {
	// Time is when the event happened, Upstream the name of the upstream, and Kind the subject.
	Time     time.Time
	Upstream string
	Kind     EventKind
	// State is the new state, in events of kind [StateChanged].
	State State
	// Changed lists the methods of the notifications that announce the change to MCP clients, such
	// as [mcp.NotificationToolsChanged], in events of kind [CatalogChanged].
	Changed []string
	// Line is a line of the server's stderr, in events of kind [StderrWritten].
	Line string
	// Missed counts the events that the listener lost before this one, because it was too slow.
	Missed int
}

// EventKind is the subject of an event.
type EventKind int

const (
	// StateChanged: the upstream has entered another state.
	StateChanged EventKind = iota
	// CatalogChanged: the upstream's items in the catalog have changed.
	CatalogChanged
	// StderrWritten: the server has written a line to stderr.
	StderrWritten
)

// maxEvents limits the events that wait for a listener. Beyond it, the oldest is dropped.
const maxEvents = 4096

// eventBus delivers events to listeners. Publishing never blocks.
type eventBus struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
}

// listener is one iteration of [Hub.Events].
type listener struct {
	kinds  []EventKind // nil for all
	queue  []Event
	missed int
	wake   chan struct{} // holds a token while events may wait
}

// publish queues an event for each listener of its kind.
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

// enqueue adds an event, and drops the oldest if the queue is full. The bus is locked.
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

// Events iterates over events of the given kinds, or of all kinds, from the call of Events until
// ctx ends. A listener that is too slow loses the oldest of 4096 waiting events: see
// [Event].Missed.
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

// takeEvents returns and clears the queue of a listener.
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

// removeListener ends a listener.
func (b *eventBus) removeListener(l *listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, l)
}
