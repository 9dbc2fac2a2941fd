package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/internal/timeout"
)

// callClock applies the limits Idle and Total to one call. It stops while a question of the server
// is being answered. A nil clock has no limits.
type callClock struct {
	timeout.Clock
	method  string
	cancel  context.CancelCauseFunc
	atLogin atomic.Bool // the user logs in
}

type clockKey struct{}

// startClock starts the clock of a call and returns the context that ends with its limits.
func (c *Client) startClock(ctx context.Context, method string, o *CallOptions) (context.Context, *callClock) {
	idle, total := effectiveLimit(o.Limits.Idle, c.opts.Limits.Idle), effectiveLimit(o.Limits.Total, c.opts.Limits.Total)
	if idle == 0 && total == 0 {
		return ctx, nil // the transport applies the defaults
	}
	ctx = timeout.WithOwnLimits(ctx, idle != 0, total != 0)
	if idle, total = max(idle, 0), max(total, 0); idle == 0 && total == 0 {
		return ctx, nil
	}
	k := &callClock{method: method}
	ctx, k.cancel = context.WithCancelCause(ctx)
	k.Start(idle, total, k)
	c.clocks.addClock(k)
	ctx = startphase.WithObserver(ctx, k.enterPhase)
	return context.WithValue(ctx, clockKey{}, k), k
}

// stopClock stops the clock.
func (c *Client) stopClock(k *callClock) {
	if k == nil {
		return
	}
	c.clocks.removeClock(k)
	k.Stop()
	k.cancel(nil)
}

// effectiveLimit returns the limit of a call: 0 for the default, and less for none.
func effectiveLimit(own, general time.Duration) time.Duration {
	if own == 0 {
		return general
	}
	return own
}

// asTimeoutError returns err as a [TimeoutError] if the transport has applied a default limit.
func asTimeoutError(err error, method string) error {
	if late, ok := errors.AsType[*timeout.DefaultError](err); ok {
		return &TimeoutError{Kind: timeoutKind(late.Limit), After: late.After, Method: method}
	}
	return err
}

func timeoutKind(limit timeout.Limit) TimeoutKind {
	if limit == timeout.Idle {
		return TimeoutIdle
	}
	return TimeoutTotal
}

// Exceed implements [timeout.ClockOwner]. It ends the call.
func (k *callClock) Exceed(limit timeout.Limit, after time.Duration) {
	k.cancel(&TimeoutError{Kind: timeoutKind(limit), After: after, Method: k.method})
}

// requestSent and responseReceived mark the time in which Idle counts.
func (k *callClock) requestSent() {
	if k != nil {
		k.SetWaiting(true)
	}
}

func (k *callClock) responseReceived() {
	if k != nil {
		k.SetWaiting(false)
	}
}

// enterPhase stops the clock while the user logs in.
func (k *callClock) enterPhase(p startphase.Phase) {
	isLogin := p.LoginURL != ""
	switch was := k.atLogin.Swap(isLogin); {
	case isLogin && !was:
		k.pauseClock()
	case was && !isLogin:
		k.resumeClock()
	}
}

// hasIdleLimit reports whether the call has an idle limit, so that recordActivity has an effect.
func (k *callClock) hasIdleLimit() bool { return k != nil && k.NeedsSigns() }

func (k *callClock) recordActivity() {
	if k != nil {
		k.Touch()
	}
}

// pauseClock stops the clock while a question is being answered. Pauses may overlap; each needs a
// resumeClock.
func (k *callClock) pauseClock() {
	if k != nil {
		k.Pause()
	}
}

func (k *callClock) resumeClock() {
	if k != nil {
		k.Resume()
	}
}

// callClocks holds the clocks of all running calls that have limits.
type callClocks struct {
	mu      sync.Mutex
	running map[*callClock]struct{}
}

func (c *callClocks) addClock(k *callClock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[*callClock]struct{}{}
	}
	c.running[k] = struct{}{}
}

func (c *callClocks) removeClock(k *callClock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, k)
}

// pauseFor stops the clock of the call that ctx belongs to. If the transport does not know the
// call, it stops the clocks of all calls, since one of them waits for the answer.
func (c *callClocks) pauseFor(ctx context.Context) (resume func()) {
	if k, ok := ctx.Value(clockKey{}).(*callClock); ok {
		k.pauseClock()
		return k.resumeClock
	}
	c.mu.Lock()
	paused := make([]*callClock, 0, len(c.running))
	for k := range c.running {
		k.pauseClock()
		paused = append(paused, k)
	}
	c.mu.Unlock()
	return func() {
		for _, k := range paused {
			k.resumeClock()
		}
	}
}
