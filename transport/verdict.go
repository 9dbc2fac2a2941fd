package transport

import (
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// Verdicts remembers which revision an endpoint speaks, so that it is probed once. Safe for concurrent use.
type Verdicts struct {
	mu    sync.Mutex
	known map[string]mcp.Revision
}

var processVerdicts = &Verdicts{}

// Memory returns the verdicts that the options name: Verdicts, or else those that the process shares.
func (o *ClientOptions) Memory() *Verdicts {
	if o.Verdicts != nil {
		return o.Verdicts
	}
	return processVerdicts
}

// Lookup returns the revision that the endpoint spoke last; empty if it is not known.
func (v *Verdicts) Lookup(endpoint string) mcp.Revision {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[endpoint]
}

// Remember keeps the revision for the endpoint; an empty one forgets it. An endpoint without a name is not remembered.
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
