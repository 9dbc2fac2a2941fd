package transport

import (
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// Verdicts remembers the revision that each endpoint speaks, so that it is probed only once. The
// zero value is empty and ready. It is safe for concurrent use.
type Verdicts struct {
	mu    sync.Mutex
	known map[string]mcp.Revision
}

var processVerdicts = &Verdicts{}

// Memory returns o.Verdicts, or the Verdicts that the process shares if that is nil.
func (o *ClientOptions) Memory() *Verdicts {
	if o.Verdicts != nil {
		return o.Verdicts
	}
	return processVerdicts
}

// Lookup returns the revision that the endpoint spoke last, or "" if it is unknown.
func (v *Verdicts) Lookup(endpoint string) mcp.Revision {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[endpoint]
}

// Remember sets the revision of an endpoint. An empty revision removes it. An empty endpoint is
// ignored.
func (v *Verdicts) Remember(endpoint string, r mcp.Revision) {
	if endpoint == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.known = map[string]mcp.Revision{}
	}
	if r == "" {
		delete(v.known, endpoint)
		return
	}
	v.known[endpoint] = r
}
