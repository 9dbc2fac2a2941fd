// Package memory connects a client to a server in the same process. Every message is encoded and
// decoded as on any other transport, which makes it the transport for tests:
//
//	c, err := client.Dial(ctx, memory.Dialer(handler), nil)
//
// [Pipe] returns the two ends of a connection, for tests of other transports.
package memory

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// Dialer returns a dialer for h. Each dial serves h on a new connection. If several opts are
// given, they are merged: of the structs that set a field, the last one wins. Closing the transport
// waits until the server has ended.
//
// A request with a context that cannot end and without Notify runs its handler on the goroutine of
// RoundTrip, which returns when the handler does. Close cancels the handler's context, as on any
// other transport, but a handler that ignores its context keeps RoundTrip waiting. All other
// handlers run on goroutines of the server.
func Dialer(h mcp.Handler, opts ...transport.ServerOptions) transport.Dialer {
	return &handlerDialer{handler: h, opts: options.Merge(opts)}
}

type handlerDialer struct {
	handler mcp.Handler
	opts    transport.ServerOptions
}

func (d *handlerDialer) Endpoint() string { return "" }

func (d *handlerDialer) String() string { return "a server in this process" }

func (d *handlerDialer) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	near, far := Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = overconn.Serve(context.WithoutCancel(ctx), far, d.handler, d.opts) // the client reports how the connection ended
	}()
	t, err := overconn.Connect(ctx, near, in, d.Endpoint(), opts)
	if err != nil {
		<-served
		return nil, err
	}
	return &servedTransport{t.(frames.ConnTransport), served}, nil
}

// servedTransport is a transport that waits for its server when it is closed.
type servedTransport struct {
	frames.ConnTransport
	served <-chan struct{}
}

func (c *servedTransport) Close() error {
	err := c.ConnTransport.Close()
	<-c.served
	return err
}
