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
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// Defaults of [Options].
const (
	defaultMaxBody     = 4 << 20 // bytes
	defaultBodyTimeout = 30 * time.Second
	defaultMaxSessions = 10_000
)

// Options configure a [Server]. The zero value is ready to use.
type Options struct {
	// ServerOptions are the options that all transports share. This transport serves only revisions
	// with a handshake; others in Revisions are ignored.
	transport.ServerOptions
	// Guard decides which hosts and web pages may reach the server.
	Guard streamable.Guard
	// Principal returns the verified sender of a request, as far as a handler or proxy in front has
	// authenticated it. It may be called concurrently. A session belongs to the principal that
	// opened its stream: messages of others are refused. nil means ServerOptions.Principal.
	Principal func(*http.Request) mcp.Principal

	// MaxBody is the largest body of a POST in bytes, 4 MiB if it is 0. A larger one is answered
	// with status 413.
	MaxBody int64
	// BodyTimeout bounds how long a body may take to arrive, 30 s if it is 0.
	BodyTimeout time.Duration
	// KeepAlive is the idle time after which a stream sends a comment, 15 s if it is 0. A negative
	// value disables it.
	KeepAlive time.Duration
	// MaxSessions bounds the open streams, 10,000 if it is 0. A further GET is answered with status
	// 503.
	MaxSessions int
	// SessionIdle ends a session if its client has sent nothing for this time and no call is in
	// flight. 0 disables it: keep-alives detect a client that has disconnected, and most clients of
	// this transport do not reconnect after an unexpected end. A stream without any message ends
	// after one minute in any case.
	SessionIdle time.Duration
}

// setDefaults replaces zero values.
func (o *Options) setDefaults() {
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = defaultBodyTimeout
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = defaultMaxSessions
	}
	if o.Principal == nil {
		principal := o.ServerOptions.Principal
		o.Principal = func(*http.Request) mcp.Principal { return principal }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Revisions = legacyRevisions(o.Revisions)
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
