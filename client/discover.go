package client

import (
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Server is a server's description of itself.
type Server struct {
	// Info is for display. Do not base decisions on it.
	Info mcp.Implementation
	// Revision is the protocol revision in use.
	Revision mcp.Revision
	mcp.DiscoverResult
}

// Discover asks the server for its description, or takes it from the cache. A legacy server
// describes itself once, in the handshake; Discover then returns that and ignores opts.
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

// Revision returns the protocol revision in use, or "" if the client could not find it out.
func (c *Client) Revision() mcp.Revision { return c.lastServer().Revision }

// ServerInfo returns the server's name and version, for display.
func (c *Client) ServerInfo() mcp.Implementation { return c.lastServer().Info }

// Capabilities returns the capabilities that the server declared at the last connect.
func (c *Client) Capabilities() mcp.ServerCapabilities { return c.lastServer().Capabilities }

// Instructions returns the server's instructions for a model, as of the last connect.
func (c *Client) Instructions() string { return c.lastServer().Instructions }

// lastServer returns the description that the server gave at the last connect.
func (c *Client) lastServer() *Server {
	if s := c.conn.server.Load(); s != nil {
		return s
	}
	return new(Server)
}

// discoverServer asks the server for its description. A link is ready once the server has answered.
// An error response counts as an answer, unless strict.
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
		_ = mcp.Decode(info, &s.Info) // for display only, so a malformed description is no failure
	}
	return s, nil
}
