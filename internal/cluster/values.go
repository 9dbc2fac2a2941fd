package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/taskengine"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// storedValues are the values that all replicas see, each the newest message on a subject of its
// own. A version is the sequence number of a message; a message without data removes its value.
type storedValues struct {
	cluster *Cluster
	stream  jetstream.Stream
}

// Values returns the values that all replicas see.
func (c *Cluster) Values() replica.Values { return c.values }

func (s storedValues) subject(key string) string { return s.cluster.subject("value." + key) }

// Get implements [replica.Values].
func (s storedValues) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := s.cluster.checkConnected(); err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	m, err := s.stream.GetLastMsgForSubject(ctx, s.subject(key))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, storeError(err)
	case len(m.Data) == 0:
		return nil, m.Sequence, nil
	}
	return m.Data, m.Sequence, nil
}

// Put implements [replica.Values].
func (s storedValues) Put(ctx context.Context, key string, value []byte, version uint64, life time.Duration) (uint64, error) {
	if err := s.cluster.checkConnected(); err != nil {
		return 0, err
	}
	if limit := s.cluster.conn.MaxPayload(); int64(len(value)) > limit-headRoom {
		return 0, s.cluster.tooLarge(len(value))
	}
	if value == nil && life == 0 {
		life = removedLife
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	o := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(version), jetstream.WithRetryAttempts(0)}
	if life > 0 {
		o = append(o, jetstream.WithMsgTTL(max(time.Second, life.Round(time.Second))))
	}
	ack, err := s.cluster.js.PublishMsg(ctx, &nats.Msg{Subject: s.subject(key), Data: value}, o...)
	switch {
	case taskengine.IsStale(err):
		return 0, replica.ErrStale
	case err != nil:
		return 0, s.cluster.noteStore("values", storeError(fmt.Errorf("a value of the cluster cannot be stored: %w", err)))
	}
	_ = s.cluster.noteStore("values", nil)
	return ack.Sequence, nil
}

// removedLife is how long a removed value leaves a message.
const removedLife = time.Minute

// Watch implements [replica.Values].
func (s storedValues) Watch(prefix string, changed func(key string)) (stop func(), err error) {
	c := s.cluster
	begin := c.subject("changed.")
	sub, err := c.conn.Subscribe(begin+prefix+".>", func(m *nats.Msg) { changed(strings.TrimPrefix(m.Subject, begin)) })
	if err != nil {
		return nil, storeError(err)
	}
	forget := c.OnReconnect(func() { changed("") })
	return func() { forget(); _ = sub.Unsubscribe() }, nil
}
