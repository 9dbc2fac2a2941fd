package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// newURLTarget returns the target of a URL: WebSocket for ws and wss, and HTTP otherwise. A
// WebSocket sends the fields of Header once, so all its calls have the same credentials.
func newURLTarget(url string, o Options) target {
	if isWebSocket(url) {
		return newSocketTarget(websocket.URL{URL: url, Client: o.HTTP.Client, Header: o.HTTP.Header})
	}
	return target{header: o.HTTP.Header, login: loginOf(o.HTTP.Client), dialer: httpDialer{
		URL:       streamable.URL{URL: url, Client: o.HTTP.Client, Header: o.HTTP.Header},
		sse:       sse.URL{URL: url, Client: o.HTTP.Client, Header: o.HTTP.Header},
		speaksSSE: new(atomic.Bool),
	}}
}

// loginIdentifier is a RoundTripper that logs in.
type loginIdentifier interface{ LoginID() string }

// loginOf returns the login that an HTTP client uses, or nil.
func loginOf(c *http.Client) loginIdentifier {
	if c == nil {
		return nil
	}
	login, _ := c.Transport.(loginIdentifier)
	return login
}

// socketDialer dials a WebSocket and remembers the login of the handshake.
type socketDialer struct {
	websocket.URL
	login *socketLogin
}

func newSocketTarget(to websocket.URL) target {
	d := socketDialer{URL: to, login: &socketLogin{source: loginOf(to.Client)}}
	return target{dialer: d, login: d.login}
}

// Dial implements [transport.Dialer].
func (d socketDialer) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	t, err := d.URL.Dial(ctx, in, opts)
	if err == nil && d.login.source != nil {
		id := d.login.source.LoginID()
		d.login.current.Store(&id)
	}
	return t, err
}

// socketLogin is the login of the last handshake.
type socketLogin struct {
	source  loginIdentifier // nil without a login
	current atomic.Pointer[string]
}

// LoginID implements loginIdentifier.
func (l *socketLogin) LoginID() string {
	if id := l.current.Load(); id != nil {
		return *id
	}
	return ""
}

// httpDialer dials a URL of http or https: Streamable HTTP first and, if the server does not know
// it, the HTTP+SSE of 2024 (basic/transports: backward compatibility).
type httpDialer struct {
	streamable.URL
	sse       sse.URL
	speaksSSE *atomic.Bool // the last dial found HTTP+SSE
}

// Dial implements [transport.Dialer].
func (e httpDialer) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if e.speaksSSE.Load() {
		if t, err := e.sse.Dial(ctx, in, opts); err == nil || !isUnknownTransport(err) {
			return t, err
		}
		e.speaksSSE.Store(false) // the server was upgraded
	}
	t, err := e.URL.Dial(ctx, in, opts)
	if err == nil || !isUnknownTransport(err) || opts.Revision.Modern() || ctx.Err() != nil {
		return t, err
	}
	t, sseErr := e.sse.Dial(ctx, in, opts)
	if sseErr != nil {
		return nil, fmt.Errorf("%w; the older HTTP+SSE failed too: %w", err, sseErr)
	}
	e.speaksSSE.Store(true)
	return t, nil
}

// isUnknownTransport reports whether the server answered as one that does not know Streamable HTTP.
func isUnknownTransport(err error) bool {
	var answered *streamable.HTTPError
	return errors.As(err, &answered) && answered.MeansLegacy()
}

func isURL(target string) bool {
	return hasScheme(target, "http") || hasScheme(target, "https") || isWebSocket(target)
}

func isWebSocket(url string) bool { return hasScheme(url, "ws") || hasScheme(url, "wss") }

// hasScheme reports whether a URL has a scheme, in any case.
func hasScheme(url, scheme string) bool {
	before, _, ok := strings.Cut(url, "://")
	return ok && strings.EqualFold(before, scheme)
}
