package daemon

import (
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/internal/ratelimit"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxConcurrent limits the requests of one client that run at the same time.
const maxConcurrent = 1000

// gatewayMiddleware returns the handlers in front of the gateway. The journal comes first, and the
// rate limit second, so that the audit log records only accepted requests. The questions of calls
// are asked in the console, too.
func (d *Daemon) gatewayMiddleware(limits ratelimit.Options) []mcp.Middleware {
	return d.middleware(limits, d.calls.Asks.Middleware())
}

// middleware is gatewayMiddleware with other handlers between the rate limit and the audit log.
func (d *Daemon) middleware(limits ratelimit.Options, asks ...mcp.Middleware) []mcp.Middleware {
	all := append([]mcp.Middleware{d.recorder.Middleware(), ratelimit.Middleware(limits)}, asks...)
	return append(all, gateway.Audit(d.auditLog, d.auditOptions()))
}

// limits returns the limits of each client of this machine. Such clients have the names of
// processes, which mean others at another replica.
func (d *Daemon) limits() ratelimit.Options {
	return ratelimit.Options{Rate: d.settings.Rate, Burst: int(2 * d.settings.Rate), Concurrent: maxConcurrent}
}

// sharedLimits returns the limits of each client of the HTTP gateway, which all replicas count
// together.
func (d *Daemon) sharedLimits() ratelimit.Options {
	o := d.limits()
	if d.cluster != nil {
		o.Network = d.cluster
	}
	return o
}
