package sse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// URL is a server that a client can dial, a [transport.Dialer], with the fields of
// [streamable.URL]. URL is the address of the stream: if the GET finds no stream there, Dial adds
// "/sse" to the end of the path, or removes it if the path ends with it. If Client is nil, each
// connection has a client of its own. The Timeout of Client is not applied to the stream, and
// redirects that turn a POST into a GET are never followed.
type URL streamable.URL

var _ transport.Dialer = URL{}

// Endpoint implements [transport.Dialer].
func (u URL) Endpoint() string { return u.URL }

// String returns the address without user, query and fragment, which may contain secrets.
func (u URL) String() string { return httpwire.Endpoint(u).Redacted() }

// Dial implements [transport.Dialer]. It opens the stream and initializes a session. It does not
// ask for the server's era, because this transport has only one. The mcp.Transport ends when the
// stream does. If the server answers with something else than a stream, the error is a
// [*streamable.HTTPError].
func (u URL) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if opts.Revision.Modern() {
		return nil, fmt.Errorf("HTTP+SSE does not carry revision %s, which is pinned", opts.Revision)
	}
	to, err := httpwire.Endpoint(u).Parse()
	if err != nil {
		return nil, err
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

// openStream opens the stream at the URL or else at its alternative.
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

// mayBeElsewhere reports whether an error means that the URL has no stream, but another one may.
func mayBeElsewhere(err error) bool {
	var answered *streamable.HTTPError
	return errors.As(err, &answered) &&
		(answered.Status < 300 || answered.Status == http.StatusNotFound || answered.Status == http.StatusMethodNotAllowed)
}

// alternativeURL returns the URL with "/sse" added to its path, or removed from it.
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
