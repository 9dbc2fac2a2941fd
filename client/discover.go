package client

import (
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Server is what a server says of itself.
type Server struct {
	// Info is for display, never for decisions.
	Info mcp.Implementation
	// Revision is the protocol revision that is spoken with it.
	Revision mcp.Revision
	mcp.DiscoverResult
}

// Discover asks the server what it is and offers, or takes that from the cache. A legacy server says so once, in the
// handshake: that is what is returned then, whatever the options say.
func (c *Client) Discover(ctx context.Context, opts ...CallOptions) (*Server, error) {
	resp, err := c.callMethod(ctx, mcp.MethodDiscover, "", nil, options.Merge(opts))
	if err != nil {
		return nil, err
	}
	s, err := readServer(resp)
	if err != nil {
		return nil, c.callError(mcp.MethodDiscover, "", unreadable(err))
	}
	return &s, nil
}

// Revision returns the protocol revision that is spoken with the server; empty where it could not be found out.
func (c *Client) Revision() mcp.Revision { return c.lastServer().Revision }

// ServerInfo returns how the server names itself.
func (c *Client) ServerInfo() mcp.Implementation { return c.lastServer().Info }

// Capabilities returns what the server offered when it was connected to.
func (c *Client) Capabilities() mcp.ServerCapabilities { return c.lastServer().Capabilities }

// Instructions returns what the server told a model about its use when it was connected to.
func (c *Client) Instructions() string { return c.lastServer().Instructions }

// lastServer returns what the server that was connected to last said of itself.
func (c *Client) lastServer() *Server {
	if s := c.conn.server.Load(); s != nil {
		return s
	}
	return new(Server)
}

// discoverServer asks the server who it is: a connection over which that works is ready. A server that answers with an error is
// a server all the same, unless strict.
func (l *link) discoverServer(ctx context.Context, strict bool) error {
	resp, err := l.transport.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodDiscover})
	var answered *mcp.Error
	switch {
	case err == nil:
		l.server, err = readServer(resp)
		return err
	case errors.As(err, &answered) && !strict:
		return nil
	}
	return err
}

func readServer(resp *mcp.Response) (s Server, err error) {
	s.Revision = resp.Revision
	if err := mcp.Decode(resp.Raw, &s.DiscoverResult); err != nil {
		return s, err
	}
	if info := rawjson.Lookup(rawjson.Lookup(resp.Raw, "_meta"), mcp.MetaServerInfo); info != nil {
		_ = mcp.Decode(info, &s.Info) // for display: a server that names itself badly is a server all the same
	}
	return s, nil
}
