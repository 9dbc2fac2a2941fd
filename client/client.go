package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Client calls one server. [Dial] makes one. All methods may be called concurrently.
type Client struct {
	opts          Options
	conn          *connection
	header        func(context.Context) (http.Header, error) // adds fields to each request; may be nil
	login         loginIdentifier                            // may be nil
	cache         cache
	outputSchemas outputSchemas
	notifications notificationQueue
	userTurn      chan struct{} // holds a token while the user reads a question: one at a time
	clocks        callClocks
	withTasks     json.RawMessage // the capabilities and tasks; nil if the program handles tasks itself

	urlElicitations urlElicitations
	closing         sync.Once
	closed          error
}

var (
	_ mcp.Transport = (*Client)(nil)
	_ mcp.Notifier  = (*Client)(nil)
)

// RoundTrip sends a raw request and returns the raw response: an input_required result is not
// answered, nothing is cached, and of [Limits] only Connect applies. After Close its error wraps
// [mcp.ErrClosed] and [transport.ErrUnsent]. It makes a Client an [mcp.Transport] that reconnects.
func (c *Client) RoundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	l, err := c.conn.acquireLink(ctx, 0)
	switch {
	case errors.Is(err, mcp.ErrClosed):
		return nil, fmt.Errorf("%w: %w", transport.ErrUnsent, err)
	case err != nil:
		return nil, err
	}
	return l.roundTrip(ctx, req)
}

// Close ends the connection, all watches and all calls, stops the server if this client started it,
// and waits for all of that. Later calls fail with [mcp.ErrClosed]. Close may be called more than
// once; each call returns the error of the first one.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.closed = c.conn.closeConnection()
		c.notifications.closeQueue()
	})
	return c.closed
}

// Transport returns the connection in use, for example for [stdio.ChildOf], or nil while the client
// is not connected. The client owns it: do not close it.
func (c *Client) Transport() mcp.Transport {
	if l := c.conn.current.Load(); l != nil {
		return l.transport
	}
	return nil
}

// serverName returns the name by which the user knows the server.
func (c *Client) serverName() string {
	if c.opts.Name != "" {
		return c.opts.Name
	}
	if s := c.Server(); s.Info.Name != "" {
		return s.Info.Name
	}
	return c.conn.dialer.String()
}
