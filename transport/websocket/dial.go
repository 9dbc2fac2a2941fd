package websocket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	ws "github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// URL is a server that a client can dial, a [transport.Dialer].
type URL struct {
	// URL is the server's address, with scheme ws or wss.
	URL string
	// Client makes the HTTP request that opens the connection; its Transport has the settings for
	// TLS and proxies. nil means a client of this package. The Timeout of Client bounds only that
	// request. CheckRedirect is asked first, but redirects to another origin are never followed.
	Client *http.Client
	// Header returns header fields to add to that request, for example credentials. It may be
	// called concurrently. Fields of the protocol take precedence. nil adds none.
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

// Dial implements [transport.Dialer]. It opens the connection and finds out which revision the
// server speaks. If an old server closes the connection because it does not know the question, Dial
// opens another one for the handshake of a legacy revision. If the server answers with an HTTP
// status, the error is a [*streamable.HTTPError].
func (u URL) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if err := mcpwire.CheckPinned(opts.Revision); err != nil {
		return nil, err
	}
	t, err := u.dialOnce(ctx, in, opts)
	if !errors.Is(err, transport.ErrProbe) || opts.Revision != "" || ctx.Err() != nil {
		return t, err
	}
	opts.Verdicts.Remember(u.Endpoint(), mcp.LatestLegacyRevision)
	t, again := u.dialOnce(ctx, in, opts)
	if again != nil {
		opts.Verdicts.Remember(u.Endpoint(), "")
		return nil, again
	}
	return t, nil
}

func (u URL) dialOnce(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	c, err := u.openConn(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { c.fail("%w", context.Cause(ctx)) })() // without waiting for the server
	return overconn.Connect(ctx, c, in, u.Endpoint(), opts)
}

// openTimeout bounds how long a server may take, except for a login, to accept the connection.
const openTimeout = 30 * time.Second

// openConn opens the connection.
func (u URL) openConn(ctx context.Context) (*conn, error) {
	if err := u.checkURL(); err != nil {
		return nil, err
	}
	ctx, cancel := startphase.WithTimeout(ctx, openTimeout, fmt.Errorf("the server has not accepted the connection within %v", openTimeout))
	defer cancel()
	header := http.Header{}
	if err := httpwire.Endpoint(u).AddHeader(ctx, header); err != nil {
		return nil, err
	}
	header.Del("Sec-WebSocket-Extensions") // compression is off
	client := u.Client
	if client == nil {
		t := httpwire.NewTransport()
		defer t.CloseIdleConnections()
		client = &http.Client{Transport: t}
	}
	socket, resp, err := ws.Dial(ctx, u.URL, &ws.DialOptions{ //nolint:bodyclose // Dial closes the body, and keeps the start of an error's
		HTTPClient: httpwire.GuardRedirects(client), HTTPHeader: header, Subprotocols: []string{subprotocol},
	})
	if err != nil {
		return nil, openError(ctx, resp, err)
	}
	if socket.Subprotocol() != subprotocol {
		_ = socket.CloseNow()
		return nil, fmt.Errorf("the server accepts WebSocket connections, but not the subprotocol %q", subprotocol)
	}
	c := newConn(socket, peerServer, u.MaxMessage, nil)
	c.startKeepAlive(defaultKeepAlive)
	return c, nil
}

// checkURL returns an error if the URL cannot be dialed. It does not quote secrets.
func (u URL) checkURL() error {
	parsed, err := url.Parse(u.URL)
	if err != nil || parsed.Host == "" || !strings.EqualFold(parsed.Scheme, "ws") && !strings.EqualFold(parsed.Scheme, "wss") {
		return fmt.Errorf("%s is not a URL of ws or wss: write it as wss://host/path", u)
	}
	return nil
}

// openError returns the error for a connection that was not opened. resp is the answer of the
// server, nil if there was none.
func openError(ctx context.Context, resp *http.Response, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", mcp.ErrConnection, context.Cause(ctx))
	}
	if refused := httpwire.AsRefusal(err); refused != nil {
		return refused
	}
	if resp == nil {
		return fmt.Errorf("%w: %w", mcp.ErrConnection, httpwire.WithoutURL(err))
	}
	answer := &streamable.HTTPError{Status: resp.StatusCode, Header: resp.Header, SentCredentials: httpwire.SentCredentials(resp)}
	if resp.Body != nil {
		answer.Body = httpwire.ReadErrorBody(resp, httpwire.MaxErrorBody)
	}
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return fmt.Errorf("the server's answer opens no WebSocket connection: %w", err)
	case resp.StatusCode < 300:
		return fmt.Errorf("there is no WebSocket server at this URL: %w", answer)
	}
	return answer
}
