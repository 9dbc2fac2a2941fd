package transport

import (
	"context"
	"log/slog"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// ServerOptions configure the serving side. The zero value uses the defaults.
type ServerOptions struct {
	// Extensions are the extensions that the server understands. nil means the extensions of the
	// handler if it lists them, as a server.Server or an [mcp.Chain] of one does, and otherwise
	// none.
	Extensions []mcp.Extension
	// Revisions are the accepted protocol revisions, newest first; nil means all that dowel
	// knows.
	Revisions []mcp.Revision
	// MaxConcurrent is the highest number of requests in flight on one connection, by default
	// 1024. Further requests are answered with an error.
	MaxConcurrent int
	// Principal is the authenticated identity of the client, if it is known.
	Principal mcp.Principal
	// Quota bounds the messages, streams and sessions of all clients together. nil means the quota
	// that the process shares, with the default limits.
	Quota *Quota
	// DrainTimeout is how long calls in flight may take after the client has stopped sending or
	// ctx has ended. They are cancelled then, and Serve waits for their handlers for the same
	// time again. The default is 2 seconds.
	DrainTimeout time.Duration
	// AskTimeout is how long a legacy client may take to answer one question. The default is 10
	// minutes, because humans answer.
	AskTimeout time.Duration
	// Logger receives errors that cannot be sent to the client; nil means slog.Default().
	Logger *slog.Logger
	// Tap sees every frame; nil for none.
	Tap Tap
}

// ClientOptions configure the calling side. The zero value uses the defaults.
type ClientOptions struct {
	// Info identifies the client to servers. If its Name is empty, the client identifies itself
	// as dowel.
	Info mcp.Implementation
	// Capabilities are declared to the server. Declare only capabilities for which the Inbound
	// answers requests.
	Capabilities mcp.ClientCapabilities
	// Extensions are the extensions that the client understands and declares.
	Extensions []mcp.Extension
	// Revision is the protocol revision to use, one of [mcp.Revisions]. If it is empty, the
	// server is asked.
	Revision mcp.Revision
	// ProbeTimeout is how long a server may be silent after server/discover before it is also
	// sent initialize. A modern answer that arrives later still wins. The default is 3 seconds.
	ProbeTimeout time.Duration
	// Verdicts remembers the revisions that endpoints speak; nil means one that the process
	// shares.
	Verdicts *Verdicts
	// SerializeAsks runs calls to a legacy server one at a time if they share a channel, because
	// otherwise the call that a question of the server belongs to is unknown.
	SerializeAsks bool
	// Logger receives messages that belong to no call; nil means slog.Default().
	Logger *slog.Logger
	// Tap sees every frame; nil for none.
	Tap Tap
}

// Dialer opens connections to one server: a command, a URL or a handler in this process. It is
// safe for concurrent use.
type Dialer interface {
	// Dial returns a transport that is ready for requests. ctx limits the dial, not the life of
	// the transport, which the caller must close.
	Dial(ctx context.Context, in mcp.Inbound, opts ClientOptions) (mcp.Transport, error)
	// Endpoint returns a name that identifies the server, the key of its verdict. It is empty if
	// the server has no name beyond this process; then no verdict is remembered.
	Endpoint() string
	// String describes the server to a user, without secrets.
	String() string
}
