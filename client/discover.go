package client

import (
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Server is a server's description of itself.
type Server struct {
	// Info is the server's name and version, for display. Do not base decisions on it.
	Info mcp.Implementation
	// Revision is the protocol revision in use, or "" if the client could not find it out.
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

// Server returns the description that the server gave at the last connect: its name and version,
// the revision in use, its capabilities, its instructions for a model. It is empty if the server
// gave none. It takes no request; see [Client.Discover]. The caller must not change the maps in it.
func (c *Client) Server() Server {
	if s := c.conn.server.Load(); s != nil {
		return *s
	}
	return Server{}
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
	if info := rawjson.Lookup(rawjson.Lookup(resp.Raw, "_meta"), mcpwire.MetaServerInfo); info != nil {
		_ = mcp.Decode(info, &s.Info) // for display only, so a malformed description is ignored
	}
	return s, nil
}
