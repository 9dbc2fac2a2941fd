package sharedserver

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// This file serves a server that this process owns to the other replicas.

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
	ctx, h := mcpwire.WithNamedLogs(s.lease.Context()), mcp.Chain(h, readPrincipals)
	o := transport.ServerOptions{Logger: s.pool.opts.Logger, Quota: s.pool.quota, MaxConcurrent: maxRequests}
	s.pool.startGoroutine(func() {
		_ = overconn.Serve(ctx, c, h, o) // the other replica reports how it ended
		s.forget(c)
	})
	return nil, nil
}

// handler returns the handler of the server, if this process owns it and it can be used. Otherwise,
// h is nil, and the answer or the error says why. s.mu is held.
func (s *server) handler() (h mcp.Handler, refusal []byte, err error) {
	h, err = s.pool.opts.Serve(s.name)
	switch {
	case s.taking > 0: // the lease may be here already, or soon
		return nil, answerStarting, nil
	case s.lease == nil && s.hasNoSession.Load():
		return nil, answerNoSession, nil
	case errors.Is(err, ErrStarting):
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

// restartAnswer is how long another replica waits for the error of a restart. The restart continues
// after that.
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
	s.pool.startGoroutine(func() { done <- s.pool.opts.Restart(s.name) })
	select {
	case err := <-done:
		return err
	case <-time.After(restartAnswer):
		return nil
	}
}

// forget removes the connection of another replica.
func (s *server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(other *conn) bool { return other == c })
}
