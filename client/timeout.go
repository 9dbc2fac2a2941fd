package client

import (
	"context"
	"sync"
	"time"
)

// clock holds a call to its limits. A nil clock has none.
type clock struct {
	method      string
	idle, total time.Duration // 0 for none
	cancel      context.CancelCauseFunc

	mu     sync.Mutex
	paused int           // questions that are being answered
	sent   bool          // between a request and its response: idle runs
	spent  time.Duration // of total, before began
	began  time.Time     // of the present run of total
	alive  time.Time     // the last sign of life
	timer  *time.Timer   // fires at what is due first
	over   bool
}

type clockKey struct{}

// start begins to measure a call and returns the context that ends with its limits.
func (c *Client) start(ctx context.Context, method string, o *CallOptions) (context.Context, *clock) {
	idle, total := limit(o.Limits.Idle, c.opts.Limits.Idle), limit(o.Limits.Total, c.opts.Limits.Total)
	if idle == 0 && total == 0 {
		return ctx, nil
	}
	k := &clock{method: method, idle: idle, total: total, began: time.Now()}
	ctx, k.cancel = context.WithCancelCause(ctx)
	k.mu.Lock()
	k.timer = time.AfterFunc(time.Hour, k.ring)
	k.arm()
	k.mu.Unlock()
	c.clock.add(k)
	return context.WithValue(ctx, clockKey{}, k), k
}

// stop ends the measuring.
func (c *Client) stop(k *clock) {
	if k == nil {
		return
	}
	c.clock.remove(k)
	k.mu.Lock()
	k.over = true
	k.timer.Stop()
	k.mu.Unlock()
	k.cancel(nil)
}

func limit(own, general time.Duration) time.Duration {
	if own == 0 {
		own = general
	}
	return max(own, 0)
}

// arm sets the timer to what is due first; k.mu is held.
func (k *clock) arm() {
	kind, left := k.due()
	if kind == "" {
		k.timer.Stop()
		return
	}
	k.timer.Reset(left)
}

// due returns the limit that is reached first, and when.
func (k *clock) due() (kind TimeoutKind, left time.Duration) {
	if k.over || k.paused > 0 {
		return "", 0
	}
	now := time.Now()
	if k.total > 0 {
		kind, left = TimeoutTotal, k.total-k.spent-now.Sub(k.began)
	}
	if k.idle > 0 && k.sent {
		if idle := k.idle - now.Sub(k.alive); kind == "" || idle < left {
			kind, left = TimeoutIdle, idle
		}
	}
	return kind, left
}

// ring runs when the timer fires: a sign of life may have come since it was set.
func (k *clock) ring() {
	k.mu.Lock()
	defer k.mu.Unlock()
	kind, left := k.due()
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

// send says that a request goes out, received that its response is there; idle counts in between.
func (k *clock) send() { k.set(true) }

func (k *clock) received() { k.set(false) }

func (k *clock) set(sent bool) {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.sent, k.alive = sent, time.Now()
	k.arm()
	k.mu.Unlock()
}

// listens reports whether a sign of life makes a difference.
func (k *clock) listens() bool { return k != nil && k.idle > 0 }

// touch is a sign of life. The timer is left alone: it looks when it fires.
func (k *clock) touch() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.alive = time.Now()
	k.mu.Unlock()
}

// pause stops the clock while a question is being answered; resume goes on.
func (k *clock) pause() {
	if k == nil {
		return
	}
	k.mu.Lock()
	if k.paused++; k.paused == 1 {
		k.spent += time.Since(k.began)
	}
	k.arm()
	k.mu.Unlock()
}

func (k *clock) resume() {
	if k == nil {
		return
	}
	k.mu.Lock()
	if k.paused--; k.paused == 0 {
		k.began = time.Now()
		k.alive = k.began
	}
	k.arm()
	k.mu.Unlock()
}

// clocks are those of the calls in flight that have limits.
type clocks struct {
	mu      sync.Mutex
	running map[*clock]struct{}
}

func (c *clocks) add(k *clock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[*clock]struct{}{}
	}
	c.running[k] = struct{}{}
}

func (c *clocks) remove(k *clock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, k)
}

// pause stops the clock of the call that ctx belongs to or, where the transport does not know it, of all calls: one of
// them waits for the answer.
func (c *clocks) pause(ctx context.Context) (resume func()) {
	if k, ok := ctx.Value(clockKey{}).(*clock); ok {
		k.pause()
		return k.resume
	}
	c.mu.Lock()
	paused := make([]*clock, 0, len(c.running))
	for k := range c.running {
		k.pause()
		paused = append(paused, k)
	}
	c.mu.Unlock()
	return func() {
		for _, k := range paused {
			k.resume()
		}
	}
}
