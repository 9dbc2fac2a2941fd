package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// endpoint dials a URL: Streamable HTTP and, where the server does not know it, the HTTP+SSE of 2024 (basic/transports:
// backward compatibility).
type endpoint struct {
	streamable.URL
	older sse.URL
	old   *atomic.Bool // the server speaks HTTP+SSE
}

func newEndpoint(url string, o Options) endpoint {
	return endpoint{
		URL:   streamable.URL{URL: url, Client: o.HTTPClient, Header: o.Header},
		older: sse.URL{URL: url, Client: o.HTTPClient, Header: o.Header},
		old:   new(atomic.Bool),
	}
}

// Dial implements [transport.Dialer].
func (e endpoint) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if e.old.Load() {
		if t, err := e.older.Dial(ctx, in, opts); err == nil || !refusedOutright(err) {
			return t, err
		}
		e.old.Store(false) // the server has learned since
	}
	t, err := e.URL.Dial(ctx, in, opts)
	if err == nil || !refusedOutright(err) || opts.Revision.Modern() || ctx.Err() != nil {
		return t, err
	}
	t, olderErr := e.older.Dial(ctx, in, opts)
	if olderErr != nil {
		return nil, fmt.Errorf("%w; nor is there the older HTTP+SSE: %w", err, olderErr)
	}
	e.old.Store(true)
	return t, nil
}

// refusedOutright reports whether a server has answered what a server does that does not know the transport.
func refusedOutright(err error) bool {
	var answered *streamable.HTTPError
	return errors.As(err, &answered) && answered.MeansLegacy()
}

func isURL(target string) bool {
	lower := strings.ToLower(target)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}
