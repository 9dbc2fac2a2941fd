package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/internal/taskengine"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// storedSessions keeps the changeable state of legacy sessions: one message for each session, which
// the next one replaces.
type storedSessions struct {
	cluster *Cluster
	stream  jetstream.Stream
}

// finalField marks the record of a session that has ended.
const finalField = "Dowel-Final"

// Load returns the record of a session, or nil if there is none.
func (c *Cluster) Load(ctx context.Context, key string) ([]byte, error) {
	m, err := c.stored.read(ctx, key)
	if m == nil {
		return nil, err
	}
	return m.Data, nil
}

func (s storedSessions) subject(key string) string { return s.cluster.subject("session." + key) }

// read returns the last message of a session, or nil if there is none.
func (s storedSessions) read(ctx context.Context, key string) (*jetstream.RawStreamMsg, error) {
	if err := s.cluster.checkConnected(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	m, err := s.stream.GetLastMsgForSubject(ctx, s.subject(key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return m, storeError(err)
}

// Save stores a record until the given time. Nothing replaces a final one.
func (c *Cluster) Save(ctx context.Context, key string, record []byte, final bool, until time.Time) error {
	return c.Update(ctx, key, until, func([]byte) ([]byte, bool, error) { return record, final, nil })
}

// Update calls change with the record of a session, or nil without a record, and stores the result.
// It does so again if another replica has replaced the record meanwhile, so no change is lost.
// It stores nothing if change returns nil, or if the record is final. Update returns the error of
// change.
func (c *Cluster) Update(ctx context.Context, key string, until time.Time, change func(record []byte) (next []byte, final bool, err error)) error {
	const tries = 10 // of replicas that change the same session at the same time
	for try := 1; ; try++ {
		last, err := c.stored.read(ctx, key)
		if err != nil {
			return err
		}
		var record []byte
		if last != nil {
			if record = last.Data; last.Header.Get(finalField) != "" {
				return nil
			}
		}
		next, final, err := change(record)
		if err != nil || next == nil {
			return err
		}
		err = c.stored.replace(ctx, key, last, next, final, until)
		if taskengine.IsStale(err) && try < tries {
			continue
		}
		return c.noteStore("sessions", storeError(err))
	}
}

// replace stores a record in the place of the last one.
func (s storedSessions) replace(ctx context.Context, key string, last *jetstream.RawStreamMsg, record []byte, final bool, until time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	m := nats.NewMsg(s.subject(key))
	m.Data = record
	if final {
		m.Header.Set(finalField, "1")
	}
	var expected uint64
	if last != nil {
		expected = last.Sequence
	}
	_, err := s.cluster.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(expected),
		jetstream.WithMsgTTL(max(time.Second, time.Until(until).Round(time.Second))), jetstream.WithRetryAttempts(0))
	return err
}
