package sse

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// resolve returns the endpoint that a server has told, relative to the URL of its stream. Another origin must not get what
// is meant for this one.
func resolve(stream *url.URL, told string) (*url.URL, error) {
	ref, err := url.Parse(strings.TrimSpace(told))
	if err != nil || told == "" {
		const shown = 100
		return nil, fmt.Errorf("the server's endpoint event holds no URL: %.*q", shown, told)
	}
	to := stream.ResolveReference(ref)
	if !sameOrigin(stream, to) {
		return nil, fmt.Errorf("the server's endpoint event points to another origin: %s, where the stream is at %s", originOf(to), originOf(stream))
	}
	to.User = stream.User
	return to, nil
}

func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// guarded returns the client with the rule for redirects, beside its own.
func guarded(client *http.Client) *http.Client {
	own := *client
	own.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if client.CheckRedirect != nil {
			if err := client.CheckRedirect(next, via); err != nil {
				return err
			}
		}
		return redirect(next, via)
	}
	return &own
}

// redirect is the rule: never to another origin, but from http to https of the same host, and a message stays one.
func redirect(next *http.Request, via []*http.Request) error {
	const most = 10
	first := via[0]
	upgrade := first.URL.Scheme == "http" && next.URL.Scheme == "https" && strings.EqualFold(first.URL.Hostname(), next.URL.Hostname())
	switch {
	case len(via) >= most:
		return fmt.Errorf("the server has redirected %d times", most)
	case !upgrade && !sameOrigin(first.URL, next.URL):
		return fmt.Errorf("the server redirects to another origin, %s: dial that if you trust it", originOf(next.URL))
	case next.Method != first.Method:
		return http.ErrUseLastResponse
	}
	return nil
}
