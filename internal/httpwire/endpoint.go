// Package httpwire holds the code that the transports over HTTP share: transport/streamable,
// transport/sse and, for the request that opens a connection, transport/websocket. The server side
// reads bodies ([BodyReader]) and answers outside the protocol ([Refuse], [WriteDocument]). The
// client side reads a URL, its header fields and its HTTP client ([Endpoint]) and keeps credentials
// away from other origins ([GuardRedirects], [SameOrigin]).
//
// It is a package of its own so that programs without HTTP do not link net/http.
package httpwire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/transport"
)

// Endpoint is a server's URL and how to send requests to it. streamable.URL and sse.URL have the
// same fields, which are documented there, and convert to an Endpoint.
type Endpoint struct {
	URL        string
	Client     *http.Client
	Header     func(ctx context.Context) (http.Header, error)
	MaxMessage int
}

// Parse returns the parsed URL. The error does not quote the URL, which may contain secrets.
func (e Endpoint) Parse() (*url.URL, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not a URL of http or https: write it as https://host/path", e.Redacted())
	}
	return u, nil
}

// Redacted returns the URL without user, query and fragment, which may contain secrets.
func (e Endpoint) Redacted() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return "(malformed URL)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// Limit returns the largest message that may be received, in bytes.
func (e Endpoint) Limit() int {
	if e.MaxMessage <= 0 {
		return transport.DefaultMaxMessage
	}
	return e.MaxMessage
}

// AddHeader adds the fields of the Header function, if it is set, to h, and records them for
// [RecordFields].
func (e Endpoint) AddHeader(ctx context.Context, h http.Header) error {
	if e.Header == nil {
		return nil
	}
	fields, err := e.Header(ctx)
	if err != nil {
		return fmt.Errorf("cannot make the header of a request: %w", err)
	}
	if s, ok := ctx.Value(sentFieldsKey{}).(*SentFields); ok {
		s.record(fields)
	}
	for name, values := range fields {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return nil
}

// NewTransport returns an HTTP transport that keeps a connection for each of many concurrent calls.
// Except for that it has the settings of [http.DefaultTransport].
func NewTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok { // a program may have replaced it
		t = standard.Clone()
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = 256, 128, 90*time.Second
	return t
}

// WithoutURL removes the [url.Error] that http.Client adds to err. It quotes the URL, which may
// contain secrets.
func WithoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// IsLoopbackHost reports whether a host, without a port, is this machine: localhost or a loopback
// address.
func IsLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
