package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"golang.org/x/time/rate"
)

// Limits bound the requests of each client. A zero field bounds nothing.
type Limits struct {
	// Rate is the number of calls per second, after a burst of Burst calls: of tools, prompts,
	// resources and completions. Lists do not count. Burst is at least 1.
	Rate  float64
	Burst int
	// Concurrent is the number of requests in flight. Subscriptions do not count.
	Concurrent int
}

// maxRateWait is how long a call above the rate waits for its time. If it had to wait longer, it is
// refused.
const maxRateWait = 10 * time.Second

// maxClients limits the clients that a limiter remembers. Beyond it, it forgets the one without
// requests for the longest time.
const maxClients = 10000

// Limit returns a middleware that holds clients to the limits. A call above the rate waits up to 10
// seconds. What exceeds the limits is refused: a tool call with a result that a model understands,
// everything else with an error. A client is a principal, else a session; clients with neither
// count as one.
func Limit(o Limits) mcp.Middleware {
	l := &limiter{opts: o, clients: map[string]*usage{}}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				return next.ServeMCP(ctx, req)
			}
			wait, done, refusal := l.startRequest(callerOf(req), isCall(req.Method))
			if refusal != "" {
				return refuseRequest(req, refusal)
			}
			defer done()
			if wait > 0 {
				timer := time.NewTimer(wait)
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

// isCall reports whether requests of a method count for the rate.
func isCall(method string) bool {
	switch method {
	case mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource, mcp.MethodComplete:
		return true
	}
	return false
}

// refuseRequest returns a tool result with the refusal, or an error for other methods.
func refuseRequest(req *mcp.Request, refusal string) (*mcp.Result, error) {
	if req.Method == mcp.MethodCallTool {
		return failedResult(refusal), nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", refusal)
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

// startRequest counts a request. It returns how long the request must wait, or why it is refused.
// The caller calls done at the request's end.
func (l *limiter) startRequest(caller hub.Caller, isCall bool) (wait time.Duration, done func(), refusal string) {
	key := caller.Principal
	if key == "" {
		key = "session " + caller.Session
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.clientUse(key)
	if l.opts.Concurrent > 0 && u.running >= l.opts.Concurrent {
		return 0, nil, fmt.Sprintf("%d requests of this client are in progress, which is the limit: wait for one to end, and try again", u.running)
	}
	if isCall && u.rate != nil {
		now := time.Now()
		reserved := u.rate.ReserveN(now, 1)
		if wait = reserved.DelayFrom(now); wait > maxRateWait {
			reserved.CancelAt(now)
			return 0, nil, fmt.Sprintf("the limit is %s, and this client has exceeded it: try again in %v", describeRate(l.opts.Rate), wait.Round(time.Second))
		}
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
