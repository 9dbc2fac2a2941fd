// Package quota bounds the memory that clients can take from a process by not reading and by
// opening more and more: messages that wait, streams and sessions. A [Quota] counts them for the
// process and for each [Client]. Several endpoints may share one.
//
// Small messages are not counted ([Uncounted]), so the usual call costs nothing here.
package quota

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Limits are the bounds of a [Quota]. 0 means the default, and a negative number no limit.
// transport.Limits documents the fields.
type Limits struct {
	Bytes, ClientBytes       int64
	Streams, ClientStreams   int
	Sessions, ClientSessions int
	// The gateway counts questions itself.
	Questions, ClientQuestions int
}

// Defaults of [Limits].
const (
	defaultBytes          = 256 << 20
	defaultClientBytes    = 64 << 20
	defaultStreams        = 10_000
	defaultClientStreams  = 1000
	defaultSessions       = 10_000
	defaultClientSessions = 1000

	defaultQuestions       = 1000
	defaultClientQuestions = 64
)

func (l *Limits) setDefaults() {
	l.Bytes, l.ClientBytes = cmp.Or(l.Bytes, defaultBytes), cmp.Or(l.ClientBytes, defaultClientBytes)
	l.Streams, l.ClientStreams = cmp.Or(l.Streams, defaultStreams), cmp.Or(l.ClientStreams, defaultClientStreams)
	l.Sessions, l.ClientSessions = cmp.Or(l.Sessions, defaultSessions), cmp.Or(l.ClientSessions, defaultClientSessions)
	l.Questions, l.ClientQuestions = cmp.Or(l.Questions, defaultQuestions), cmp.Or(l.ClientQuestions, defaultClientQuestions)
}

// Uncounted is the number of bytes that may wait on one connection without being counted. A socket
// takes about as much at once.
const Uncounted = 16 << 10

// Client is the owner of something that is counted.
type Client struct {
	Name string
	// Anonymous clients are known by their connection only, so Name is an address or a number.
	Anonymous bool
}

// clientKey is the key of a [Client] in a context.
type clientKey struct{}

// WithClient returns a context for the requests of a client. The client takes precedence over their
// principal.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// ClientOf returns the client of a request: the client of the context, or else the principal, or
// else the connection.
func ClientOf(ctx context.Context, principal, connection string) Client {
	if c, ok := ctx.Value(clientKey{}).(Client); ok {
		return c
	}
	if principal != "" {
		return Client{Name: principal}
	}
	return Client{Name: connection, Anonymous: true}
}

// Quota counts what clients hold, and refuses more than the limits. It is safe for concurrent use.
type Quota struct {
	refusals refusalLog
	limits   Limits

	mu       sync.Mutex
	total    usage
	clients  shrinkingMap[Client, usage] // only clients that hold something
	oldest   *Lease                      // the leases, by the time of their last progress
	newest   *Lease
	sessions shrinkingMap[Session, struct{}]
}

// shrinkingMap is a map that frees its memory when it becomes empty. A map itself keeps it.
type shrinkingMap[K comparable, V any] struct {
	entries map[K]V
	largest int // number of entries since entries was made
}

// set adds or replaces an entry.
func (m *shrinkingMap[K, V]) set(key K, value V) {
	if m.entries == nil {
		m.entries = map[K]V{}
	}
	m.entries[key] = value
	m.largest = max(m.largest, len(m.entries))
}

// removeEntry removes an entry.
func (m *shrinkingMap[K, V]) removeEntry(key K) {
	const small = 64 // a map of this size is worth keeping
	delete(m.entries, key)
	if len(m.entries) == 0 && m.largest > small {
		m.entries, m.largest = nil, 0
	}
}

// usage counts the holdings of the process or of a client.
type usage struct {
	bytes             int64
	streams, sessions int
}

// New returns a quota with the limits.
func New(l Limits) *Quota {
	l.setDefaults()
	return &Quota{limits: l}
}

var process = New(Limits{})

// Or returns q, or the quota that the process shares if q is nil.
func Or(q *Quota) *Quota {
	if q == nil {
		return process
	}
	return q
}

// None is without limits, for parts of an endpoint that are counted elsewhere.
var None = New(Limits{-1, -1, -1, -1, -1, -1, -1, -1})

// Limits returns the limits, with the defaults in place.
func (q *Quota) Limits() Limits { return q.limits }

// Used returns what all clients hold at present.
func (q *Quota) Used() (bytes int64, streams, sessions int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total.bytes, q.total.streams, q.total.sessions
}

// changeUsage adds to the holdings of a client. q.mu is held.
func (q *Quota) changeUsage(c Client, by usage) {
	u := q.clients.entries[c]
	for _, of := range []*usage{&u, &q.total} {
		of.bytes += by.bytes
		of.streams += by.streams
		of.sessions += by.sessions
	}
	if u == (usage{}) {
		q.clients.removeEntry(c)
		return
	}
	q.clients.set(c, u)
}

// OpenStream counts a stream of a client, or returns a [LimitError]. The caller must call
// [Quota.CloseStream] at its end.
func (q *Quota) OpenStream(c Client) error { return q.logRefusal(c, q.addStream(c)) }

func (q *Quota) addStream(c Client) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if exceeds(q.clients.entries[c].streams, q.limits.ClientStreams) {
		return streamLimit(q.limits.ClientStreams, true)
	}
	if exceeds(q.total.streams, q.limits.Streams) {
		return streamLimit(q.limits.Streams, false)
	}
	q.changeUsage(c, usage{streams: 1})
	return nil
}

// CloseStream ends a stream that OpenStream has counted.
func (q *Quota) CloseStream(c Client) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changeUsage(c, usage{streams: -1})
}

// exceeds reports whether one more than used is above a limit.
func exceeds(used, limit int) bool { return limit >= 0 && used >= limit }

// Session is a session that is counted. Its methods are called while no lock of the quota is held,
// except IdleSince and Owner, which must not wait.
type Session interface {
	Owner() Client
	// IdleSince returns the time of the last use. isIdle is false while the session is in use.
	IdleSince() (last time.Time, isIdle bool)
	// Evict ends the session to make room for another one.
	Evict(reason error)
}

// OpenSession counts a session. If its client has too many, the client's session that has been idle
// for longest is evicted. If the process has too many, the sessions of anonymous clients count
// too, because a session without an owner is often one that its client has forgotten. Without an
// idle session OpenSession returns a [LimitError]. The caller must call [Quota.CloseSession] at the
// end of the session; a second call has no effect.
func (q *Quota) OpenSession(s Session) error {
	evicted, err := q.addSession(s)
	if evicted != nil {
		evicted.Evict(err)
		return nil
	}
	return q.logRefusal(s.Owner(), err)
}

// addSession counts a session. With an evicted session, err is the reason for its end.
func (q *Quota) addSession(s Session) (evicted Session, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	owner := s.Owner()
	switch {
	case exceeds(q.clients.entries[owner].sessions, q.limits.ClientSessions):
		evicted = q.findIdleSession(func(c Client) bool { return c == owner })
		err = sessionLimit(q.limits.ClientSessions, true)
	case exceeds(q.total.sessions, q.limits.Sessions):
		evicted = q.findIdleSession(func(c Client) bool { return c == owner || c.Anonymous })
		err = sessionLimit(q.limits.Sessions, false)
	}
	if err != nil && evicted == nil {
		return nil, err
	}
	if evicted != nil {
		q.removeSession(evicted)
	}
	q.sessions.set(s, struct{}{})
	q.changeUsage(owner, usage{sessions: 1})
	return evicted, err
}

// findIdleSession returns the session that has been idle for longest, of the clients that may be
// asked to make room, or nil. q.mu is held.
func (q *Quota) findIdleSession(mayEvict func(Client) bool) (found Session) {
	var oldest time.Time
	for s := range q.sessions.entries {
		if !mayEvict(s.Owner()) {
			continue
		}
		if last, isIdle := s.IdleSince(); isIdle && (found == nil || last.Before(oldest)) {
			found, oldest = s, last
		}
	}
	return found
}

// CloseSession ends a session that OpenSession has counted.
func (q *Quota) CloseSession(s Session) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeSession(s)
}

// removeSession removes a session that is counted. q.mu is held.
func (q *Quota) removeSession(s Session) {
	if _, counted := q.sessions.entries[s]; counted {
		q.sessions.removeEntry(s)
		q.changeUsage(s.Owner(), usage{sessions: -1})
	}
}
