package client

import (
	"context"
	"sync"
	"time"
)

// callClock holds a call to its limits. A nil clock has none.
type callClock struct {
	method      string
	idle, total time.Duration // 0 for none
	cancel      context.CancelCauseFunc

	mu     sync.Mutex
	paused int           // questions that are being answered
	awaiting   bool          // between a request and its response: idle runs
	spent  time.Duration // of total, before began
	resumedAt  time.Time     // of the present run of total
	lastActivity  time.Time     // the last sign of life
	timer  *time.Timer   // fires at what is due first
	over   bool
}

type clockKey struct{}

// startClock begins to measure a call and returns the context that ends with its limits.
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

// stopClock ends the measuring.
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

// armTimer sets the timer to what is due first; k.mu is held.
func (k *callClock) armTimer() {
	kind, left := k.nextLimit()
	if kind == "" {
		k.timer.Stop()
		return
	}
	k.timer.Reset(left)
}

// nextLimit returns the limit that is reached first, and when.
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

// onTimer runs when the timer fires: a sign of life may have come since it was set.
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

// requestSent says that a request goes out, received that its response is there; idle counts in between.
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

// hasIdleLimit reports whether a sign of life makes a difference.
func (k *callClock) hasIdleLimit() bool { return k != nil && k.idle > 0 }

// recordActivity is a sign of life. The timer is left alone: it looks when it fires.
func (k *callClock) recordActivity() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.lastActivity = time.Now()
	k.mu.Unlock()
}

// pauseClock stops the clock while a question is being answered; resume goes on.
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

// callClocks are those of the calls in flight that have limits.
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

// pauseFor stops the clock of the call that ctx belongs to or, where the transport does not know it, of all calls: one of
// them waits for the answer.
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
