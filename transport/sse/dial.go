package sse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// URL is a server to dial: a [transport.Dialer].
type URL struct {
	// URL is where the stream is: http or https. Where there is none, it is looked for with "/sse" at the end of the path, or
	// without it where the path ends so.
	URL string
	// Client makes the requests; nil is one of the connection's own. Its Timeout does not count for the stream. Its
	// CheckRedirect is asked first, and redirects to another origin, or of a message to where it would be none, are not
	// followed whatever it says.
	Client *http.Client
	// Header returns fields that go along with a request, credentials for one; nil for none. The protocol's own win.
	Header func(ctx context.Context) (http.Header, error)
	// MaxMessage bounds one message of the server, default [transport.DefaultMaxMessage] bytes.
	MaxMessage int
}

var _ transport.Dialer = URL{}

// Endpoint implements [transport.Dialer].
func (u URL) Endpoint() string { return u.URL }

// String names the server without its secrets.
func (u URL) String() string {
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return "a server whose URL is malformed"
	}
	parsed.User, parsed.RawQuery, parsed.Fragment = nil, "", ""
	return parsed.String()
}

// Dial opens the stream and initializes: no server of this transport is asked for its era, and what the options remember of
// the endpoint's is of other transports. When the stream is lost, the transport is. An answer of the server that is no
// stream is a [*overhttp.HTTPError].
func (u URL) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if opts.Revision.Modern() {
		return nil, fmt.Errorf("HTTP+SSE carries no revision as late as %s, which is pinned", opts.Revision)
	}
	to, err := url.Parse(u.URL)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, errors.New("the URL of the server is not one of http or https")
	}
	c, err := u.openStream(ctx, to, opts.Tap)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })()
	if tap := opts.Tap; tap != nil {
		opts.Tap = c.showReceived
	}
	opts.Verdicts = new(transport.Verdicts)
	opts.Verdicts.Remember(u.Endpoint(), mcp.LatestLegacyRevision)
	return overconn.Connect(ctx, c, in, u.Endpoint(), opts)
}

// openStream finds the stream at the URL, or at its other form.
func (u URL) openStream(ctx context.Context, to *url.URL, tap transport.Tap) (*conn, error) {
	c, err := u.openAt(ctx, to, tap)
	if err == nil || ctx.Err() != nil || !mayBeElsewhere(err) {
		return c, err
	}
	if c, elsewhere := u.openAt(ctx, alternativeURL(to), tap); elsewhere == nil {
		return c, nil
	}
	return nil, err
}

// mayBeElsewhere reports whether an answer says that there is no stream here, but perhaps somewhere else.
func mayBeElsewhere(err error) bool {
	var answered *overhttp.HTTPError
	return errors.As(err, &answered) &&
		(answered.Status < 300 || answered.Status == http.StatusNotFound || answered.Status == http.StatusMethodNotAllowed)
}

// alternativeURL returns the URL with "/sse" at the end of its path, or without it.
func alternativeURL(u *url.URL) *url.URL {
	other := *u
	other.RawPath = ""
	path := strings.TrimRight(u.Path, "/")
	if short, ok := strings.CutSuffix(path, "/sse"); ok {
		other.Path = short
	} else {
		other.Path = path + "/sse"
	}
	return &other
}
