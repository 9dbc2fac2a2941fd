package transport

import (
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// Verdicts remembers the revision that each endpoint speaks, so that it is probed only once. The
// zero value is empty and ready; nil is the memory that the process shares. It is safe for
// concurrent use.
type Verdicts struct {
	mu    sync.Mutex
	known map[string]mcp.Revision
}

var processVerdicts = &Verdicts{}

// Lookup returns the revision that the endpoint spoke last, or "" if it is unknown.
func (v *Verdicts) Lookup(endpoint string) mcp.Revision {
	if v == nil {
		v = processVerdicts
	}
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
	if v == nil {
		v = processVerdicts
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
