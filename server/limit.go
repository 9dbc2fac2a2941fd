package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
	"golang.org/x/time/rate"
)

// Limit bounds a rate: PerSecond events per second on average, and Burst events at once (at least
// 1). A negative PerSecond is no limit. All callers share one limit on transports without
// principals. In a cluster (package cluster), a limit other than the default counts for all
// replicas together.
type Limit struct {
	PerSecond float64
	Burst     int
}

// limiter applies a Limit to each principal separately.
type limiter struct {
	limit  Limit
	shared *replica.Usage // nil without replicas

	mu          sync.Mutex
	perSecond   rate.Limit // at this replica
	byPrincipal map[string]*rate.Limiter
	sweepAt     int // the size at which full buckets are dropped; a new bucket is full as well
}

// defaultLimit stops a runaway loop. No model and no user comes near it.
var defaultLimit = Limit{PerSecond: 10_000, Burst: 10_000}

const minSweep = 1024

// roundsPerCall is how many more rounds than calls a principal gets. Clients give up a call after
// as many rounds.
const roundsPerCall = 16

// widen returns the limit multiplied by n.
func (l Limit) widen(n int) Limit {
	return Limit{PerSecond: l.PerSecond * float64(n), Burst: max(l.Burst, 1) * n}
}

// checkLimit takes a token from the principal's limit. A valid state proves that the request
// continues a call; it then counts against the limit of rounds.
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
	return &limiter{limit: l, perSecond: rate.Limit(l.PerSecond), byPrincipal: map[string]*rate.Limiter{}, sweepAt: minSweep}
}

// share makes the limit count for all replicas of a server together. While they cannot tell each
// other of their calls, each has its share. Without replicas or a limit, it does nothing.
func (l *limiter) share(network replica.Network, server string) {
	if l == nil || network == nil {
		return
	}
	l.shared = replica.ShareUsage(replica.UsageOptions{Network: network, Name: "server " + server, Burst: l.limit.Burst, Count: l.takeTokens,
		Divide: func(by int) { l.setRate(rate.Limit(l.limit.PerSecond) / rate.Limit(by)) }})
}

// takeTokens takes tokens for calls at another replica.
func (l *limiter) takeTokens(used map[string]int) {
	now := time.Now()
	for id, n := range used {
		for bucket := l.limiterFor(id, now); n > 0; n -= l.limit.Burst {
			bucket.ReserveN(now, min(n, l.limit.Burst))
		}
	}
}

// setRate sets the rate of each principal at this replica.
func (l *limiter) setRate(perSecond rate.Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.perSecond == perSecond {
		return
	}
	l.perSecond = perSecond
	for _, r := range l.byPrincipal {
		r.SetLimit(perSecond)
	}
}

// endSharing ends the sharing.
func (l *limiter) endSharing() {
	if l != nil {
		l.shared.Close()
	}
}

// takeToken takes a token from the principal's bucket. The error says when to try again.
func (l *limiter) takeToken(p mcp.Principal) error {
	if l == nil {
		return nil
	}
	now := time.Now()
	bucket := l.limiterFor(p.ID, now)
	if bucket.AllowN(now, 1) { // does not allocate
		l.shared.Note(p.ID)
		return nil
	}
	r := bucket.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		l.shared.Note(p.ID)
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
		r = rate.NewLimiter(l.perSecond, l.limit.Burst)
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
