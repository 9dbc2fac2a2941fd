package streamable

import (
	"context"
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/calling"
)

// URL is an MCP endpoint that a client can dial, a [transport.Dialer].
type URL struct {
	// URL is the endpoint's address, with scheme http or https.
	URL string
	// Client sends the requests. nil means a client of this package that all endpoints share; it
	// has no timeout. CheckRedirect is asked first, but redirects to another origin are never
	// followed.
	Client *http.Client
	// Header returns header fields to add to each request, for example credentials. It is called
	// for every request, concurrently. Fields of the protocol take precedence. nil adds none.
	Header func(ctx context.Context) (http.Header, error)
	// MaxMessage is the largest message to accept from the server, in bytes. 0 means
	// [transport.DefaultMaxMessage].
	MaxMessage int
}

var _ transport.Dialer = URL{}

// Endpoint implements [transport.Dialer].
func (u URL) Endpoint() string { return u.URL }

// String returns the address without user, query and fragment, which may contain secrets.
func (u URL) String() string { return httpwire.Endpoint(u).Redacted() }

// Dial implements [transport.Dialer]. It finds out which revision the server speaks and, if that is
// a legacy one, opens a session. Errors of the server may be a [*HTTPError].
func (u URL) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if _, err := httpwire.Endpoint(u).Parse(); err != nil {
		return nil, err
	}
	template, err := http.NewRequest(http.MethodPost, u.URL, nil)
	if err != nil {
		return nil, httpwire.WithoutURL(err)
	}
	c := newCarrier(template, u, opts)
	c.sink, c.dialing = framesink.Dialing(ctx), ctx
	t := calling.NewCaller(c, in, opts)
	c.caller = t
	if err := t.Connect(ctx, u.Endpoint()); err != nil {
		return nil, err
	}
	return &clientTransport{t, c}, nil
}

// sharedClient sends the requests of all endpoints without a client of their own.
var sharedClient = &http.Client{Transport: httpwire.NewTransport()}

// clientTransport is the [mcp.Transport] of a dialed endpoint.
type clientTransport struct {
	calling.Caller
	carrier *carrier
}

// HasSession reports whether the server has opened a session.
func (c *clientTransport) HasSession() bool { return c.carrier.sessionID() != "" }

// RoundTrip implements [mcp.Transport]. The server may refuse a tool call because the header fields
// do not mirror its arguments. Then the tool's definition has changed: RoundTrip reads the list of
// tools and makes the call once more.
func (c *clientTransport) RoundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	res, err := c.Caller.RoundTrip(ctx, req)
	if err == nil || req.Method != mcp.MethodCallTool || !isHeaderMismatch(err) || c.refreshTools(ctx) != nil {
		return res, err
	}
	return c.Caller.RoundTrip(ctx, req)
}

func isHeaderMismatch(err error) bool {
	refused, ok := errors.AsType[*mcp.Error](err)
	return ok && refused.Code == mcp.CodeHeaderMismatch
}

// refreshTools reads the list of tools. The carrier learns the mirrored arguments from the answers.
func (c *clientTransport) refreshTools(ctx context.Context) error {
	const maxPages = 1000
	var cursor *string
	for range maxPages {
		params, err := mcp.Encode(mcp.ListParams{Cursor: cursor})
		if err != nil {
			return err
		}
		res, err := c.Caller.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodListTools, Params: params})
		if err != nil {
			return err
		}
		var page struct {
			NextCursor *string `json:"nextCursor"`
		}
		if err := mcp.Decode(res.Raw, &page); err != nil || page.NextCursor == nil {
			return err
		}
		cursor = page.NextCursor
	}
	return nil
}
