package overhttp

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Guard keeps web pages away from servers that were not meant for them: it checks the Host and Origin of requests, answers
// preflights, and gives the pages that are allowed the fields that a browser asks for (basic/transports: security). The
// zero Guard is ready.
type Guard struct {
	// Hosts are the names under which the server is reached, each with or without a port: "mcp.example.com"; "*" is any. Empty:
	// a connection to a loopback address must name a loopback host (localhost, 127.0.0.0/8, ::1), one to another address an
	// IP address. Any name may be made to lead here, which is DNS rebinding; list those that are meant to.
	Hosts []string
	// AllowOrigin reports whether pages of an origin ("https://app.example.com") may use the server. nil: only those of
	// the host that the request names, and of loopback hosts where that is one.
	AllowOrigin func(origin string) bool
	// Off leaves it all to somebody in front.
	Off bool
}

// Check reports whether a request may go on. One that may not, and a preflight, has been answered.
func (g *Guard) Check(w http.ResponseWriter, r *http.Request) bool {
	if g.Off {
		return true
	}
	if !g.allowsHost(r) {
		Refuse(w, http.StatusForbidden, "the Host "+quoteShort(r.Host)+" is not one that this server is known by: list it with its hosts")
		return false
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return g.checkFetchMetadata(w, r)
	}
	if len(origins) > 1 || !g.allowsOrigin(r, origins[0]) {
		Refuse(w, http.StatusForbidden, "pages of the origin "+quoteShort(origins[0])+" may not use this server")
		return false
	}
	return writeCORS(w, r, origins[0])
}

// fetchProtection has no state of its own.
var fetchProtection http.CrossOriginProtection

// checkFetchMetadata refuses what a browser says to come from a page of somewhere else, though it names no origin.
func (g *Guard) checkFetchMetadata(w http.ResponseWriter, r *http.Request) bool {
	if err := fetchProtection.Check(r); err != nil {
		Refuse(w, http.StatusForbidden, err.Error())
		return false
	}
	return true
}

func (g *Guard) allowsHost(r *http.Request) bool {
	if len(g.Hosts) > 0 {
		return slices.ContainsFunc(g.Hosts, func(known string) bool {
			return known == "*" || strings.EqualFold(known, r.Host) || strings.EqualFold(known, hostWithoutPort(r.Host))
		})
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return true
	}
	name := hostWithoutPort(r.Host)
	if isPublic(local) {
		_, err := netip.ParseAddr(name)
		return err == nil || isLoopback(name)
	}
	return isLoopback(name) || local.Network() == "unix"
}

func (g *Guard) allowsOrigin(r *http.Request, origin string) bool {
	if g.AllowOrigin != nil && g.AllowOrigin(origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null" too: a page without an origin of its own
	}
	return strings.EqualFold(u.Host, r.Host) || isLoopback(u.Hostname()) && isLoopback(hostWithoutPort(r.Host))
}

// writeCORS tells the browser that the page may go on; a preflight ends here.
func writeCORS(w http.ResponseWriter, r *http.Request, origin string) bool {
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, Retry-After, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return true
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if asked := r.Header.Values("Access-Control-Request-Headers"); len(asked) > 0 { // Mcp-Param-* have names of any kind
		h.Set("Access-Control-Allow-Headers", strings.Join(asked, ", "))
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	h.Set("Access-Control-Max-Age", "7200") // seconds; browsers take no more
	w.WriteHeader(http.StatusNoContent)
	return false
}

func hostWithoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// isPublic reports whether an address is an IP address that other machines reach.
func isPublic(a net.Addr) bool {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return !tcp.IP.IsLoopback()
	}
	addr, err := netip.ParseAddrPort(a.String())
	return err == nil && !addr.Addr().Unmap().IsLoopback()
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
