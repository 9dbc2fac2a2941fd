// Package sse carries MCP over the HTTP+SSE transport of revision 2024-11-05, both halves: [Handler] serves it to clients
// that know nothing newer, [URL] dials servers that do not. It is deprecated since 2025-03-26: a new server offers it beside
// package streamable, never instead. (2024-11-05 basic/transports; later revisions: backward compatibility)
package sse

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// Defaults of [Options].
const (
	DefaultMaxBody     = 4 << 20 // bytes
	DefaultBodyTimeout = 30 * time.Second
	DefaultMaxSessions = 10_000
)

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// ServerOptions are those of every transport. Of Revisions only those with a handshake count: this transport has no
	// other.
	transport.ServerOptions
	// Guard says which hosts and origins may come.
	Guard overhttp.Guard
	// Principal says who asks, as far as something in front has verified it. A session belongs to the principal that opened
	// its stream: messages of another are refused. nil: ServerOptions.Principal.
	Principal func(*http.Request) mcp.Principal

	// MaxBody bounds the body of a POST, default [DefaultMaxBody] bytes; a larger one is answered with 413.
	MaxBody int64
	// BodyTimeout bounds how long a body may take to come, default [DefaultBodyTimeout].
	BodyTimeout time.Duration
	// KeepAlive is the idle time after which a stream gets a comment, default 15 seconds; negative: none.
	KeepAlive time.Duration
	// MaxSessions bounds the streams that are open, default [DefaultMaxSessions]: the next one is answered with 503.
	MaxSessions int
	// SessionIdle ends a session whose client has sent nothing for so long while no call is in flight. 0: never. A session
	// is its stream, and keep-alives tell when its client has gone; most clients of this transport do not come back
	// from an end that they did not expect. A stream on which nothing is ever sent ends after a minute in any case.
	SessionIdle time.Duration
}

func (o *Options) setDefaults() {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = DefaultBodyTimeout
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = DefaultMaxSessions
	}
	if o.Principal == nil {
		own := o.ServerOptions.Principal
		o.Principal = func(*http.Request) mcp.Principal { return own }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Revisions = legacyRevisions(o.Revisions)
}

// legacyRevisions returns those revisions that have a handshake; of nil, all there are.
func legacyRevisions(revisions []mcp.Revision) []mcp.Revision {
	if revisions == nil {
		revisions = mcp.Revisions()
	}
	kept := []mcp.Revision{}
	for _, r := range revisions {
		if !r.Modern() {
			kept = append(kept, r)
		}
	}
	return kept
}
