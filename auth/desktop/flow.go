package desktop

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/webpage"
)

// callbackPath is the path of redirect URIs that this package chooses.
const callbackPath = "/callback"

// flow is one login that waits for its redirect.
type flow struct {
	redirectURI string
	path        string // of redirectURI
	port        int    // at which the redirect is awaited; 0 without a listener
	state       string // set by begin
	release     func() // gives the listener back; nil without one

	claimed   atomic.Bool     // a redirect was received
	redirects chan url.Values // holds one element
}

func newFlow(redirectURI string, port int) *flow {
	f := &flow{redirectURI: redirectURI, port: port, redirects: make(chan url.Values, 1)}
	if u, err := url.Parse(redirectURI); err == nil {
		f.path = u.Path
	}
	return f
}

// begin makes the flow known to the listener under the state of an authorization URL.
func (f *flow) begin(authorizationURL string) error {
	if err := webpage.Check(authorizationURL); err != nil {
		return err
	}
	u, err := url.Parse(authorizationURL)
	if err != nil {
		return err
	}
	f.state = u.Query().Get("state")
	if len(f.state) < 16 {
		return errors.New("the authorization URL has no state of at least 16 characters")
	}
	redirects.addFlow(f)
	return nil
}

// endFlow forgets the flow.
func (f *flow) endFlow() {
	redirects.removeFlow(f)
	if f.release != nil {
		f.release()
	}
}

// claim reports whether its caller has the first redirect, which it must send to f.redirects.
func (f *flow) claim() bool { return f.claimed.CompareAndSwap(false, true) }

// hasState compares in constant time.
func (f *flow) hasState(state string) bool {
	return subtle.ConstantTimeCompare([]byte(f.state), []byte(state)) == 1
}

// parsePasted returns the parameters in a line that the user has pasted: a redirected URL or its
// query.
func (f *flow) parsePasted(line string) (url.Values, error) {
	line = strings.Trim(strings.TrimSpace(line), `"'<>`)
	query := strings.TrimPrefix(line, "?")
	if strings.Contains(line, "://") {
		u, err := url.Parse(line)
		if err != nil {
			return nil, errors.New("this is no URL: paste the whole address of the page to which the browser was sent")
		}
		if expected, err := url.Parse(f.redirectURI); err != nil || u.Host != expected.Host || u.Path != expected.Path {
			return nil, fmt.Errorf("this is another address: paste the one that begins with %s", f.redirectURI)
		}
		query = u.RawQuery
	}
	values, err := parseRedirect(query)
	if err != nil {
		return nil, fmt.Errorf("this is not the answer of the login: %w", err)
	}
	if !f.hasState(values.Get("state")) {
		return nil, errors.New("this address belongs to another login: open the page again, and paste the address to which it leads")
	}
	return values, nil
}

// parseRedirect parses the query of a redirect. No parameter may be repeated (RFC 6749, section
// 3.1).
func parseRedirect(query string) (url.Values, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("its parameters cannot be read")
	}
	for name, all := range values {
		if len(all) > 1 {
			return nil, fmt.Errorf("the parameter %q is repeated", name)
		}
	}
	if !values.Has("state") || !values.Has("code") && !values.Has("error") {
		return nil, errors.New("it has no state, or neither code nor error")
	}
	return values, nil
}

// isLoopbackHost reports whether a host, without a port, is this machine by its name or address.
func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
