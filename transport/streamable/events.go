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
// was, at any replica that shares the store. It is called concurrently.
type EventStore interface {
	// Append keeps an event of a stream and returns its id, which names the stream too. Data is nil for an event that only
	// gives the client something to come back to.
	Append(ctx context.Context, stream string, data []byte) (id string, err error)
	// After returns the events of the same stream behind the one with the id, in order, without those that have no data.
	// The error wraps [ErrEventGone] where they are not known any more.
	After(ctx context.Context, id string) ([]StoredEvent, error)
	// Stream returns the stream that an id names; false for what is no id of an event.
	Stream(id string) (stream string, ok bool)
}

// StoredEvent is an event that was sent.
type StoredEvent struct {
	ID   string
	Data []byte
}

// ErrEventGone is the error for an event that is not kept, or not any more.
var ErrEventGone = errors.New("the event is not known any more")

// Limits of [NewMemoryEvents].
const (
	maxEventBytes = 16 << 20 // of all streams
	maxEventsEach = 1024     // of one stream
	maxEventAge   = 10 * time.Minute
)

// memoryEvents is a store of one process.
type memoryEvents struct {
	mu      sync.Mutex
	streams map[string]*keptStream
	all     list.List // of *keptEvent, oldest first
	bytes   int
}

type keptStream struct {
	next   uint64 // number of the next event
	events []*keptEvent
}

type keptEvent struct {
	stream string
	number uint64
	data   []byte
	at     time.Time
}

// NewMemoryEvents returns a store in the memory of this process. It holds at most 16 MiB, 1,024 events of a stream, and for
// at most ten minutes; what is more is forgotten, oldest first.
func NewMemoryEvents() EventStore { return &memoryEvents{streams: map[string]*keptStream{}} }

func (m *memoryEvents) Append(_ context.Context, stream string, data []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[stream]
	if s == nil {
		s = &keptStream{next: uint64(time.Now().UnixMicro())} // numbers of a stream that was forgotten do not come again
		m.streams[stream] = s
	}
	e := &keptEvent{stream, s.next, data, time.Now()}
	s.next++
	s.events = append(s.events, e)
	m.all.PushBack(e)
	m.bytes += e.size()
	m.evict(s)
	return eventID(stream, e.number), nil
}

// size is about what an event takes.
func (e *keptEvent) size() int {
	const overhead = 160
	return overhead + len(e.data)
}

// evict drops what is beyond the limits, oldest first; m.mu is held. The stream that has just grown is s.
func (m *memoryEvents) evict(s *keptStream) {
	if len(s.events) > maxEventsEach {
		m.bytes -= len(s.events[0].data)
		s.events[0].data, s.events = nil, s.events[1:] // its entry in all goes with the others
	}
	for front := m.all.Front(); front != nil; front = m.all.Front() {
		e := front.Value.(*keptEvent)
		if m.bytes <= maxEventBytes && time.Since(e.at) <= maxEventAge {
			return
		}
		m.all.Remove(front)
		m.bytes -= e.size()
		if of := m.streams[e.stream]; of != nil && len(of.events) > 0 && of.events[0] == e {
			if of.events = of.events[1:]; len(of.events) == 0 {
				delete(m.streams, e.stream)
			}
		}
	}
}

func (m *memoryEvents) After(_ context.Context, id string) ([]StoredEvent, error) {
	stream, number, ok := parseEventID(id)
	if !ok {
		return nil, ErrEventGone
	}
	m.mu.Lock()
	defer m.mu.Unlock()
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
