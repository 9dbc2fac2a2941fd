// Package ratelimit holds clients to limits of calls. The replicas of a cluster tell each other
// which calls they have let through, so a limit counts for all of them together.
package ratelimit

import (
	"fmt"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"golang.org/x/time/rate"
)

// Options are the limits of each client. A zero limit bounds nothing.
type Options struct {
	// Rate is the number of calls per second, after a burst of Burst calls. Burst is at least 1.
	Rate  float64
	Burst int
	// Concurrent is the number of requests in flight at this process.
	Concurrent int
	// Network connects the replicas. It is nil without replicas.
	Network replica.Network
}

// maxWait is how long a call above the rate waits for its time. If it had to wait longer, it is
// refused.
const maxWait = 10 * time.Second

// maxClients limits the clients that a limiter remembers. Beyond it, it forgets the one without
// requests for the longest time.
const maxClients = 10000

// Limiter counts the requests of clients. It is safe for concurrent use.
type Limiter struct {
	opts   Options
	shared *replica.Usage // nil without replicas

	mu      sync.Mutex
	clients map[string]*usage
	limit   rate.Limit // of each client at this replica
}

// usage is the recent activity of one client.
type usage struct {
	rate    *rate.Limiter
	running int
	last    time.Time
}

// New returns a limiter. With replicas, it is in use until the network ends.
func New(o Options) *Limiter {
	l := &Limiter{opts: o, clients: map[string]*usage{}, limit: rate.Limit(o.Rate)}
	if o.Network != nil && o.Rate > 0 {
		l.shared = replica.ShareUsage(replica.UsageOptions{Network: o.Network, Burst: o.Burst, Count: l.use,
			Divide: func(by int) { l.setLimit(rate.Limit(o.Rate) / rate.Limit(by)) }})
	}
	return l
}

// Start counts a request of a client. isCall says that it counts for the rate. It returns how long
// the request must wait, or why it is refused. The caller calls done at the request's end.
func (l *Limiter) Start(key string, isCall bool) (wait time.Duration, done func(), refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.clientUse(key)
	if l.opts.Concurrent > 0 && u.running >= l.opts.Concurrent {
		return 0, nil, fmt.Sprintf("%d requests of this client are in progress, which is the limit: wait for one to end, and try again", u.running)
	}
	if isCall && u.rate != nil {
		now := time.Now()
		reserved := u.rate.ReserveN(now, 1)
		if wait = reserved.DelayFrom(now); wait > maxWait {
			reserved.CancelAt(now)
			return 0, nil, fmt.Sprintf("the limit is %s, and this client has exceeded it: try again in %v", describeRate(l.opts.Rate), wait.Round(time.Second))
		}
		l.shared.Note(key)
	}
	u.running++
	return wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		u.running--
	}, ""
}

// describeRate returns a rate in calls per second, minute or hour.
func describeRate(perSecond float64) string {
	switch {
	case perSecond >= 1:
		return fmt.Sprintf("%.4g calls a second", perSecond)
	case perSecond >= 1.0/60:
		return fmt.Sprintf("%.4g calls a minute", perSecond*60)
	}
	return fmt.Sprintf("%.4g calls an hour", perSecond*3600)
}

// clientUse returns the usage of a client. l.mu is held.
func (l *Limiter) clientUse(key string) *usage {
	u := l.clients[key]
	if u == nil {
		if len(l.clients) >= maxClients {
			l.forgetOldest()
		}
		u = &usage{}
		if l.opts.Rate > 0 {
			u.rate = rate.NewLimiter(l.limit, max(1, l.opts.Burst))
		}
		l.clients[key] = u
	}
	u.last = time.Now()
	return u
}

// forgetOldest removes the client that has been idle longest. l.mu is held.
func (l *Limiter) forgetOldest() {
	var oldest string
	for key, u := range l.clients {
		if u.running == 0 && (oldest == "" || u.last.Before(l.clients[oldest].last)) {
			oldest = key
		}
	}
	delete(l.clients, oldest)
}

// setLimit sets the rate of each client at this replica.
func (l *Limiter) setLimit(limit rate.Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit == limit {
		return
	}
	l.limit = limit
	for _, u := range l.clients {
		u.rate.SetLimit(limit)
	}
}

// use counts calls that another replica has let through.
func (l *Limiter) use(calls map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, burst := time.Now(), max(1, l.opts.Burst)
	for key, n := range calls {
		u := l.clientUse(key)
		for ; n > 0; n -= burst {
			u.rate.ReserveN(now, min(n, burst))
		}
	}
}
