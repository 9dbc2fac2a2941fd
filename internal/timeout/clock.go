package timeout

import (
	"sync"
	"time"
)

// Limit is one of the two limits of a [Clock].
type Limit int

const (
	// Idle limits the time without a sign of life.
	Idle Limit = iota + 1
	// Total limits the time from the start to the end.
	Total
)

// ClockOwner is told when a limit of its [Clock] is exceeded.
type ClockOwner interface {
	// Exceed is called once, on a goroutine of its own, with the clock locked: it must not call the
	// clock.
	Exceed(limit Limit, after time.Duration)
}

// Clock limits one call: the whole time that it takes, and the time without a sign of life while it
// waits for the other side. It stands still while it is paused. It uses one timer, which a sign of
// life does not touch, so that a call with many signs of life stays cheap. The zero Clock is not
// started; all methods are safe for concurrent use after Start.
type Clock struct {
	owner       ClockOwner
	idle, total time.Duration // 0 for none

	mu        sync.Mutex
	paused    int           // number of pauses that have not ended
	waiting   bool          // idle runs
	elapsed   time.Duration // of total, before resumedAt
	resumedAt time.Time     // start of the current run of total
	lastSign  time.Time     // of life
	timer     *time.Timer   // fires when the nearer limit may be exceeded
	stopped   bool
}

// Start starts the clock, with the idle limit not running until [Clock.SetWaiting]. A limit of 0 is
// never exceeded. Start must be called once, before every other method.
func (c *Clock) Start(idle, total time.Duration, owner ClockOwner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owner, c.idle, c.total, c.resumedAt = owner, idle, total, time.Now()
	c.timer = time.AfterFunc(time.Hour, c.fire)
	c.resetTimer()
}

// Stop ends the clock. It reports no limits afterwards.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}

// SetWaiting says whether the call waits for the other side, which is when the idle limit runs. It
// counts as a sign of life.
func (c *Clock) SetWaiting(waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting, c.lastSign = waiting, time.Now()
	c.resetTimer()
}

// NeedsSigns reports whether signs of life make a difference.
func (c *Clock) NeedsSigns() bool { return c.idle > 0 }

// Touch is a sign of life.
func (c *Clock) Touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastSign = time.Now() // the timer looks at it when it fires
}

// Pause stops the clock until [Clock.Resume], such as while a user answers a question. Pauses may
// overlap.
func (c *Clock) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.paused == 1 {
		c.elapsed += time.Since(c.resumedAt)
	}
	c.resetTimer()
}

// Resume ends a pause. After the last one the total limit continues, and the idle limit starts
// again.
func (c *Clock) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused--; c.paused == 0 {
		c.resumedAt = time.Now()
		c.lastSign = c.resumedAt
	}
	c.resetTimer()
}

// resetTimer sets the timer to the nearer limit. c.mu is held.
func (c *Clock) resetTimer() {
	limit, left := c.nextLimit()
	if limit == 0 {
		c.timer.Stop()
		return
	}
	c.timer.Reset(left)
}

// nextLimit returns the limit that would be exceeded first, and after which time; 0 if none runs.
// c.mu is held.
func (c *Clock) nextLimit() (limit Limit, left time.Duration) {
	if c.stopped || c.paused > 0 {
		return 0, 0
	}
	now := time.Now()
	if c.total > 0 {
		limit, left = Total, c.total-c.elapsed-now.Sub(c.resumedAt)
	}
	if c.idle > 0 && c.waiting {
		if idle := c.idle - now.Sub(c.lastSign); limit == 0 || idle < left {
			limit, left = Idle, idle
		}
	}
	return limit, left
}

// fire runs when the timer fires. A sign of life may have come since the timer was set.
func (c *Clock) fire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit, left := c.nextLimit()
	switch {
	case limit == 0:
	case left > 0:
		c.timer.Reset(left)
	case limit == Idle:
		c.stopped = true
		c.owner.Exceed(Idle, c.idle)
	default:
		c.stopped = true
		c.owner.Exceed(Total, c.total)
	}
}
