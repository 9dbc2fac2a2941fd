package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"golang.org/x/time/rate"
)

// Limits bound the requests of each client. A zero field bounds nothing.
type Limits struct {
	// Rate is the number of requests per second, after a burst of Burst requests. Burst is at least
	// 1.
	Rate  float64
	Burst int
	// Concurrent is the number of requests in flight. Subscriptions do not count.
	Concurrent int
}

// maxClients limits the clients that a limiter remembers. Beyond it, it forgets the one without
// requests for the longest time.
const maxClients = 10000

// Limit returns a middleware that refuses requests beyond the limits. A client is a principal, else
// a session; clients with neither count as one.
func Limit(o Limits) mcp.Middleware {
	l := &limiter{opts: o, clients: map[string]*usage{}}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				return next.ServeMCP(ctx, req)
			}
			done, err := l.startRequest(callerOf(req))
			if err != nil {
				return nil, err
			}
			defer done()
			return next.ServeMCP(ctx, req)
		})
	}
}

// limiter is the state of the middleware of [Limit].
type limiter struct {
	opts Limits

	mu      sync.Mutex
	clients map[string]*usage
}

// usage is the recent activity of one client.
type usage struct {
	rate    *rate.Limiter
	running int
	last    time.Time
}

// startRequest counts a request. The caller calls done at its end.
func (l *limiter) startRequest(caller hub.Caller) (done func(), err error) {
	key := caller.Principal
	if key == "" {
		key = "session " + caller.Session
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.clientUse(key)
	switch {
	case l.opts.Concurrent > 0 && u.running >= l.opts.Concurrent:
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%d requests of this client are being worked on: wait for one to end", u.running)
	case u.rate != nil && !u.rate.Allow():
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "more than %g requests a second: wait and try again", l.opts.Rate)
	}
	u.running++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		u.running--
	}, nil
}

// clientUse returns the usage of a client. l.mu is held.
func (l *limiter) clientUse(key string) *usage {
	u := l.clients[key]
	if u == nil {
		if len(l.clients) >= maxClients {
			l.forgetOldest()
		}
		u = &usage{}
		if l.opts.Rate > 0 {
			u.rate = rate.NewLimiter(rate.Limit(l.opts.Rate), max(1, l.opts.Burst))
		}
		l.clients[key] = u
	}
	u.last = time.Now()
	return u
}

// forgetOldest removes the client that has been idle longest. l.mu is held.
func (l *limiter) forgetOldest() {
	var oldest string
	for key, u := range l.clients {
		if u.running == 0 && (oldest == "" || u.last.Before(l.clients[oldest].last)) {
			oldest = key
		}
	}
	delete(l.clients, oldest)
}
