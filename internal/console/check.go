package console

import (
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// contentPolicy lets the page load its own files only, and create no scripts or markup from text.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// setSecurityFields sets the header fields that every answer has.
func setSecurityFields(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), usb=(), serial=(), payment=()")
}

// checkOrigin returns an error unless the request names a host of this machine, and comes from the
// console's own page, from the user, or from no browser.
func (c *Console) checkOrigin(r *http.Request) error {
	if !isOwnHost(r, c.options.Hosts) {
		advice := "start dowel with --host " + shorten(hostname(r.Host))
		if c.options.IsEmbedded {
			advice = "its program adds it to the Hosts of console.Options"
		}
		return fmt.Errorf("the console is not known by the name %q: if it is yours, %s", shorten(r.Host), advice)
	}
	if site := r.Header.Values("Sec-Fetch-Site"); len(site) > 1 || len(site) == 1 && site[0] != "same-origin" && site[0] != "none" {
		advice := "run dowel console"
		if c.options.IsEmbedded {
			advice = "open a new link of its program"
		}
		return fmt.Errorf("a page of another site or port may not open or use the console: type its address, or %s", advice)
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	if u, err := url.Parse(origins[0]); len(origins) > 1 || err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return fmt.Errorf("pages of the origin %q may not use the console", shorten(origins[0]))
	}
	return nil
}

// isOwnHost reports whether the requested host is a name of this machine. An attacker can make any
// other name lead here.
func isOwnHost(r *http.Request, hosts []string) bool {
	name := hostname(r.Host)
	if slices.ContainsFunc(hosts, func(known string) bool {
		return known == "*" || strings.EqualFold(known, r.Host) || strings.EqualFold(known, name)
	}) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	if strings.EqualFold(name, "localhost") || err == nil && ip.IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && !local.IP.IsLoopback() && len(hosts) == 0 && err == nil
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// maxShown limits foreign text in an error.
const maxShown = 100

func shorten(text string) string { return text[:min(len(text), maxShown)] }

// checkBody returns an error for a method that the API does not have, and for a body that a form
// could send.
func checkBody(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return nil
	case http.MethodPost:
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			return errors.New("want the Content-Type application/json")
		}
		return nil
	}
	return fmt.Errorf("the method %s is not used here: want GET or POST", shorten(r.Method))
}
