package sharedserver

import (
	"context"
	"fmt"
	"sync"

	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// This file connects to a server at its owner, the replica that holds the lease.

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

// loseLease passes the loss of the lease on, unless the connection was lost or closed before. It
// says nothing about the server, so another dial follows as soon as it may succeed.
func (i *ownInbound) loseLease(s *server, lost error) {
	i.once.Do(func() {
		s.awaitOwner(ownerFailure{holder: s.pool.instance})
		i.Inbound.Down(errNoOwner{lost})
	})
}

// dialOwn connects to the server, which this process owns. The dial and the connection end
// with the lease.
func (t *Target) dialOwn(ctx context.Context, lease *replica.Lease, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	s, own := t.server, &ownInbound{Inbound: in}
	ctx, cancel := context.WithCancelCause(ctx)
	lost := fmt.Errorf("this replica may not run the server %s any more: it has lost its lease, because the cluster could not be reached", s.name)
	context.AfterFunc(lease.Context(), func() { cancel(lost) })
	made, err := t.dialer.Dial(ctx, own, opts)
	if err != nil {
		process.AwaitEnd(err) // it must not run twice
		hasLost := lease.Context().Err() != nil
		if !hasLost {
			s.noteFailure(err)
		}
		s.release(lease)
		if hasLost {
			s.awaitOwner(ownerFailure{holder: s.pool.instance})
			return nil, fmt.Errorf("%w: %w", mcp.ErrConnection, errNoOwner{lost})
		}
		return nil, err
	}
	if t.sessionsOnly && !hasSession(made) {
		s.hasNoSession.Store(true)
		s.release(lease)
		return made, nil
	}
	s.hasNoSession.Store(false)
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
	s.pool.startGoroutine(func() {
		<-lease.Context().Done() // released or lost
		own.loseLease(s, lost)
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
