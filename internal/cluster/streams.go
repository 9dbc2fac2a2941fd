package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The streams of a cluster. Subjects begin with subject.
func (c *Cluster) streamName(kind string) string { return "DOWEL_" + c.name + "_" + kind }
func (c *Cluster) subject(rest string) string    { return "dowel." + c.name + "." + rest }
func (c *Cluster) bucketName() string            { return "dowel_" + c.name }

const (
	eventAge        = 10 * time.Minute // how long events are kept, as in memory
	eventsOfStream  = 1024
	maxEventBytes   = 256 << 20
	maxSessionBytes = 128 << 20
	maxValueBytes   = 64 << 20
	maxTaskBytes    = 512 << 20
	minStreamBytes  = 1 << 20
	// allBytes is what all streams together should have.
	allBytes   = maxEventBytes + maxSessionBytes + maxValueBytes + maxTaskBytes + maxAuditBytes
	markerLife = time.Minute // how long the end of a lease is told to late listeners
)

// openStreams opens the streams, and creates the missing ones. Direct reads are off, because
// they may miss a write that was acknowledged.
func (c *Cluster) openStreams(ctx context.Context) error {
	if c.setWantedCopies(1); c.conn.ConnectedClusterName() != "" {
		c.setWantedCopies(3)
	}
	_, err := tryAgain(ctx, c, openTry, func(ctx context.Context) (*jetstream.AccountInfo, error) { return c.js.AccountInfo(ctx) })
	if err != nil {
		return err
	}
	_, err = c.openStream(ctx, jetstream.StreamConfig{
		Name: "KV_" + c.bucketName(), Subjects: []string{"$KV." + c.bucketName() + ".>"}, Description: "keys and leases of dowel",
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, AllowRollup: true, DenyDelete: true,
		AllowMsgTTL: true, SubjectDeleteMarkerTTL: markerLife, MaxBytes: 1 << 20,
	})
	if err != nil {
		return err
	}
	c.state, err = awaitStream(ctx, func() (jetstream.KeyValue, error) {
		return tryAgain(ctx, c, openTry, func(ctx context.Context) (jetstream.KeyValue, error) { return c.js.KeyValue(ctx, c.bucketName()) })
	})
	if err != nil {
		return err
	}
	c.fitStreams(ctx)
	sessions, err := c.openStream(ctx, jetstream.StreamConfig{
		Name: c.streamName("sessions"), Subjects: []string{c.subject("session.*")}, Description: "changeable state of sessions",
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, AllowMsgTTL: true, AllowRollup: true, MaxBytes: maxSessionBytes,
	})
	if err != nil {
		return err
	}
	events, err := c.openStream(ctx, jetstream.StreamConfig{
		Name: c.streamName("events"), Subjects: []string{c.subject("event.>")}, Description: "events that clients may ask for again",
		MaxMsgsPerSubject: eventsOfStream, Discard: jetstream.DiscardOld, MaxAge: eventAge, MaxBytes: maxEventBytes,
		RePublish: &jetstream.RePublish{Source: c.subject("event.>"), Destination: c.subject("stored.>"), HeadersOnly: true},
	})
	if err != nil {
		return err
	}
	values, err := c.openStream(ctx, jetstream.StreamConfig{
		Name: c.streamName("values"), Subjects: []string{c.subject("value.>")}, Description: "leases, logins and other small values",
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, AllowMsgTTL: true, MaxBytes: maxValueBytes,
		RePublish: &jetstream.RePublish{Source: c.subject("value.>"), Destination: c.subject("changed.>"), HeadersOnly: true},
	})
	c.stored, c.events, c.values = storedSessions{c, sessions}, storedEvents{c, events}, storedValues{c, values}
	return err
}

// openStream opens a stream with the copies and the bytes that the servers allow, or creates it:
// JetStream reserves the bytes. It takes an existing stream as it is, because another release of
// dowel or an administrator made it. A stream that another replica is about to create has its name,
// and cannot be found yet.
func (c *Cluster) openStream(ctx context.Context, config jetstream.StreamConfig) (jetstream.Stream, error) {
	isBeingCreated := func(err error) bool { return errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) }
	stream, err := repeatWhile(ctx, isBeingCreated, func() (jetstream.Stream, error) {
		stream, err := c.findStream(ctx, config.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return c.createStream(ctx, config)
		}
		return stream, err
	})
	if err != nil {
		return nil, err
	}
	made := stream.CachedInfo().Config
	c.noteStream(made.Replicas, made.MaxBytes > 0 && made.MaxBytes < config.MaxBytes)
	return stream, nil
}

// findStream returns a stream that exists.
func (c *Cluster) findStream(ctx context.Context, name string) (jetstream.Stream, error) {
	return tryAgain(ctx, c, openTry, func(ctx context.Context) (jetstream.Stream, error) { return c.js.Stream(ctx, name) })
}

// fitStreams finds out by a stream that it removes again which part of allBytes the servers have
// room for, so that the first streams leave room for the others. It does nothing in a cluster that
// has its streams. Other replicas may do the same. A replica that finds the stream of another one,
// which may also have ended before it could remove it, takes over its size. The streams report
// errors that stay.
func (c *Cluster) fitStreams(ctx context.Context) {
	if _, err := c.findStream(ctx, c.streamName("sessions")); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return
	}
	name := c.streamName("probe")
	_, err := c.createStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{c.subject("probe")}, MaxBytes: allBytes})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		if other, err := c.findStream(ctx, name); err == nil {
			c.halveStreamsTo(other.CachedInfo().Config.MaxBytes)
		}
	} else if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeLimit)
	defer cancel()
	_ = c.js.DeleteStream(ctx, name) // another replica may have removed it
}

// probeLimit bounds the removal of the stream of fitStreams, which would keep its reservation.
const probeLimit = 10 * time.Second

// createStream creates a stream. If the servers are too few for the copies, it makes one. If they
// have no room for the bytes, it takes half of them, again and again; later streams begin with the
// same part.
func (c *Cluster) createStream(ctx context.Context, config jetstream.StreamConfig) (stream jetstream.Stream, err error) {
	config.Replicas = c.copiesWanted()
	full := config.MaxBytes
	for {
		config.MaxBytes = max(full>>c.halvings(), min(full, minStreamBytes))
		stream, err = tryAgain(ctx, c, createTry, func(ctx context.Context) (jetstream.Stream, error) { return c.js.CreateStream(ctx, config) })
		api, _ := errors.AsType[*jetstream.APIError](err)
		switch {
		case api != nil && config.Replicas > 1 && !hasNoRoom(err) && (api.ErrorCode == errTooFewPeers || api.ErrorCode == errNoReplicas):
			config.Replicas = 1
			c.setWantedCopies(1)
		case hasNoRoom(err) && config.MaxBytes > minStreamBytes:
			c.halveStreams()
		default:
			return stream, err
		}
	}
}

// noteStream notes how many copies of a stream there are, and whether it is smaller than
// it should be.
func (c *Cluster) noteStream(copies int, isSmall bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copies == 0 || copies < c.copies {
		c.copies = copies
	}
	c.hasSmall = c.hasSmall || isSmall
}

func (c *Cluster) halvings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halved
}

func (c *Cluster) halveStreams() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halved++
}

// halveStreamsTo is halveStreams until all streams together have a number of bytes.
func (c *Cluster) halveStreamsTo(bytes int64) {
	for bytes > 0 && int64(allBytes)>>c.halvings() > bytes {
		c.halveStreams()
	}
}

// setWantedCopies says how many copies new streams get.
func (c *Cluster) setWantedCopies(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wantedCopies = n
}

func (c *Cluster) copiesWanted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wantedCopies
}

// Codes of errors of JetStream.
const (
	errTooFewPeers jetstream.ErrorCode = 10005
	errNoReplicas  jetstream.ErrorCode = 10074
	errUnavailable jetstream.ErrorCode = 10008
	errAccountFull jetstream.ErrorCode = 10002
	errNoResources jetstream.ErrorCode = 10023
	errStorageFull jetstream.ErrorCode = 10047
	errStoreFailed jetstream.ErrorCode = 10077 // the stream is full, or its disk
	errStreamLimit jetstream.ErrorCode = 10122 // the account bounds the bytes of one stream
)

// isDisabled reports whether JetStream is off at the moment.
func isDisabled(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeJetStreamNotEnabled || api.ErrorCode == jetstream.JSErrCodeJetStreamNotEnabledForAccount || api.ErrorCode == errUnavailable)
}

// hasNoRoom reports whether JetStream refuses something because a limit of bytes is reached.
func hasNoRoom(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if ok && api.ErrorCode == errTooFewPeers { // servers of a cluster may also be too few because the others are full
		return strings.Contains(api.Description, "insufficient storage")
	}
	return ok && slices.Contains([]jetstream.ErrorCode{errAccountFull, errNoResources, errStorageFull, errStoreFailed, errStreamLimit}, api.ErrorCode)
}
