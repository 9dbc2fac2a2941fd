package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// storedEvents keeps the events of legacy streams: one subject for each stream. The number of an
// event is its sequence in the JetStream stream, so ids are unique among all replicas.
type storedEvents struct {
	cluster *Cluster
	stream  jetstream.Stream
}

func (s storedEvents) subject(stream string) string { return s.cluster.subject("event." + stream) }

// Append keeps an event of a stream and returns its id.
func (c *Cluster) Append(ctx context.Context, stream string, data []byte) (string, error) {
	if err := c.checkConnected(); err != nil {
		return "", err
	}
	if limit := c.conn.MaxPayload(); int64(len(data)) > limit-headRoom {
		return "", fmt.Errorf("an event of %d bytes is not kept, so a client cannot resume from it: max_payload of the NATS server is %d", len(data), limit)
	}
	message := rand.Text()
	ack, err := c.events.publish(ctx, stream, data, message)
	for try := 1; err != nil && try <= eventTries && ctx.Err() == nil; try++ { // it may be stored
		switch {
		case isBeingStored(err):
			if timeout.Sleep(ctx, eventPause) != nil {
				return "", err
			}
		case !errors.Is(err, replica.ErrUnreachable) || try > 1:
			return "", err
		}
		ack, err = c.events.publish(ctx, stream, data, message)
	}
	if err != nil {
		return "", err
	}
	return eventID(stream, ack.Sequence), nil
}

const (
	// eventTries bounds how often an event is sent again, and eventPause is the time between two
	// tries while the servers store it.
	eventTries = 20
	eventPause = 100 * time.Millisecond
)

// errBeingStored is the code of a JetStream cluster for a message that it has, and has not stored
// yet. It knows the sequence number later.
const errBeingStored jetstream.ErrorCode = 10158

// isBeingStored reports whether JetStream has refused a message because it is storing the same one.
func isBeingStored(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == errBeingStored
}

// publish stores an event, unless it was stored before under the same message id. The
// acknowledgement has its number.
func (s storedEvents) publish(ctx context.Context, stream string, data []byte, message string) (*jetstream.PubAck, error) {
	if err := s.cluster.checkConnected(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	ack, err := s.cluster.js.Publish(ctx, s.subject(stream), data, jetstream.WithMsgID(message), jetstream.WithRetryAttempts(0))
	return ack, s.cluster.noteStore("events", storeError(err))
}

// headRoom is the room for the subject and the header of a message, in bytes.
const headRoom = 4096

// After iterates over the events with data after the one with the given id.
func (c *Cluster) After(ctx context.Context, id string) (iter.Seq2[string, []byte], error) {
	stream, number, err := c.events.find(ctx, id)
	if err != nil {
		return nil, err
	}
	var all []*jetstream.RawStreamMsg
	for {
		m, err := c.events.next(ctx, stream, number)
		if err != nil {
			return nil, err
		}
		if m == nil {
			break
		}
		all, number = append(all, m), m.Sequence
	}
	return func(yield func(string, []byte) bool) {
		for _, m := range all {
			if len(m.Data) > 0 && !yield(eventID(stream, m.Sequence), m.Data) {
				return
			}
		}
	}, nil
}

// find returns the stream and the number that an id names, if the event is kept.
func (s storedEvents) find(ctx context.Context, id string) (stream string, number uint64, err error) {
	stream, number, ok := parseEventID(id)
	if !ok {
		return "", 0, streamable.ErrEventGone
	}
	if err := s.cluster.checkConnected(); err != nil {
		return "", 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	m, err := s.stream.GetMsg(ctx, number)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound), err == nil && m.Subject != s.subject(stream):
		return "", 0, streamable.ErrEventGone
	case err != nil:
		return "", 0, storeError(err)
	}
	return stream, number, nil
}

// next returns the first event of a stream after a number, or nil if there is none.
func (s storedEvents) next(ctx context.Context, stream string, number uint64) (*jetstream.RawStreamMsg, error) {
	if err := s.cluster.checkConnected(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	m, err := s.stream.GetMsg(ctx, number+1, jetstream.WithGetMsgSubject(s.subject(stream)))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return m, storeError(err)
}

// Watch calls changed after each event that is added to a stream, until stop is called. It may also
// be called without reason.
func (c *Cluster) Watch(stream string, changed func()) (stop func(), err error) {
	if err := c.checkConnected(); err != nil {
		return nil, err
	}
	sub, err := c.conn.Subscribe(c.subject("stored."+stream), func(*nats.Msg) { changed() })
	if err != nil {
		return nil, storeError(err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// Stream returns the stream that an id names. ok is false if the id is malformed.
func (c *Cluster) Stream(id string) (stream string, ok bool) {
	stream, _, ok = parseEventID(id)
	return stream, ok
}

func eventID(stream string, number uint64) string {
	return stream + "_" + strconv.FormatUint(number, 36)
}

func parseEventID(id string) (stream string, number uint64, ok bool) {
	at := strings.LastIndexByte(id, '_')
	if at <= 0 || len(id) > 512 || strings.ContainsAny(id, "*> \t\r\n") || strings.Contains(id, "..") || id[at-1] == '.' || id[0] == '.' {
		return "", 0, false
	}
	number, err := strconv.ParseUint(id[at+1:], 36, 64)
	return id[:at], number, err == nil && number > 0
}

var (
	_ streamable.EventStore   = (*Cluster)(nil)
	_ streamable.SessionStore = (*Cluster)(nil)
)
