package client

import (
	"context"
	"sync"
	"time"
)

// callClock applies the limits Idle and Total to one call. It stops while a question of the server
// is being answered. A nil clock has no limits.
type callClock struct {
	method      string
	idle, total time.Duration // 0 means no limit
	cancel      context.CancelCauseFunc

	mu           sync.Mutex
	paused       int           // number of questions being answered
	awaiting     bool          // between a request and its response: Idle counts
	spent        time.Duration // of Total, before resumedAt
	resumedAt    time.Time     // start of the current run of Total
	lastActivity time.Time     // last sign of life
	timer        *time.Timer   // fires when the nearer limit may be reached
	over         bool
}

type clockKey struct{}

// startClock starts the clock of a call and returns the context that ends with its limits.
func (c *Client) startClock(ctx context.Context, method string, o *CallOptions) (context.Context, *callClock) {
	idle, total := effectiveLimit(o.Limits.Idle, c.opts.Limits.Idle), effectiveLimit(o.Limits.Total, c.opts.Limits.Total)
	if idle == 0 && total == 0 {
		return ctx, nil
	}
	k := &callClock{method: method, idle: idle, total: total, resumedAt: time.Now()}
	ctx, k.cancel = context.WithCancelCause(ctx)
	k.mu.Lock()
	k.timer = time.AfterFunc(time.Hour, k.onTimer)
	k.armTimer()
	k.mu.Unlock()
	c.clocks.addClock(k)
	return context.WithValue(ctx, clockKey{}, k), k
}

// stopClock stops the clock.
func (c *Client) stopClock(k *callClock) {
	if k == nil {
		return
	}
	c.clocks.removeClock(k)
	k.mu.Lock()
	k.over = true
	k.timer.Stop()
	k.mu.Unlock()
	k.cancel(nil)
}

func effectiveLimit(own, general time.Duration) time.Duration {
	if own == 0 {
		own = general
	}
	return max(own, 0)
}

// armTimer sets the timer to the nearer limit. The caller holds k.mu.
func (k *callClock) armTimer() {
	kind, left := k.nextLimit()
	if kind == "" {
		k.timer.Stop()
		return
	}
	k.timer.Reset(left)
}

// nextLimit returns the limit that will be reached first, and the time left; kind is empty if no
// limit counts now. The caller holds k.mu.
func (k *callClock) nextLimit() (kind TimeoutKind, left time.Duration) {
	if k.over || k.paused > 0 {
		return "", 0
	}
	now := time.Now()
	if k.total > 0 {
		kind, left = TimeoutTotal, k.total-k.spent-now.Sub(k.resumedAt)
	}
	if k.idle > 0 && k.awaiting {
		if idle := k.idle - now.Sub(k.lastActivity); kind == "" || idle < left {
			kind, left = TimeoutIdle, idle
		}
	}
	return kind, left
}

// onTimer ends the call if a limit is reached. Activity does not reset the timer, so the timer may
// fire early; it is then set again.
func (k *callClock) onTimer() {
	k.mu.Lock()
	defer k.mu.Unlock()
	kind, left := k.nextLimit()
	switch {
	case kind == "":
	case left > 0:
		k.timer.Reset(left)
	case kind == TimeoutIdle:
		k.cancel(&TimeoutError{Kind: kind, After: k.idle, Method: k.method})
	default:
		k.cancel(&TimeoutError{Kind: kind, After: k.total, Method: k.method})
	}
}

// requestSent and responseReceived mark the time in which Idle counts.
func (k *callClock) requestSent() { k.setAwaiting(true) }

func (k *callClock) responseReceived() { k.setAwaiting(false) }

func (k *callClock) setAwaiting(sent bool) {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.awaiting, k.lastActivity = sent, time.Now()
	k.armTimer()
	k.mu.Unlock()
}

// hasIdleLimit reports whether signs of life matter.
func (k *callClock) hasIdleLimit() bool { return k != nil && k.idle > 0 }

// recordActivity records a sign of life. It does not touch the timer, which checks the time when it
// fires.
func (k *callClock) recordActivity() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.lastActivity = time.Now()
	k.mu.Unlock()
}

// pauseClock stops the clock while a question is being answered. Calls nest; each needs a
// resumeClock.
func (k *callClock) pauseClock() {
	if k == nil {
		return
	}
	k.mu.Lock()
	if k.paused++; k.paused == 1 {
		k.spent += time.Since(k.resumedAt)
	}
	k.armTimer()
	k.mu.Unlock()
}

func (k *callClock) resumeClock() {
	if k == nil {
		return
	}
	k.mu.Lock()
	if k.paused--; k.paused == 0 {
		k.resumedAt = time.Now()
		k.lastActivity = k.resumedAt
	}
	k.armTimer()
	k.mu.Unlock()
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
