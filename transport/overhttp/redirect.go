package overhttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Origin returns the origin of a URL, for people.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && effectivePort(a) == effectivePort(b)
}

func effectivePort(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// Guarded returns the client with the rule for redirects, beside its own: they are followed within an origin, and from http
// to https of the same host, and a POST stays one. Credentials go nowhere else.
func Guarded(client *http.Client) *http.Client {
	own := *client
	own.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if client.CheckRedirect != nil {
			if err := client.CheckRedirect(next, via); err != nil {
				return err
			}
		}
		return checkRedirect(next, via)
	}
	return &own
}

// checkRedirect is the rule: never to another origin, but from http to https of the same host, each at its usual port, and a
// message stays one.
func checkRedirect(next *http.Request, via []*http.Request) error {
	const most = 10
	first := via[0]
	upgrade := first.URL.Scheme == "http" && next.URL.Scheme == "https" &&
		strings.EqualFold(first.URL.Hostname(), next.URL.Hostname()) && effectivePort(first.URL) == "80" && effectivePort(next.URL) == "443"
	switch {
	case len(via) >= most:
		return errors.New("the server redirects for ever")
	case !upgrade && !SameOrigin(first.URL, next.URL):
		return fmt.Errorf("the server redirects to another origin, %s: dial that if you trust it", Origin(next.URL))
	case next.Method != first.Method:
		return http.ErrUseLastResponse
	}
	return nil
}
