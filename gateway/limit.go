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

// Limits bound what clients may do. A zero field bounds nothing.
type Limits struct {
	// Rate is how many requests a client may send in a second, after a burst of Burst; Burst is at least 1.
	Rate  float64
	Burst int
	// Concurrent is how many requests of a client may be worked on at the same time. Subscriptions do not count.
	Concurrent int
}

// maxClients bounds the clients whose use is remembered: those that were quiet longest are forgotten.
const maxClients = 10000

// Limit returns a middleware that refuses what is beyond. A client is a principal, else a session, else all that have
// neither.
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

type limiter struct {
	opts Limits

	mu      sync.Mutex
	clients map[string]*usage
}

// usage is what one client does.
type usage struct {
	rate    *rate.Limiter
	running int
	last    time.Time
}

func (l *limiter) startRequest(who hub.Caller) (done func(), err error) {
	key := who.Principal
	if key == "" {
		key = "session " + who.Session
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

// clientUse returns that of a client; l.mu is held.
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

// forgetOldest makes room; l.mu is held.
func (l *limiter) forgetOldest() {
	var oldest string
	for key, u := range l.clients {
		if u.running == 0 && (oldest == "" || u.last.Before(l.clients[oldest].last)) {
			oldest = key
		}
	}
	delete(l.clients, oldest)
}
