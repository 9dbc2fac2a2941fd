package streamable

import (
	"container/list"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
)

// EventStore keeps what streams of legacy sessions have sent, so that a client whose connection was cut can go on where it
// was, at any replica that shares the store. It is called concurrently. Its methods may take their time, which the stream
// waits for, and fail: then the client cannot come back to that event, and nothing else is lost.
type EventStore interface {
	// Append keeps an event of a stream and returns its id, which names the stream too, is no other event's, and has no
	// characters but visible ASCII. Data is nil for an event that only gives the client something to come back to. Data is
	// also being sent: the store may keep it, but not change it.
	Append(ctx context.Context, stream string, data []byte) (id string, err error)
	// After returns the events of the same stream behind the one with the id, in order, without those that have no data.
	// The error wraps [ErrEventGone] where they are not known any more, or never were: the id comes from the client.
	After(ctx context.Context, id string) ([]StoredEvent, error)
	// Stream returns the stream that an id names, without asking whether there is such an event; false for what is no id.
	Stream(id string) (stream string, ok bool)
}

// StoredEvent is an event that was sent.
type StoredEvent struct {
	ID   string
	Data []byte
}

// ErrEventGone is the error for an event that is not kept, or not any more.
var ErrEventGone = errors.New("the event is not known any more")

// MemoryEventsOptions bound what [NewMemoryEvents] keeps. Zero values stand for the defaults.
type MemoryEventsOptions struct {
	MaxBytes  int           // of all streams together, default 16 MiB
	MaxEvents int           // of one stream, default 1,024
	MaxAge    time.Duration // default ten minutes
}

// memoryEvents is a store of one process.
type memoryEvents struct {
	opts MemoryEventsOptions

	mu         sync.Mutex
	streams    map[string]*memoryStream
	byAge      list.List // of *keptEvent, oldest first
	bytes      int
	lastNumber uint64 // the highest number of any event
}

type memoryStream struct {
	name   string
	next   uint64         // number of the next event
	events []*memoryEvent // oldest first, and at least one
}

type memoryEvent struct {
	stream   *memoryStream
	number   uint64
	data     []byte
	storedAt time.Time
	element  *list.Element
}

// NewMemoryEvents returns a store in the memory of this process. What is beyond its limits is forgotten, oldest first, at
// the next call; it needs no closing.
func NewMemoryEvents(opts ...MemoryEventsOptions) EventStore {
	m := &memoryEvents{streams: map[string]*memoryStream{}}
	if len(opts) > 0 {
		m.opts = opts[0]
	}
	setDefault(&m.opts.MaxBytes, 16<<20)
	setDefault(&m.opts.MaxEvents, 1024)
	setDefault(&m.opts.MaxAge, 10*time.Minute)
	return m
}

func (m *memoryEvents) Append(_ context.Context, stream string, data []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[stream]
	if s == nil {
		// The time, as sessions outlive processes; and numbers of a stream that was forgotten must not come again.
		s = &memoryStream{name: stream, next: max(uint64(time.Now().UnixMicro()), m.lastNumber+1)}
		m.streams[stream] = s
	}
	e := &memoryEvent{stream: s, number: s.next, data: data, storedAt: time.Now()}
	s.next++
	m.lastNumber = max(m.lastNumber, e.number)
	s.events = append(s.events, e)
	e.element = m.byAge.PushBack(e)
	m.bytes += e.memorySize()
	if len(s.events) > m.opts.MaxEvents {
		m.forgetOldest(s.events[0])
	}
	m.evictExpired()
	return eventID(stream, e.number), nil
}

// memorySize is about what an event takes, with its share of its stream.
func (e *memoryEvent) memorySize() int {
	const overhead = 256
	return overhead + cap(e.data)
}

// evictExpired forgets what is too old or too much; m.mu is held.
func (m *memoryEvents) evictExpired() {
	for front := m.byAge.Front(); front != nil; front = m.byAge.Front() {
		e := front.Value.(*memoryEvent)
		if m.bytes <= m.opts.MaxBytes && time.Since(e.storedAt) <= m.opts.MaxAge {
			return
		}
		m.forgetOldest(e)
	}
}

// forgetOldest drops the oldest event of a stream, and the stream with its last; m.mu is held.
func (m *memoryEvents) forgetOldest(e *memoryEvent) {
	m.byAge.Remove(e.element)
	m.bytes -= e.memorySize()
	s := e.stream
	s.events[0] = nil // the array stays
	if s.events = s.events[1:]; len(s.events) == 0 {
		delete(m.streams, s.name)
	}
}

func (m *memoryEvents) After(_ context.Context, id string) ([]StoredEvent, error) {
	stream, number, ok := parseEventID(id)
	if !ok {
		return nil, ErrEventGone
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evictExpired()
	s := m.streams[stream]
	if s == nil || number >= s.next || number+1 < s.events[0].number {
		return nil, ErrEventGone
	}
	var behind []StoredEvent
	for _, e := range s.events {
		if e.number > number && e.data != nil {
			behind = append(behind, StoredEvent{eventID(stream, e.number), e.data})
		}
	}
	return behind, nil
}

func (m *memoryEvents) Stream(id string) (string, bool) {
	stream, _, ok := parseEventID(id)
	return stream, ok
}

func eventID(stream string, number uint64) string {
	return stream + "_" + strconv.FormatUint(number, 36)
}

func parseEventID(id string) (stream string, number uint64, ok bool) {
	at := strings.LastIndexByte(id, '_')
	if at <= 0 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(id[at+1:], 36, 64)
	return id[:at], number, err == nil
}
