package client

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// Client calls one server. Make one with [Dial]; it is safe for concurrent use.
type Client struct {
	opts  Options
	conn  *connection
	cache cache
	outputSchemas outputSchemas
	notifications notificationQueue
	userTurn chan struct{} // held while a question is with the user: there is one of them
	clocks callClocks

	urlElicitations  urlElicitations
	closing sync.Once
	closed  error
}

var (
	_ mcp.Transport = (*Client)(nil)
	_ mcp.Notifier  = (*Client)(nil)
)

// RoundTrip sends a request as it is and returns the response as it is: an input_required result is returned, nothing
// is cached, and no limit of [Options] but Connect holds. So a Client is an [mcp.Transport] that heals.
func (c *Client) RoundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	l, err := c.conn.acquireLink(ctx, 0)
	if err != nil {
		return nil, err
	}
	return l.transport.RoundTrip(ctx, req)
}

// Close ends the connection, the server where it was started for this client, all watches and all calls, and waits for
// that. Whatever is called afterwards fails with [mcp.ErrClosed]. It may be called more than once.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.closed = c.conn.close()
		c.notifications.close()
	})
	return c.closed
}

// Transport returns the connection that is in use, such as for [stdio.ChildOf]; nil while there is none. It is the
// client's: do not close it.
func (c *Client) Transport() mcp.Transport {
	if l := c.conn.current.Load(); l != nil {
		return l.transport
	}
	return nil
}

// serverName is how the user knows the server.
func (c *Client) serverName() string {
	if c.opts.Name != "" {
		return c.opts.Name
	}
	if s := c.lastServer(); s.Info.Name != "" {
		return s.Info.Name
	}
	return c.conn.dialer.String()
}
