// Package cluster connects the replicas of a server through NATS with JetStream: the sealing keys
// that they share, the changeable state and the events of legacy sessions, and messages between
// processes. Decision 30 describes it.
//
// The leader of a JetStream stream acknowledges each write. While the cluster cannot be
// reached, every method fails at once with an error that wraps [replica.ErrUnreachable]; nothing
// falls back to the memory of the process.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options configure a [Cluster].
type Options struct {
	// URL names the NATS servers, as in nats://user:password@host:4222/NAME, several of them with
	// commas between. NAME separates the data of several clusters on one server; without it, it is
	// "dowel".
	URL string
	// Credentials is the file with the credentials of a NATS user, or "".
	Credentials string
	// KeyLife is how long a secret opens what it has sealed after another one seals, 30 days if it
	// is 0: longer than sessions and most tasks live.
	KeyLife time.Duration
	// Logger receives changes of the connection. nil means [slog.Default].
	Logger *slog.Logger
}

// A Cluster is this process's part of the cluster. It is safe for concurrent use.
type Cluster struct {
	opts   Options
	name   string
	id     string // of this process
	conn   *nats.Conn
	js     jetstream.JetStream
	state  jetstream.KeyValue // the keys, and a lease for each process
	stored storedSessions
	events storedEvents
	values storedValues
	tasks  storedTasks
	keys   mcp.Keys
	record keyRecord // the shared keys as last seen; guarded by mu

	mu            sync.Mutex
	members       map[string]member         // all replicas, also this one
	departures    departures                // of members
	leaseErr      error                     // of the last renewal of this process
	renewed       time.Time                 // the beginning of the last renewal that was stored
	renewedOn     uint64                    // the reconnects of the connection before that
	failures      map[string]storeFailure   // by what was to be stored
	followedSince time.Time                 // every renewal of this process has come back since; zero after a failure
	definitions   map[string]*definitionLog // by key
	copies        int                       // of the stream with the fewest; 1 without redundancy
	wantedCopies  int                       // of new streams
	halved        int                       // how often the streams were made half as large
	hasSmall      bool                      // a stream is smaller than it should be
	healed        hooks                     // of OnReconnect
	nextHook      int                       // the key of the next hook
	ctx           context.Context
	cancel        context.CancelFunc
	running       sync.WaitGroup

	isOpen atomic.Bool // Open has returned
}

const (
	defaultKeyLife = 30 * 24 * time.Hour
	openTimeout    = 15 * time.Second
	storeTimeout   = 2 * time.Second // of one operation
)

// Open connects to the cluster and waits until the shared keys are known. The caller must call
// Close.
func Open(ctx context.Context, o Options) (_ *Cluster, err error) {
	o.KeyLife, o.Logger = cmp.Or(o.KeyLife, defaultKeyLife), cmp.Or(o.Logger, slog.Default())
	c := &Cluster{opts: o, id: rand.Text()[:10], members: map[string]member{}, failures: map[string]storeFailure{}}
	c.tasks.cluster = c
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.connect(); err != nil {
		c.cancel()
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := c.openStreams(ctx); err != nil {
		return nil, c.explain(err)
	}
	if err := c.joinKeys(ctx); err != nil {
		return nil, c.explain(err)
	}
	replica.Attach(&c.keys, c)
	c.isOpen.Store(true)
	return c, nil
}

// Close leaves the cluster. Other replicas notice at once. It waits for at most ten seconds until
// the lines of the audit log are sent.
func (c *Cluster) Close() {
	replica.Attach(&c.keys, nil)
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.running.Wait()
	c.leave()
	c.conn.Close()
}

// Keys returns the sealing keys of all replicas. They change while the cluster is open.
func (c *Cluster) Keys() *mcp.Keys { return &c.keys }

// State returns the state as far as this process knows it. It does not wait for the network.
func (c *Cluster) State() replica.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := replica.State{Name: c.name, Connected: c.conn.IsConnected(), Replicas: len(c.members), Copies: c.copies, IsSmall: c.hasSmall, Payload: c.conn.MaxPayload(), Keys: c.record.String()}
	if s.Connected {
		s.Server = c.conn.ConnectedUrlRedacted()
		if err := c.storeProblem(); err != nil { // the server is there, and JetStream does not answer
			s.Connected, s.Problem = false, err.Error()
		}
	} else if err := c.conn.LastError(); err != nil {
		s.Problem = err.Error()
	} else {
		s.Problem = "the connection is lost"
	}
	return s
}

// storeFailure is the last failure to store something, after which nothing of its kind was stored.
type storeFailure struct {
	err error
	at  time.Time
}

// failureShown is how long a failure is shown if nothing more is to be stored.
const failureShown = time.Minute

// noteStore notes whether JetStream has answered when something was to be stored, and returns err.
func (c *Cluster) noteStore(what string, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, replica.ErrUnreachable) && c.conn.IsConnected() {
		c.failures[what] = storeFailure{fmt.Errorf("%s cannot be stored: %w", what, err), time.Now()}
	} else {
		delete(c.failures, what)
	}
	return err
}

// storeProblem says why JetStream stores nothing, or not everything: a full disk may concern one
// stream. c.mu is held.
func (c *Cluster) storeProblem() error {
	if c.leaseErr != nil {
		return c.leaseErr
	}
	for _, f := range c.failures {
		if time.Since(f.at) < failureShown {
			return f.err
		}
	}
	return nil
}

// checkConnected returns an error if the cluster cannot be reached.
func (c *Cluster) checkConnected() error {
	if c.conn.IsConnected() {
		return nil
	}
	return replica.ErrUnreachable
}

// explain adds what to do to an error of NATS.
func (c *Cluster) explain(err error) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrPermissionViolation):
		return credentialsError(c.conn.ConnectedUrlRedacted(), err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("the NATS server %s has no JetStream: start it with -js, or enable JetStream for the account", c.conn.ConnectedUrlRedacted())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%w: JetStream did not answer in time: it may be without a leader; check nats server report jetstream", replica.ErrUnreachable)
	}
	return fmt.Errorf("the cluster %s: %w", c.name, storeError(err))
}

// storeError makes an error of one operation wrap [replica.ErrUnreachable] if the cluster did not
// answer, or has no JetStream or does not know a stream at the moment, and say what to do if it has
// no room.
func storeError(err error) error {
	switch {
	case err == nil:
		return nil
	case isDisabled(err):
		return fmt.Errorf("%w: JetStream of the NATS server is disabled, which a full disk causes: look at the log of the server: %w", replica.ErrUnreachable, err)
	case hasNoRoom(err):
		return fmt.Errorf("the NATS server has no room: raise the limit of the stream, of the account or of the server (max_file_store): %w", err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w: JetStream does not answer: it has no leader at the moment, or is not enabled: check nats server report jetstream: %w", replica.ErrUnreachable, err)
	case isUnknownStream(err):
		return fmt.Errorf("%w: JetStream does not know a stream of dowel: its leader has just changed, or the stream was removed: if this stays, restart dowel: %w", replica.ErrUnreachable, err)
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, jetstream.ErrAsyncPublishTimeout), errors.Is(err, jetstream.ErrTooManyStalledMsgs),
		errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrDisconnected):
		return fmt.Errorf("%w: %w", replica.ErrUnreachable, err)
	}
	return err
}

var clusterName = lazyregexp.New(`^[A-Za-z0-9_-]{1,40}$`)
