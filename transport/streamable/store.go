package streamable

import (
	"context"
	"iter"
	"time"

	"github.com/dowel-mcp/dowel/transport/streamable/internal/memstore"
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
	// After iterates over the ids and the data of the events after the one with the given id, of
	// the same stream, in order and without events that have no data. The id comes from the client.
	// If it is unknown or forgotten, the error wraps [ErrEventGone].
	After(ctx context.Context, id string) (iter.Seq2[string, []byte], error)
	// Stream returns the stream that an id names; the event need not exist. ok is false if id is
	// malformed.
	Stream(id string) (stream string, ok bool)
}

// ErrEventGone is the error of [EventStore] for an event that it does not keep, or keeps no longer.
var ErrEventGone = memstore.ErrEventGone

// SessionStore keeps the changeable state of legacy sessions; the fixed state is sealed in the
// session id. Replicas that share a store agree on it. Without a shared store, another replica
// still accepts the id of a session that has ended here, until [SessionOptions.Life] is over. The
// methods are called concurrently. An error fails the request that needs the store.
//
// If two replicas load a record and then save it, the later one replaces the change of the other: a
// subscription of the client is lost. A store with compare-and-set avoids that by a further method,
// Update:
//
//	Update(ctx context.Context, key string, until time.Time,
//		change func(record []byte) (next []byte, final bool, err error)) error
//
// It stores the result of change as Save does, and calls change again if the record was replaced
// after it was read. It stores nothing if the record is final or next is nil, and returns the error
// of change.
type SessionStore interface {
	// Load returns the record that was saved last for a session, or nil if there is none.
	Load(ctx context.Context, key string) ([]byte, error)
	// Save stores the record of a session and keeps it at least until the given time. final says
	// that the session has ended: no later Save may replace the record.
	Save(ctx context.Context, key string, record []byte, final bool, until time.Time) error
}
