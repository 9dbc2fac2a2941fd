package streamable

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// Guard decides which web pages and host names may reach a server. It checks the Host and Origin
// fields of requests, answers preflights of browsers, and adds the CORS fields for allowed pages
// (basic/transports: security). The zero Guard accepts requests for local and IP addresses from
// pages of the same host. It must not be changed after its first use.
type Guard struct {
	// Hosts are the names under which clients reach the server, with or without a port, for example
	// "mcp.example.com". "*" accepts every name. If Hosts is empty, a connection to a loopback
	// address must name a loopback host (localhost, 127.0.0.0/8, ::1), and a connection to another
	// address must name an IP address. An attacker can make any other name lead to the server (DNS
	// rebinding), so list the names that are yours.
	Hosts []string
	// AllowOrigin reports whether pages of an origin such as "https://app.example.com" may use the
	// server. It may be called concurrently. Pages of the requested host are always allowed, and
	// pages of loopback hosts if the requested host is one. nil allows no others.
	AllowOrigin func(origin string) bool
	// Off accepts every request. Set it if a proxy or handler in front makes these checks.
	Off bool
}

// Check reports whether the request may be served. If not, Check has answered it. It also answers
// preflights, and returns false for them.
func (g *Guard) Check(w http.ResponseWriter, r *http.Request) bool {
	if g.Off {
		return true
	}
	if !g.allowsHost(r) {
		httpwire.Refuse(w, http.StatusForbidden, "this server is not known by the Host "+httpwire.QuoteShort(r.Host)+": add it to the server's hosts")
		return false
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return g.checkFetchMetadata(w, r)
	}
	if len(origins) > 1 || !g.allowsOrigin(r, origins[0]) {
		httpwire.Refuse(w, http.StatusForbidden, "pages of the origin "+httpwire.QuoteShort(origins[0])+" may not use this server")
		return false
	}
	return writeCORS(w, r, origins[0])
}

// fetchProtection is shared: it holds no state of requests.
var fetchProtection http.CrossOriginProtection

// checkFetchMetadata refuses a request without an Origin if the browser's Sec-Fetch fields say that
// it comes from a page of another site.
func (g *Guard) checkFetchMetadata(w http.ResponseWriter, r *http.Request) bool {
	if err := fetchProtection.Check(r); err != nil {
		httpwire.Refuse(w, http.StatusForbidden, err.Error())
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
		return err == nil || httpwire.IsLoopbackHost(name)
	}
	return httpwire.IsLoopbackHost(name) || local.Network() == "unix"
}

func (g *Guard) allowsOrigin(r *http.Request, origin string) bool {
	if g.AllowOrigin != nil && g.AllowOrigin(origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // includes "null", which a page without an origin sends
	}
	return strings.EqualFold(u.Host, r.Host) || httpwire.IsLoopbackHost(u.Hostname()) && httpwire.IsLoopbackHost(hostWithoutPort(r.Host))
}

// writeCORS adds the fields that allow the page of origin to read the answer. It returns false for
// a preflight, which it has answered.
func writeCORS(w http.ResponseWriter, r *http.Request, origin string) bool {
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, Retry-After, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return true
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if asked := r.Header.Values("Access-Control-Request-Headers"); len(asked) > 0 { // Mcp-Param-* fields may have any name
		h.Set("Access-Control-Allow-Headers", strings.Join(asked, ", "))
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	h.Set("Access-Control-Max-Age", "7200") // seconds, the most that browsers accept
	w.WriteHeader(http.StatusNoContent)
	return false
}

func hostWithoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// isPublic reports whether other machines can reach an address.
func isPublic(a net.Addr) bool {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return !tcp.IP.IsLoopback()
	}
	addr, err := netip.ParseAddrPort(a.String())
	return err == nil && !addr.Addr().Unmap().IsLoopback()
}
