package calling

import (
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// sweepInterval is the time between two sweeps over the requests in flight. A request exceeds a
// default limit by up to one interval.
const sweepInterval = time.Minute

// requestAge counts the sweeps that a request has seen, so that a request costs no clock and no
// timer of its own. caller.mu guards it.
type requestAge struct {
	sweeps int // since the request was sent
	silent int // since the last sign of life
}

// startSweeps starts the sweeps, unless they run. They end by themselves when no request is in
// flight. The caller holds c.mu.
func (c *caller) startSweeps() {
	if c.isSweeping {
		return
	}
	c.isSweeping = true
	if c.sweepTimer == nil {
		c.sweepTimer = time.AfterFunc(sweepInterval, c.sweepRequests)
	} else {
		c.sweepTimer.Reset(sweepInterval)
	}
}

// sweepRequests ends the requests that have exceeded a default limit, and cancels them at the
// server (basic/patterns/cancellation: timeouts).
func (c *caller) sweepRequests() {
	for _, late := range c.endLateExchanges() {
		c.dropRequest(late.id, late.err)
		if frame := encodeCancellation(late.id, late.err); frame != nil && !c.isCancelledByAbort() {
			c.writeUnawaited(frame)
		}
	}
}

// isCancelledByAbort reports whether the end of a transfer cancels its request at the server.
func (c *caller) isCancelledByAbort() bool {
	return c.carrier != nil && c.currentRevision().Modern()
}

// lateRequest is a request that has exceeded a default limit.
type lateRequest struct {
	id  jsonrpc.ID
	err *timeout.DefaultError
}

// endLateExchanges ages the requests in flight, and ends and returns the late ones.
func (c *caller) endLateExchanges() (late []lateRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isSweeping = len(c.pending) > 0 && !c.closed; !c.isSweeping {
		return nil
	}
	isAsked := len(c.questions) > 0 // one of the requests waits for an answer of this side
	for id, x := range c.pending {
		if isAsked {
			x.age.silent = 0
			continue
		}
		x.age.sweeps++
		x.age.silent++
		err := x.exceededLimit()
		if err == nil {
			continue
		}
		delete(c.pending, id)
		late = append(late, lateRequest{x.id, err})
		x.deliverReply(reply{err: err}) // x cannot be reused before c.mu is unlocked
		if x.abort != nil {
			x.abort()
		}
	}
	c.sweepTimer.Reset(sweepInterval)
	return late
}

// exceededLimit returns an error if the request has exceeded a default limit. Subscriptions, and
// requests that wait for the end of a task, may last. Connect has limits of its own, and initialize
// must not be cancelled (basic/lifecycle of 2025-11-25).
func (x *exchange) exceededLimit() *timeout.DefaultError {
	const maxSilent, maxSweeps = int(timeout.DefaultIdle / sweepInterval), int(timeout.DefaultTotal / sweepInterval)
	if x.age.silent <= maxSilent && x.age.sweeps <= maxSweeps || x.isExempt() {
		return nil
	}
	ownIdle, ownTotal := timeout.HasOwnLimits(x.ctx)
	switch {
	case x.age.silent > maxSilent && !ownIdle:
		return &timeout.DefaultError{Limit: timeout.Idle, After: timeout.DefaultIdle}
	case x.age.sweeps > maxSweeps && !ownTotal:
		return &timeout.DefaultError{Limit: timeout.Total, After: timeout.DefaultTotal}
	}
	return nil
}

// noteSign notes a sign of life of requests.
func (c *caller) noteSign(all ...*exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range all {
		x.age.silent = 0
	}
}

// isExempt reports whether a request has no default limits.
func (x *exchange) isExempt() bool {
	switch x.method {
	case mcp.MethodListen, mcpwire.MethodTaskResult, mcpwire.MethodInitialize:
		return true
	}
	return x.ctx == nil && !x.lateProbe // the probe of Connect
}
