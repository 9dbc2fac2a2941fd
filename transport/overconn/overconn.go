// Package overconn speaks MCP over a [transport.Conn]: a channel that all messages of a connection
// share. Use it to implement a transport of your own, over a message queue for example:
//
//	err := overconn.Serve(ctx, conn, handler, transport.ServerOptions{})            // server
//	t, err := overconn.Connect(ctx, conn, inbound, "queue://example.com/mcp", options) // client
//
// The transports on standard streams, in memory, over WebSocket and over HTTP+SSE are made of it.
// Both functions find out which era of the protocol the peer speaks.
package overconn

import (
	"context"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/calling"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// Serve answers the requests that arrive on conn, of both eras at the same time. It returns nil
// when the peer has ended the connection, the cause of ctx when ctx has ended, and the error of
// conn when that has failed. It has closed conn when it returns.
//
// Handlers run concurrently, each on a goroutine of its own. The exception is a client in the same
// process, whose goroutine may run the handler; see memory.Dialer. When ctx ends, or when the peer
// stops sending but still receives, calls in flight have [transport.ServerOptions.DrainTimeout] to
// be answered. Serve then cancels their contexts and waits for the handlers to return, again no
// longer than DrainTimeout.
//
// A frame that is not a message is answered with an error if the protocol allows it, and logged
// otherwise. It does not end the connection.
func Serve(ctx context.Context, conn transport.Conn, h mcp.Handler, opts transport.ServerOptions) error {
	return serving.Serve(ctx, conn, h, opts)
}

// Connect returns a transport that sends its requests on conn. It finds out which era the server
// speaks, unless opts.Revision is set or opts.Verdicts knows the endpoint, and remembers the
// answer under endpoint; an empty endpoint is not remembered. ctx bounds Connect, not the
// transport. The transport owns conn; if Connect fails, it has closed conn.
//
// The error wraps [transport.ErrProbe] if the connection ended because of the question for the era.
func Connect(ctx context.Context, conn transport.Conn, in mcp.Inbound, endpoint string, opts transport.ClientOptions) (mcp.Transport, error) {
	return calling.Connect(ctx, conn, in, endpoint, opts)
}
