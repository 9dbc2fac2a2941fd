package sharedserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// A Target is a server that one replica connects to for all. It is a [transport.Dialer], and
// package client knows that it wraps another target.
type Target struct {
	server       *server
	inner        any              // a target of client.Dial
	dialer       transport.Dialer // of inner; nil if only package client can make it
	sessionsOnly bool
}

// Target returns the target of a server. inner is the target of client.Dial that connects to the
// server at its owner. The replicas must use the same name for the same server.
func (p *Pool) Target(name string, inner any) *Target {
	t := &Target{server: p.server(name, "")}
	return t.With(inner)
}

// SessionTarget is Target, except that each replica has a connection of its own to a server that
// opens no session, and that only replicas with the same entry share a session. entry identifies
// it, without a secret in clear.
func (p *Pool) SessionTarget(name, entry string, inner any) *Target {
	t := &Target{server: p.server(name, entry), sessionsOnly: true}
	return t.With(inner)
}

// Inner returns the target that the owner dials.
func (t *Target) Inner() any { return t.inner }

// Unwrap returns the target that the owner dials if target is a [Target], and otherwise target.
func Unwrap(target any) any {
	if t, ok := target.(*Target); ok {
		return t.inner
	}
	return target
}

// With returns the same target with another inner one.
func (t *Target) With(inner any) *Target {
	own := *t
	own.inner = inner
	own.dialer, _ = inner.(transport.Dialer)
	return &own
}

// Around returns the same target with the dialer that package client has made of Inner.
func (t *Target) Around(inner transport.Dialer) transport.Dialer {
	own := *t
	own.dialer = inner
	return &own
}

// Endpoint implements [transport.Dialer]. The era of the server is remembered by the dialer
// of the owner.
func (t *Target) Endpoint() string { return "" }

// String implements [transport.Dialer].
func (t *Target) String() string {
	if t.dialer == nil {
		return "a server of all replicas"
	}
	return t.dialer.String()
}

// runsCommand reports whether the owner starts a process.
func (t *Target) runsCommand() bool {
	_, ok := t.inner.(stdio.Command)
	return ok
}

// IsOwn reports whether the last dial was one of the server itself.
func (t *Target) IsOwn() bool { return t.server.dialedOwn.Load() }

// Owner says which replica runs the server, or "" if that is not known.
func (t *Target) Owner() string {
	switch owner, _ := t.server.owner.Load().(string); owner {
	case "":
		return ""
	case t.server.pool.instance:
		return "this replica"
	default:
		return describeInstance(owner)
	}
}

// server has the state of one server in a pool.
type server struct {
	pool      *Pool
	name      string
	entry     string       // identifies the entry of a server whose session is shared; "" if the name is enough
	owner     atomic.Value // string: the instance of the owner, or "" if it is not known
	dialedOwn atomic.Bool
	// hasNoSession says that the server opened no session at the last dial. It is false unless a
	// target asks for it.
	hasNoSession atomic.Bool

	mu         sync.Mutex     // guards the rest
	taking     int            // tries to take the lease that run
	lease      *replica.Lease // nil unless this process owns the server
	failure    error          // of the last dial of the server itself; nil if it succeeded
	conns      []*conn        // of other replicas
	awaited    ownerFailure   // of the last dial
	failures   int            // calls of awaitOwner
	isAwaiting bool           // a goroutine of awaitOwner runs

	failedInRow int // calls of awaitOwner since the last dial that has succeeded
}

// ownerFailure says why the owner could not be dialed.
type ownerFailure struct {
	holder string // the owner; "" if it is not known
	failed bool   // the server could not be used there
}

// key returns the key of the lease.
func (s *server) key() string {
	if s.entry == "" {
		return replica.KeyOf("server", s.name)
	}
	return replica.KeyOf("server", s.name+"\x00"+s.entry)
}

// Dial implements [transport.Dialer]. It takes the lease and connects to the server, or connects to
// the owner. It fails at once if the owner has ended and its lease has not.
func (t *Target) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	s := t.server
	made, err := t.dialOnce(ctx, in, opts)
	if errors.Is(err, errNoSession) {
		s.hasNoSession.Store(true)
		made, err = t.dialOnce(ctx, in, opts)
	}
	if errors.Is(err, errNoSession) { // until the lease of the other replica ends
		owner, _ := s.owner.Load().(string)
		err = s.noteOwnerFailure(fmt.Errorf("the server %s opens sessions, and %s, which holds its lease, has none", s.name, describeInstance(owner)))
	}
	if err == nil {
		s.noteConnected()
	}
	return made, err
}

// dialOnce is Dial, except that it returns errNoSession if the owner says that the server opens no
// session.
func (t *Target) dialOnce(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	s := t.server
	if t.sessionsOnly && s.hasNoSession.Load() {
		if made, err := t.dialAlone(ctx, in, opts); made != nil || err != nil {
			return made, err
		}
	}
	lease, holder, err := s.takeLease(ctx)
	s.owner.Store(holder)
	s.dialedOwn.Store(lease != nil)
	switch {
	case err != nil:
		s.awaitOwner(ownerFailure{})
		return nil, fmt.Errorf("%w: which replica runs the server %s is not known: %w", mcp.ErrConnection, s.name, errNoOwner{err})
	case lease != nil:
		return t.dialOwn(ctx, lease, in, opts)
	}
	made, err := t.dialOwner(ctx, holder, in, opts)
	switch {
	case err == nil:
		s.hasNoSession.Store(false)
		return made, nil
	case errors.Is(err, errNoSession):
		return nil, err
	}
	return nil, s.noteOwnerFailure(err)
}

// noteOwnerFailure notes that the owner could not be dialed, and returns the error of the dial.
func (s *server) noteOwnerFailure(err error) error {
	holder, _ := s.owner.Swap("").(string)
	_, failed := errors.AsType[errServerFailed](err)
	if !failed {
		err = errNoOwner{err}
	}
	s.awaitOwner(ownerFailure{holder, failed})
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}

// errNoOwner is the error of a dial that has tried to use no server, because its owner was not
// there, and of the loss of a connection if the server is not the cause.
type errNoOwner struct{ error }

func (e errNoOwner) Unwrap() error { return e.error }

// HasNoOwner reports whether a dial has failed, or a connection was lost, because the owner of the
// server is not there or has lost its lease. It says nothing about the server.
func HasNoOwner(err error) bool {
	_, ok := errors.AsType[errNoOwner](err)
	return ok
}

// startPause is the time between two questions to an owner that starts its server.
const startPause = 200 * time.Millisecond

// dialOwner connects to the owner. It waits while the server starts there.
func (t *Target) dialOwner(ctx context.Context, owner string, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	s := t.server
	if owner == s.pool.instance {
		return nil, fmt.Errorf("the server %s ends at this replica", s.name)
	}
	id := rand.Text()
	c := s.pool.newConn(owner, id)
	if c == nil {
		return nil, errors.New("dowel ends")
	}
	if err := s.openConn(ctx, c); err != nil {
		c.forget()
		return nil, err
	}
	startphase.Report(ctx, startphase.Phase{})
	c.begin()
	opts.Revision, opts.SerializeAsks = mcp.LatestRevision, false // the owner translates
	made, err := overconn.Connect(ctx, ownerConn{c, s, !t.runsCommand()}, in, "", opts)
	if err != nil {
		return nil, err
	}
	return &remoteTransport{made.(connTransport)}, nil
}

// openConn asks the owner to accept a connection. It waits while the server starts there, and while
// an owner that does not answer may still hold the lease.
func (s *server) openConn(ctx context.Context, c *conn) error {
	for silentSince := time.Now(); ; {
		answer, err := c.sendMessage(ctx, message{Kind: openConn, From: s.pool.instance, Server: s.name, Entry: s.entry}, nil)
		why, failed := bytes.CutPrefix(answer, answerFailed)
		switch {
		case isSilent(err) && time.Since(silentSince) < silenceLimit && s.mayBeHeldBy(c.peer):
			continue
		case err != nil:
			return fmt.Errorf("the server %s has no owner at the moment: %w; a replica starts it within %v", s.name, err, replica.LeaseLife)
		case failed:
			return errServerFailed{s.name, c.peer, string(why)}
		case bytes.Equal(answer, answerNoSession):
			return errNoSession
		case !bytes.Equal(answer, answerStarting):
			return nil
		}
		startphase.Report(ctx, startphase.Phase{Runner: describeInstance(c.peer)})
		if err := timeout.Sleep(ctx, startPause); err != nil {
			return fmt.Errorf("the server %s is still starting at %s: %w", s.name, describeInstance(c.peer), err)
		}
		silentSince = time.Now()
	}
}

// errServerFailed says that the owner has tried to start a server.
type errServerFailed struct{ server, owner, why string }

func (e errServerFailed) Error() string {
	return fmt.Sprintf("the server %s cannot be used at its owner, %s: %s", e.server, describeInstance(e.owner), e.why)
}

// RestartAtOwner lets the replica that runs the server start it again. It reports false if no other
// replica is known to run it.
func (t *Target) RestartAtOwner(ctx context.Context) (isRemote bool, err error) {
	s := t.server
	owner, _ := s.owner.Load().(string)
	if owner == "" || owner == s.pool.instance {
		return false, nil
	}
	_, err = s.pool.opts.Network.Send(ctx, owner, message{Kind: restartServer, Server: s.name, Entry: s.entry}.encode(nil))
	if errors.Is(err, replica.ErrGone) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("%s cannot start the server again: %w", describeInstance(owner), err)
	}
	return true, nil
}
