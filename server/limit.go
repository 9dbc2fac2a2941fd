package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"golang.org/x/time/rate"
)

// Limit bounds how often something happens: PerSecond times in the long run, Burst times at once (at least 1). The zero
// Limit is none. On transports that know no principals all callers share one.
type Limit struct {
	PerSecond float64
	Burst     int
}

// limiter applies a Limit to each principal.
type limiter struct {
	limit Limit

	mu    sync.Mutex
	byPrincipal    map[string]*rate.Limiter
	sweepAt int // the number of limiters at which those that are full are dropped: a new one is full as well
}

const minSweep = 1024

// roundsPerCall is how many more rounds than calls a principal gets: clients give up a call after as many.
const roundsPerCall = 16

// widen returns the limit widened by n.
func (l Limit) widen(n int) Limit {
	return Limit{PerSecond: l.PerSecond * float64(n), Burst: max(l.Burst, 1) * n}
}

// checkLimit takes the call from what its principal has left. The rounds of a call that has begun, as its state proves, are no
// calls.
func (s *Server) checkLimit(c *call) error {
	if c.params.state != nil {
		return s.roundLimiter.takeToken(c.req.Principal)
	}
	return s.callLimiter.takeToken(c.req.Principal)
}

func newLimiter(l Limit) *limiter {
	if l.PerSecond <= 0 {
		return nil
	}
	l.Burst = max(l.Burst, 1)
	return &limiter{limit: l, byPrincipal: map[string]*rate.Limiter{}, sweepAt: minSweep}
}

// takeToken takes one from what the principal has left. The error says when to try again.
func (l *limiter) takeToken(p mcp.Principal) error {
	if l == nil {
		return nil
	}
	now := time.Now()
	r := l.limiterFor(p.ID, now).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now)
	return fmt.Errorf("rate limit exceeded: try again in %v", roundUp(wait))
}

func roundUp(d time.Duration) time.Duration {
	if d < time.Second {
		return max(d.Truncate(time.Millisecond)+time.Millisecond, time.Millisecond)
	}
	return (d + time.Second - 1).Truncate(time.Second)
}

func (l *limiter) limiterFor(id string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.byPrincipal[id]
	if r == nil {
		if len(l.byPrincipal) >= l.sweepAt {
			l.dropFull(now)
		}
		r = rate.NewLimiter(rate.Limit(l.limit.PerSecond), l.limit.Burst)
		l.byPrincipal[id] = r
	}
	return r
}

func (l *limiter) dropFull(now time.Time) {
	for id, r := range l.byPrincipal {
		if r.TokensAt(now) >= float64(l.limit.Burst) {
			delete(l.byPrincipal, id)
		}
	}
	l.sweepAt = max(minSweep, 2*len(l.byPrincipal))
}
