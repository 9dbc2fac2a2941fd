package sharedserver

import (
	"bytes"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
)

// The longest pauses of lookForOwner. A pause begins at startPause and doubles. A lease ends within
// its life, so the looks at it stay frequent; a server that has failed at its owner may stay so for
// days.
const (
	leaseLookLimit  = 500 * time.Millisecond // between two looks at a lease
	serverLookLimit = 2 * time.Second        // between two looks at a server that has failed at its owner
	redialLimit     = 2 * time.Second        // between a failed dial and the next one
)

// awaitOwner begins another dial as soon as the lease is free or the owner can be used. If the
// server has failed at its owner, it only waits for the owner: this process waits as long as after
// a failure of its own.
func (s *server) awaitOwner(f ownerFailure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaited = f
	s.failures++
	s.failedInRow++
	if s.isAwaiting {
		return
	}
	s.isAwaiting = true
	s.pool.startGoroutine(s.lookForOwner)
}

// noteConnected notes that a dial has succeeded.
func (s *server) noteConnected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failedInRow = 0
}

// lookForOwner looks for an owner until a dial has succeeded, or it has begun one that has not
// failed at once.
func (s *server) lookForOwner() {
	var last ownerFailure
	var failures int // as many have led to last
	var pause time.Duration
	for {
		if f, n, inRow := s.lastFailure(); n != failures {
			last, failures, pause = f, n, redialPause(inRow)
		} else {
			pause = min(2*pause, last.lookLimit())
		}
		if timeout.Sleep(s.pool.ctx, pause) != nil || s.isFound() {
			return
		}
		if s.mayDial(last) && s.pool.opts.Redial(s.name) && s.endAwaiting(failures) {
			return
		}
	}
}

// redialPause returns the time before the first look after a number of dials that have failed in a
// row. The number is 0 if a dial has succeeded since the failure.
func redialPause(failed int) time.Duration {
	const doublings = 10 // far beyond the limit
	return min(startPause<<min(max(failed-1, 0), doublings), redialLimit)
}

// lookLimit returns the longest pause between two looks after a failure.
func (f ownerFailure) lookLimit() time.Duration {
	if f.failed {
		return serverLookLimit
	}
	return leaseLookLimit
}

// lastFailure returns why the owner could not be dialed, how often it could not, and how often
// since the last dial that has succeeded.
func (s *server) lastFailure() (last ownerFailure, failures, inRow int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awaited, s.failures, s.failedInRow
}

// isFound ends the goroutine of awaitOwner if the last dial has succeeded.
func (s *server) isFound() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isAwaiting = s.failedInRow > 0
	return !s.isAwaiting
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

// mayBeHeldBy reports whether a replica may still hold the lease.
func (s *server) mayBeHeldBy(owner string) bool {
	holder, err := replica.Holder(s.pool.ctx, s.pool.opts.Values, s.key())
	return err != nil || holder == owner
}

// isReadyAt reports whether the server can be used at its owner.
func (s *server) isReadyAt(owner string) bool {
	answer, err := s.pool.opts.Network.Send(s.pool.ctx, owner, message{Kind: checkServer, Server: s.name, Entry: s.entry}.encode(nil))
	return err == nil && bytes.Equal(answer, answerReady)
}
