package transport

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// ServerOptions configure the serving edge. The zero value is ready.
type ServerOptions struct {
	// Vocabulary holds the extensions. nil asks the handler, where it is an [mcp.Versed], as a server.Server is, and one in an
	// [mcp.Chain]; else it is the core alone.
	Vocabulary *mcp.Vocabulary
	// Revisions are those that are spoken, newest first; nil is all of them.
	Revisions []mcp.Revision
	// MaxConcurrent bounds the requests in flight on one connection, default [DefaultMaxConcurrent]: the next one is
	// answered with an error.
	MaxConcurrent int
	// Principal is who is at the other end of the connection, where that is known.
	Principal mcp.Principal
	// DrainTimeout is how long calls in flight may go on, once the peer has ended its half of the connection, before they
	// are cancelled, and again before Serve gives up waiting for their handlers; default 2 seconds.
	DrainTimeout time.Duration
	// AskTimeout bounds how long a legacy client may take to answer one question, default 10 minutes: a human does.
	AskTimeout time.Duration
	// Logger takes what cannot be answered to anybody; nil is slog.Default.
	Logger *slog.Logger
	// Tap sees the raw frames; nil for none.
	Tap Tap
}

// ClientOptions configure the calling edge. The zero value is ready.
type ClientOptions struct {
	// Info is how the client names itself; where Name is empty, dowel's own.
	Info mcp.Implementation
	// Capabilities are declared to the server. Declare only what the Inbound can answer.
	Capabilities mcp.ClientCapabilities
	// Vocabulary holds the extensions; nil is the core alone.
	Vocabulary *mcp.Vocabulary
	// Revision pins what is spoken, one of [mcp.Revisions]; empty finds out.
	Revision mcp.Revision
	// ProbeTimeout is how long a server may be silent about the probe before it is also asked the legacy way, default 3
	// seconds. A modern answer that comes later still wins.
	ProbeTimeout time.Duration
	// Verdicts remembers the eras of endpoints; nil is a memory shared by the process.
	Verdicts *Verdicts
	// SerializeAsks runs calls one at a time on a channel shared by all calls to a legacy server, so that what it asks
	// can be told apart.
	SerializeAsks bool
	// Logger takes what belongs to no call; nil is slog.Default.
	Logger *slog.Logger
	// Tap sees the raw frames; nil for none.
	Tap Tap
}

// Check refuses a Revision that dowel does not speak. [Connect] does so too; a dialer that starts something asks before.
func (o *ClientOptions) Check() error {
	if o.Revision == "" || o.Revision.Known() {
		return nil
	}
	return fmt.Errorf("revision %q is pinned, and dowel speaks %v", o.Revision, mcp.Revisions())
}

// Dialer opens transports to one endpoint: a command, a URL, a handler in this process.
type Dialer interface {
	// Dial returns a transport that is ready. ctx bounds the dial, not the life of the transport.
	Dial(ctx context.Context, in mcp.Inbound, opts ClientOptions) (mcp.Transport, error)
	// Endpoint names what is dialed: the same name, the same server. Verdicts are remembered under it; empty, where what
	// is dialed has no name that outlives the process, for none.
	Endpoint() string
	// String names what is dialed to a user, without its secrets.
	String() string
}
