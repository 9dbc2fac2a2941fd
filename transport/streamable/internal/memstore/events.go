// Package memstore keeps the events and the session records of legacy sessions in the memory of one
// process. Package streamable uses it unless the options name other stores, whose interfaces it
// describes.
package memstore

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/shrinkmap"
)

// ErrEventGone is the error of [Events.After] for an event that is not kept.
var ErrEventGone = errors.New("the event is not known any more")

// EventLimits bound a [Events]. Zero values mean the defaults.
type EventLimits struct {
	MaxBytes  int           // of all streams together, default 16 MiB
	MaxEvents int           // of one stream, default 1,024
	MaxAge    time.Duration // default ten minutes
	// Quota counts the bytes of each client beside its messages that wait. Events make room for
	// those. nil counts nothing.
	Quota *quota.Quota
}

// Events is an event store in the memory of one process.
type Events struct {
	limits EventLimits

	mu         sync.Mutex
	streams    map[string]*eventStream
	clients    shrinkmap.Map[quota.Client, *clientEvents]
	byAge      list.List // of *event, oldest first
	bytes      int
	lastNumber uint64 // the highest number of all events
}

type eventStream struct {
	name   string
	client *clientEvents
	next   uint64   // the number of the next event
	events []*event // oldest first, never empty
}

type event struct {
	stream   *eventStream
	number   uint64
	data     []byte
	storedAt time.Time
	element  *list.Element // in Events.byAge
	ofClient *list.Element // in clientEvents.byAge
}

// NewEvents returns a store in the memory of this process. Each call forgets the oldest
// events beyond the limits, so the store needs no goroutine and no Close.
func NewEvents(limits EventLimits) *Events {
	limits.MaxBytes = cmp.Or(limits.MaxBytes, 16<<20)
	limits.MaxEvents = cmp.Or(limits.MaxEvents, 1024)
	limits.MaxAge = cmp.Or(limits.MaxAge, 10*time.Minute)
	return &Events{limits: limits, streams: map[string]*eventStream{}}
}

// Append keeps an event of a stream and returns its id. The client that ctx names pays for it. If
// the event exceeds a limit of the quota, the error is a [quota.LimitError].
func (m *Events) Append(ctx context.Context, stream string, data []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[stream]
	if s == nil {
		// Numbers begin with the time in microseconds, because sessions outlive processes. They
		// must also exceed the numbers of a forgotten stream of that name.
		s = &eventStream{name: stream, next: max(uint64(time.Now().UnixMicro()), m.lastNumber+1)}
		s.client = m.clientOf(ctx)
		m.streams[stream] = s
	}
	e := &event{stream: s, number: s.next, data: data, storedAt: time.Now()}
	s.next++
	m.lastNumber = max(m.lastNumber, e.number)
	s.events = append(s.events, e)
	e.element = m.byAge.PushBack(e)
	s.client.addEvent(e)
	m.bytes += e.memorySize()
	if len(s.events) > m.limits.MaxEvents {
		m.forgetOldest(s.events[0])
	}
	m.evictExpired()
	if err := m.count(s.client); err != nil {
		return "", err
	}
	return eventID(stream, e.number), nil
}

// memorySize estimates the memory of an event and its share of its stream, in bytes.
func (e *event) memorySize() int {
	const overhead = 256
	return overhead + cap(e.data)
}

// evictExpired forgets events beyond the limits: old ones, and the oldest of the client with the
// most bytes. m.mu is held.
func (m *Events) evictExpired() {
	for front := m.byAge.Front(); front != nil && time.Since(front.Value.(*event).storedAt) > m.limits.MaxAge; front = m.byAge.Front() {
		m.forgetOldest(front.Value.(*event))
	}
	for m.bytes > m.limits.MaxBytes {
		m.forgetOldest(m.largestClient().oldest())
	}
}

// forgetOldest removes e, the oldest event of its stream, and the stream if it has no other. m.mu
// is held.
func (m *Events) forgetOldest(e *event) {
	m.byAge.Remove(e.element)
	m.bytes -= e.memorySize()
	s := e.stream
	s.events[0] = nil // the array is still used
	if s.events = s.events[1:]; len(s.events) == 0 {
		delete(m.streams, s.name)
	}
	s.client.removeEvent(e)
	if s.client.byAge.Len() == 0 {
		m.forgetClient(s.client)
		return
	}
	_ = s.client.resizeLease() // a smaller number does not fail
}

// After iterates over the events with data after the one with the given id.
func (m *Events) After(_ context.Context, id string) (iter.Seq2[string, []byte], error) {
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
	var behind []*event // an event does not change, and may be read without the lock
	for _, e := range s.events {
		if e.number > number && e.data != nil {
			behind = append(behind, e)
		}
	}
	return func(yield func(string, []byte) bool) {
		for _, e := range behind {
			if !yield(eventID(stream, e.number), e.data) {
				return
			}
		}
	}, nil
}

// Stream returns the stream that an id names. ok is false if the id is malformed.
func (m *Events) Stream(id string) (stream string, ok bool) {
	stream, _, ok = parseEventID(id)
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
