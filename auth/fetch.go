package auth

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// Bounds of requests to authorization servers and for metadata.
const (
	fetchTimeout   = 10 * time.Second
	tokenTimeout   = 30 * time.Second
	maxDocument    = 1 << 20
	maxRedirects   = 3
	maxShownAnswer = 200
)

// fetcher sends requests to addresses that a server has named: for metadata, and to the endpoints
// of an authorization server. Unless private addresses are allowed, it connects only to public ones
// (security best practices: SSRF).
type fetcher struct {
	metadata http.Client // follows a few redirects
	endpoint http.Client // follows none

	server       *url.URL // the MCP server
	allowPrivate func() bool
}

// newFetcher returns a fetcher that sends requests with base, or with the result of its method
// HTTPTransport if it has one. Addresses are checked if this is an *http.Transport.
func newFetcher(server *url.URL, base http.RoundTripper, allowPrivate bool) *fetcher {
	f := &fetcher{server: server}
	f.allowPrivate = func() bool { return true }
	if !allowPrivate {
		f.allowPrivate = (&privateHost{name: server.Hostname()}).isPrivate
	}
	if wrapped, ok := base.(interface{ HTTPTransport() *http.Transport }); ok && wrapped.HTTPTransport() != nil {
		base = wrapped.HTTPTransport()
	}
	if t, ok := base.(*http.Transport); ok {
		base = f.guardDials(t)
	}
	f.metadata = http.Client{Transport: base, CheckRedirect: checkMetadataRedirect}
	f.endpoint = http.Client{Transport: base, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return f
}

// guardDials returns a copy of a transport that refuses private addresses when it connects, after
// names are resolved. A proxy resolves names itself, so its own address is not checked.
func (f *fetcher) guardDials(t *http.Transport) *http.Transport {
	guarded := t.Clone()
	proxy := t.Proxy
	if proxy == nil {
		proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	var proxies sync.Map // addresses of proxies
	guarded.Proxy = func(r *http.Request) (*url.URL, error) {
		u, err := proxy(r)
		if u != nil {
			proxies.Store(net.JoinHostPort(u.Hostname(), httpwire.EffectivePort(u)), true)
		}
		return u, err
	}
	isGuarded := func(address string) bool {
		_, isProxy := proxies.Load(address)
		return !isProxy && !f.allowPrivate()
	}
	plain := t.DialContext
	dialer := &net.Dialer{Timeout: fetchTimeout, Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(address) }}
	guarded.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch {
		case isGuarded(address):
			return dialer.DialContext(ctx, network, address)
		case plain != nil:
			return plain(ctx, network, address)
		}
		return (&net.Dialer{Timeout: fetchTimeout}).DialContext(ctx, network, address)
	}
	if dialTLS := t.DialTLSContext; dialTLS != nil {
		guarded.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if !isGuarded(address) {
				return dialTLS(ctx, network, address)
			}
			return (&tls.Dialer{NetDialer: dialer, Config: t.TLSClientConfig}).DialContext(ctx, network, address)
		}
	}
	return guarded
}

func isLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// checkMetadataRedirect allows redirects within an origin and to https.
func checkMetadataRedirect(next *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case next.URL.Scheme != "https" && !httpwire.SameOrigin(via[0].URL, next.URL):
		return fmt.Errorf("a redirect to %s, which is not https", httpwire.Origin(next.URL))
	}
	return nil
}

// checkSecure returns an error unless a URL has scheme https, or http on this machine
// (security-considerations: communication security).
func checkSecure(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return nil, fmt.Errorf("%q is not a URL", shorten(raw))
	case u.Scheme == "https", u.Scheme == "http" && isLoopbackHost(u.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("%s is not a URL of https", shorten(raw))
}

// answer is a response that was read to its end, or to [maxDocument].
type answer struct {
	status int
	header http.Header
	body   []byte
	isJSON bool // by its Content-Type, or by its form if that is missing

	sent []string // secrets of the request
}

// getDocument reads a JSON document.
func (f *fetcher) getDocument(ctx context.Context, address string) (*answer, error) {
	if _, err := checkSecure(address); err != nil && !f.isOwnOrigin(address) {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	return exchange(&f.metadata, r)
}

// isOwnOrigin reports whether an address belongs to the MCP server. Its URL may be http.
func (f *fetcher) isOwnOrigin(address string) bool {
	u, err := url.Parse(address)
	return err == nil && httpwire.SameOrigin(u, f.server)
}

// post sends a body to an endpoint of an authorization server.
func (f *fetcher) post(ctx context.Context, address, contentType, body string, header http.Header) (*answer, error) {
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", contentType)
	return f.request(ctx, http.MethodPost, address, body, header)
}

// request sends a request to an endpoint of an authorization server.
func (f *fetcher) request(ctx context.Context, method, address, body string, header http.Header) (*answer, error) {
	if _, err := checkSecure(address); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Accept", "application/json")
	a, err := exchange(&f.endpoint, r)
	if a != nil {
		a.sent = sentSecrets(body, header)
	}
	return a, err
}

func exchange(client *http.Client, r *http.Request) (*answer, error) {
	resp, err := client.Do(r)
	if err != nil {
		return nil, httpwire.WithoutURL(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxDocument:
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxDocument)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	start := strings.TrimLeft(string(body[:min(len(body), 64)]), " \t\r\n\ufeff")
	return &answer{
		status: resp.StatusCode, header: resp.Header, body: body,
		isJSON: media != "text/html" && strings.HasPrefix(start, "{"),
	}, nil
}

func shorten(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
	if len(text) > maxShownAnswer {
		text = strings.ToValidUTF8(text[:maxShownAnswer], "") + "…"
	}
	return text
}
