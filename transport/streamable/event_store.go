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

// EventStore keeps the events that legacy streams have sent, so that a client with a lost
// connection can resume, at any replica that shares the store. Its methods are called concurrently
// and may block; the stream waits for them. If Append fails, the client cannot resume from that
// event; nothing else is lost.
type EventStore interface {
	// Append keeps an event of a stream and returns its id. Ids are unique among all streams,
	// contain only visible ASCII characters, and also name the stream. data is nil for an event
	// whose only use is its id. The store may keep data but must not change it.
	Append(ctx context.Context, stream string, data []byte) (id string, err error)
	// After returns the events of the same stream after the one with the given id, in order and
	// skipping events without data. The id comes from the client. If it is unknown or forgotten,
	// the error wraps [ErrEventGone].
	After(ctx context.Context, id string) ([]StoredEvent, error)
	// Stream returns the stream that an id names; the event need not exist. ok is false if id is
	// malformed.
	Stream(id string) (stream string, ok bool)
}

// StoredEvent is an event that was sent and can be sent again.
type StoredEvent struct {
	ID   string
	Data []byte
}

// ErrEventGone is the error of [EventStore] for an event that it does not keep, or keeps no longer.
var ErrEventGone = errors.New("the event is not known any more")

// memoryEventsLimits bound a [memoryEvents]. Zero values mean the defaults.
type memoryEventsLimits struct {
	maxBytes  int           // of all streams together, default 16 MiB
	maxEvents int           // of one stream, default 1,024
	maxAge    time.Duration // default ten minutes
}

// memoryEvents is an [EventStore] in the memory of one process.
type memoryEvents struct {
	limits memoryEventsLimits

	mu         sync.Mutex
	streams    map[string]*memoryStream
	byAge      list.List // of *memoryEvent, oldest first
	bytes      int
	lastNumber uint64 // the highest number of all events
}

type memoryStream struct {
	name   string
	next   uint64         // the number of the next event
	events []*memoryEvent // oldest first, never empty
}

type memoryEvent struct {
	stream   *memoryStream
	number   uint64
	data     []byte
	storedAt time.Time
	element  *list.Element
}

// newMemoryEvents returns a store in the memory of this process. Each call forgets the oldest
// events beyond the limits, so the store needs no goroutine and no Close.
func newMemoryEvents(limits memoryEventsLimits) *memoryEvents {
	m := &memoryEvents{limits: limits, streams: map[string]*memoryStream{}}
	setDefault(&m.limits.maxBytes, 16<<20)
	setDefault(&m.limits.maxEvents, 1024)
	setDefault(&m.limits.maxAge, 10*time.Minute)
	return m
}

func (m *memoryEvents) Append(_ context.Context, stream string, data []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[stream]
	if s == nil {
		// Numbers begin with the time in microseconds, because sessions outlive processes. They
		// must also exceed those of a forgotten stream with the same name.
		s = &memoryStream{name: stream, next: max(uint64(time.Now().UnixMicro()), m.lastNumber+1)}
		m.streams[stream] = s
	}
	e := &memoryEvent{stream: s, number: s.next, data: data, storedAt: time.Now()}
	s.next++
	m.lastNumber = max(m.lastNumber, e.number)
	s.events = append(s.events, e)
	e.element = m.byAge.PushBack(e)
	m.bytes += e.memorySize()
	if len(s.events) > m.limits.maxEvents {
		m.forgetOldest(s.events[0])
	}
	m.evictExpired()
	return eventID(stream, e.number), nil
}

// memorySize estimates the memory of an event and its share of its stream, in bytes.
func (e *memoryEvent) memorySize() int {
	const overhead = 256
	return overhead + cap(e.data)
}

// evictExpired forgets events beyond the limits, oldest first. m.mu is held.
func (m *memoryEvents) evictExpired() {
	for front := m.byAge.Front(); front != nil; front = m.byAge.Front() {
		e := front.Value.(*memoryEvent)
		if m.bytes <= m.limits.maxBytes && time.Since(e.storedAt) <= m.limits.maxAge {
			return
		}
		m.forgetOldest(e)
	}
}

// forgetOldest removes e, the oldest event of its stream, and the stream if it has no other. m.mu
// is held.
func (m *memoryEvents) forgetOldest(e *memoryEvent) {
	m.byAge.Remove(e.element)
	m.bytes -= e.memorySize()
	s := e.stream
	s.events[0] = nil // the array is still used
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
