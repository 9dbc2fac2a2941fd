// Package sse carries MCP over the HTTP+SSE transport of revision 2024-11-05. [Handler] serves it
// to clients that know nothing newer, and [URL] dials servers that serve nothing newer. The
// transport is deprecated since revision 2025-03-26, so a server offers it beside package
// streamable, never alone (2024-11-05 basic/transports; later revisions: backward compatibility):
//
//	endpoint := sse.Handler(server, nil)
//	http.Handle("/sse", endpoint)
//	defer endpoint.Shutdown(ctx) // before http.Server.Shutdown, which waits for open streams
//
// A client opens an event stream with a GET. Its first event names the address for POSTs; each POST
// carries one message to the server. Every message to the client, also the answer to a POST, goes
// over the stream. A session is its stream: when that ends, the session is over.
package sse

import (
	"log/slog"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// Defaults of the options.
const (
	defaultMaxBody     = 4 << 20 // bytes
	defaultBodyTimeout = 30 * time.Second
)

// withDefaults returns options without zero values.
func withDefaults(o streamable.Options) streamable.Options {
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = defaultBodyTimeout
	}
	o.Quota = quota.Or(o.Quota)
	if o.Principal == nil {
		o.Principal = httpwire.PrincipalOr(o.ServerOptions.Principal)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Revisions = legacyRevisions(o.Revisions)
	return o
}

// legacyRevisions returns the revisions with a handshake; nil means all that are known.
func legacyRevisions(revisions []mcp.Revision) []mcp.Revision {
	if revisions == nil {
		revisions = mcp.Revisions()
	}
	legacy := []mcp.Revision{}
	for _, r := range revisions {
		if !r.Modern() {
			legacy = append(legacy, r)
		}
	}
	return legacy
}
