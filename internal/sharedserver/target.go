package sharedserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// A Target is a server that one replica runs for all. It is a [transport.Dialer].
type Target struct {
	server *server
	inner  transport.Dialer
}

// Target returns the target of a server. inner connects to it at its owner. The replicas must use the same
// name for the same server.
func (p *Pool) Target(name string, inner transport.Dialer) *Target {
	return &Target{p.server(name), inner}
}

// Inner returns the target that the owner dials.
func (t *Target) Inner() transport.Dialer { return t.inner }

// With returns the same target with another inner one.
func (t *Target) With(inner transport.Dialer) *Target { return &Target{t.server, inner} }

// Endpoint implements [transport.Dialer].
func (t *Target) Endpoint() string { return "" }

// StartsCommand tells package client that the limits of a command apply, see [startphase.StartsCommand].
func (t *Target) StartsCommand() bool {
	_, ok := t.inner.(stdio.Command)
	return ok
}

// String implements [transport.Dialer].
func (t *Target) String() string { return t.inner.String() }

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
		return describe(owner)
	}
}

// server has the state of one server in a pool.
type server struct {
	pool      *Pool
	name      string
	owner     atomic.Value // string: the instance of the owner, or "" if it is not known
	dialedOwn atomic.Bool

	mu         sync.Mutex     // guards the rest
	taking     int            // tries to take the lease that run
	lease      *replica.Lease // nil unless this process owns the server
	failure    error          // of the last dial of the server itself; nil if it succeeded
	conns      []*conn        // of other replicas
	awaited    ownerFailure   // of the last dial
	failures   int            // calls of awaitOwner
	isAwaiting bool           // a goroutine of awaitOwner runs
}

// ownerFailure says why the owner could not be dialed.
type ownerFailure struct {
	holder string // the owner; "" if it is not known
	failed bool   // the server could not be used there
}

func (s *server) key() string { return replica.KeyOf("server", s.name) }

// Dial implements [transport.Dialer]. It takes the lease and connects to the server, or connects to the
// owner. It fails at once if the owner has ended and its lease has not.
func (t *Target) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	s := t.server
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
	made, err := s.dialOwner(ctx, holder, in, opts)
	if err != nil {
		s.owner.Store("")
		_, failed := errors.AsType[errServerFailed](err)
		if !failed {
			err = errNoOwner{err}
		}
		s.awaitOwner(ownerFailure{holder, failed})
		return nil, fmt.Errorf("%w: %w", mcp.ErrConnection, err)
	}
	return made, nil
}

// errNoOwner is the error of a dial that has tried to use no server, because its owner was not there.
type errNoOwner struct{ error }

func (e errNoOwner) Unwrap() error { return e.error }

// HasNoOwner reports whether a dial has failed because the owner of the server was not there. It says nothing about
// the server.
func HasNoOwner(err error) bool {
	_, ok := errors.AsType[errNoOwner](err)
	return ok
}

// takeLease takes the lease if it is free.
func (s *server) takeLease(ctx context.Context) (lease *replica.Lease, holder string, err error) {
	s.mu.Lock()
	s.taking++
	s.mu.Unlock()
	lease, holder, err = replica.TryHold(ctx, s.pool.opts.Values, s.key(), s.pool.instance)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taking--
	if lease != nil {
		s.lease, s.failure = lease, nil
	}
	return lease, holder, err
}

// noteFailure notes that the server itself could not be dialed.
func (s *server) noteFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// release ends the connections of other replicas and the lease.
func (s *server) release(lease *replica.Lease) {
	s.mu.Lock()
	conns := s.conns
	s.conns, s.lease = nil, nil
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	s.owner.CompareAndSwap(s.pool.instance, "")
	lease.Release()
}

// connTransport has the methods of transports over a [transport.Conn].
type connTransport interface {
	mcp.Transport
	mcp.Notifier
	UnaddressedFrames() int64
}

// ownTransport is a transport to a server that this process owns. Closing it releases the lease.
type ownTransport struct {
	connTransport
	close func() error
}

func (t *ownTransport) Close() error { return t.close() }

// ownInbound passes the first loss of the connection on.
type ownInbound struct {
	mcp.Inbound
	once sync.Once
}

func (i *ownInbound) Down(err error) { i.once.Do(func() { i.Inbound.Down(err) }) }

// dialOwn connects to the server, which this process owns. The dial and the connection end with the lease.
func (t *Target) dialOwn(ctx context.Context, lease *replica.Lease, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	s, own := t.server, &ownInbound{Inbound: in}
	ctx, cancel := context.WithCancelCause(ctx)
	lost := fmt.Errorf("this replica may not run the server %s any more: it has lost its lease, because the cluster could not be reached", s.name)
	context.AfterFunc(lease.Context(), func() { cancel(lost) })
	made, err := t.inner.Dial(ctx, own, opts)
	if err != nil {
		process.AwaitEnd(err) // it must not run twice
		s.noteFailure(err)
		s.release(lease)
		return nil, err
	}
	var closing sync.Once
	var closed error
	closeAll := func() error {
		closing.Do(func() {
			own.once.Do(func() {}) // no loss from now on
			closed = made.Close()
			s.release(lease)
		})
		return closed
	}
	s.pool.start(func() {
		<-lease.Context().Done() // released or lost
		own.Down(lost)
		_ = closeAll()
	})
	inner, ok := made.(connTransport)
	if !ok {
		return &plainOwnTransport{made, closeAll}, nil
	}
	return &ownTransport{inner, closeAll}, nil
}

// plainOwnTransport is an ownTransport without optional methods.
type plainOwnTransport struct {
	mcp.Transport
	close func() error
}

func (t *plainOwnTransport) Close() error { return t.close() }

// startPause is the time between two questions to an owner that starts its server.
const startPause = 200 * time.Millisecond

// dialOwner connects to the owner. It waits while the server starts there.
func (s *server) dialOwner(ctx context.Context, owner string, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if owner == s.pool.instance {
		return nil, fmt.Errorf("the server %s ends at this replica", s.name)
	}
	id := rand.Text()
	c := s.pool.newConn(owner, id)
	if c == nil {
		return nil, errors.New("dowel ends")
	}
	for {
		answer, err := c.send(ctx, message{Kind: openConn, From: s.pool.instance, Server: s.name}, nil)
		if err != nil {
			c.forget()
			return nil, fmt.Errorf("the server %s has no owner at the moment: %w; a replica starts it within %v", s.name, err, replica.LeaseLife)
		}
		if why, failed := bytes.CutPrefix(answer, answerFailed); failed {
			c.forget()
			return nil, errServerFailed{s.name, owner, string(why)}
		}
		if !bytes.Equal(answer, answerStarting) {
			break
		}
		startphase.Report(ctx, startphase.Phase{Runner: describe(owner)})
		if err := timeout.Sleep(ctx, startPause); err != nil {
			c.forget()
			return nil, fmt.Errorf("the server %s is still starting at %s: %w", s.name, describe(owner), err)
		}
	}
	startphase.Report(ctx, startphase.Phase{})
	c.begin()
	opts.Revision, opts.SerializeAsks = mcp.LatestRevision, false // the owner translates
	made, err := overconn.Connect(ctx, c, in, "", opts)
	if err != nil {
		return nil, err
	}
	return &remoteTransport{made.(connTransport)}, nil
}

// errServerFailed says that the owner has tried to start a server.
type errServerFailed struct{ server, owner, why string }

func (e errServerFailed) Error() string {
	return fmt.Sprintf("the server %s cannot be used at its owner, %s: %s", e.server, describe(e.owner), e.why)
}

// accept connects another replica to a server that this process owns.
func (s *server) accept(m message) (answer []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil && s.pool.hasConn(m.Conn) { // the acknowledgement was lost
		return nil, nil
	}
	h, refusal, err := s.handler()
	if h == nil {
		return refusal, err
	}
	c := s.pool.newConn(m.From, m.Conn)
	if c == nil {
		return nil, errors.New("it ends")
	}
	c.begin()
	s.conns = append(s.conns, c)
	ctx, h := s.lease.Context(), mcp.Chain(h, readPrincipals)
	o := transport.ServerOptions{Logger: s.pool.opts.Logger, Quota: s.pool.quota, MaxConcurrent: maxRequests}
	s.pool.start(func() {
		_ = overconn.Serve(ctx, c, h, o) // the other replica reports how it ended
		s.forget(c)
	})
	return nil, nil
}

// handler returns the handler of the server, if this process owns it and it can be used. Otherwise, h is nil, and
// the answer or the error says why. s.mu is held.
func (s *server) handler() (h mcp.Handler, refusal []byte, err error) {
	h, err = s.pool.opts.Serve(s.name)
	switch {
	case s.taking > 0, errors.Is(err, ErrStarting): // the lease may be here already, or soon
		return nil, answerStarting, nil
	case s.lease != nil && err == nil:
		return h, nil, nil
	case s.lease == nil && s.failure == nil:
		return nil, nil, fmt.Errorf("it does not run the server %s", s.name)
	}
	return nil, fmt.Appendf(nil, "%s%v", answerFailed, cmp.Or(err, s.failure)), nil
}

// describeReadiness returns answerReady if other replicas can use the server here.
func (s *server) describeReadiness() (answer []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, _, _ := s.handler(); h != nil {
		return answerReady
	}
	return nil
}

// restartAnswer is how long another replica waits for the error of a restart, which goes on after that.
const restartAnswer = 500 * time.Millisecond

// restart starts the server again, which this process owns.
func (s *server) restart() error {
	s.mu.Lock()
	isOwner := s.lease != nil
	s.mu.Unlock()
	if !isOwner {
		return fmt.Errorf("it does not run the server %s", s.name)
	}
	done := make(chan error, 1)
	s.pool.start(func() { done <- s.pool.opts.Restart(s.name) })
	select {
	case err := <-done:
		return err
	case <-time.After(restartAnswer):
		return nil
	}
}

// RestartAtOwner lets the replica that runs the server start it again. It reports false if no other replica is
// known to run it.
func (t *Target) RestartAtOwner(ctx context.Context) (isRemote bool, err error) {
	s := t.server
	owner, _ := s.owner.Load().(string)
	if owner == "" || owner == s.pool.instance {
		return false, nil
	}
	_, err = s.pool.opts.Network.Send(ctx, owner, message{Kind: restartServer, Server: s.name}.encode(nil))
	if errors.Is(err, replica.ErrGone) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("%s cannot start the server again: %w", describe(owner), err)
	}
	return true, nil
}

// forget removes the connection of another replica.
func (s *server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(other *conn) bool { return other == c })
}

// awaitOwner begins another dial as soon as the lease is free or the owner can be used. If the server has failed
// at its owner, it only waits for the owner: this process waits as long as after a failure of its own.
func (s *server) awaitOwner(f ownerFailure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaited = f
	s.failures++
	if s.isAwaiting {
		return
	}
	s.isAwaiting = true
	s.pool.start(func() {
		for timeout.Sleep(s.pool.ctx, startPause) == nil {
			last, failures := s.lastFailure()
			if s.mayDial(last) && s.pool.opts.Redial(s.name) && s.endAwaiting(failures) {
				return
			}
		}
	})
}

// lastFailure returns why the owner could not be dialed, and how often it could not.
func (s *server) lastFailure() (last ownerFailure, failures int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awaited, s.failures
}

// endAwaiting ends the goroutine of awaitOwner, unless another dial has failed meanwhile.
func (s *server) endAwaiting(failures int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isAwaiting = s.failures != failures
	return !s.isAwaiting
}

// mayDial reports whether another dial may succeed after a failure.
func (s *server) mayDial(last ownerFailure) bool {
	holder, err := replica.Holder(s.pool.ctx, s.pool.opts.Values, s.key())
	switch {
	case err != nil, holder == s.pool.instance:
		return false
	case last.failed:
		return holder != "" && s.isReadyAt(holder)
	case holder == "", holder != last.holder:
		return true
	}
	_, err = s.pool.opts.Network.Send(s.pool.ctx, holder, message{Kind: checkPool}.encode(nil))
	return err == nil
}

// isReadyAt reports whether the server can be used at its owner.
func (s *server) isReadyAt(owner string) bool {
	answer, err := s.pool.opts.Network.Send(s.pool.ctx, owner, message{Kind: checkServer, Server: s.name}.encode(nil))
	return err == nil && bytes.Equal(answer, answerReady)
}
