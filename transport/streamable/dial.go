package streamable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/calling"
)

// DefaultMaxMessage bounds one message of a server, in bytes.
const DefaultMaxMessage = transport.DefaultMaxMessage

// URL is an MCP endpoint to dial: a [transport.Dialer].
type URL struct {
	// URL is where the endpoint is: http or https.
	URL string
	// Client makes the requests; nil is one of the package's own, without a limit of time. Its CheckRedirect is asked first,
	// and redirects to another origin are not followed whatever it says.
	Client *http.Client
	// Header returns fields that go along with a request, credentials for one; nil for none. The protocol's own win.
	Header func(ctx context.Context) (http.Header, error)
	// MaxMessage bounds one message of the server, default [DefaultMaxMessage] bytes.
	MaxMessage int
}

var _ transport.Dialer = URL{}

// Endpoint implements [transport.Dialer].
func (u URL) Endpoint() string { return u.URL }

// String names the endpoint without its secrets.
func (u URL) String() string {
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return "an endpoint whose URL is malformed"
	}
	parsed.User, parsed.RawQuery, parsed.Fragment = nil, "", ""
	return parsed.String()
}

// Dial implements [transport.Dialer].
func (u URL) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	template, err := http.NewRequest(http.MethodPost, u.URL, nil)
	if err != nil || template.URL.Host == "" || template.URL.Scheme != "http" && template.URL.Scheme != "https" {
		return nil, fmt.Errorf("%q is no URL of http or https", u.URL)
	}
	c := newCarrier(template, u, opts)
	t := calling.NewCaller(c, in, opts)
	c.caller = t
	if err := t.Connect(ctx, u.Endpoint()); err != nil {
		return nil, err
	}
	return &clientTransport{t, c}, nil
}

func (u URL) client() *http.Client {
	if u.Client != nil {
		return u.Client
	}
	return defaultClient
}

// defaultClient keeps a connection for each of many calls at the same time.
var defaultClient = &http.Client{Transport: newHTTPTransport()}

func newHTTPTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if own, ok := http.DefaultTransport.(*http.Transport); ok { // others may have put something else there
		t = own.Clone()
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = 256, 128, 90*time.Second
	return t
}

// clientTransport is a transport over HTTP.
type clientTransport struct {
	calling.Caller
	carrier *carrier
}

// RoundTrip implements [mcp.Transport]. A call that the server refuses for the header fields that mirror its arguments is
// made again once, with the tool as it is now.
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

// refreshTools asks for the list of tools, from which the carrier learns.
func (c *clientTransport) refreshTools(ctx context.Context) error {
	const most = 1000 // pages
	var cursor *string
	for range most {
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
