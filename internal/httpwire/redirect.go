package httpwire

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Origin returns the scheme and host of a URL, for messages.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && EffectivePort(a) == EffectivePort(b)
}

// EffectivePort returns the port of a URL, or else the default port of its scheme.
func EffectivePort(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// GuardRedirects returns a copy of client that follows redirects only within an origin, or from
// http to https of the same host, and only if a POST stays a POST. So credentials never reach
// another server. The client's own CheckRedirect is asked first.
func GuardRedirects(client *http.Client) *http.Client {
	guarded := *client
	guarded.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if client.CheckRedirect != nil {
			if err := client.CheckRedirect(next, via); err != nil {
				return err
			}
		}
		return checkRedirect(next, via)
	}
	return &guarded
}

// checkRedirect is the rule of [GuardRedirects]. A change from http to https must use the default
// port of each.
func checkRedirect(next *http.Request, via []*http.Request) error {
	const maxRedirects = 10
	first := via[0]
	upgrade := first.URL.Scheme == "http" && next.URL.Scheme == "https" &&
		strings.EqualFold(first.URL.Hostname(), next.URL.Hostname()) && EffectivePort(first.URL) == "80" && EffectivePort(next.URL) == "443"
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("the server redirected more than %d times", maxRedirects)
	case !upgrade && !SameOrigin(first.URL, next.URL):
		return fmt.Errorf("the server redirects to another origin, %s: dial that if you trust it", Origin(next.URL))
	case next.Method != first.Method:
		return http.ErrUseLastResponse
	}
	return nil
}

// Canonical returns a copy of a URL with scheme and host in lower case, without the default port,
// user and fragment.
func Canonical(u *url.URL) *url.URL {
	c := *u
	c.Scheme, c.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if c.Scheme == "https" {
		c.Host = strings.TrimSuffix(c.Host, ":443")
	} else {
		c.Host = strings.TrimSuffix(c.Host, ":80")
	}
	c.User, c.Fragment, c.RawFragment = nil, "", ""
	return &c
}
