package gateway

import (
	"github.com/dowel-mcp/dowel/internal/ratelimit"
	"github.com/dowel-mcp/dowel/mcp"
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

// Limit returns a middleware that holds clients to the limits. A call above the rate waits up to 10
// seconds. What exceeds the limits is refused: a tool call with a result that a model understands,
// everything else with an error. A client is a principal, else a session; clients with neither
// count as one.
func Limit(o Limits) mcp.Middleware {
	return ratelimit.Middleware(ratelimit.Options{Rate: o.Rate, Burst: o.Burst, Concurrent: o.Concurrent})
}
