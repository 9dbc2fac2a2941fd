package connect

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// addOwnToken adds the token of the running daemon to header if u leads to that daemon's HTTP
// address. It adds nothing if the user has given credentials. Other addresses never get the token:
// another user's program may listen there.
func addOwnToken(u *url.URL, header http.Header) {
	if header.Get("Authorization") != "" || u.User != nil || !isPlain(u) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), StatusTimeout)
	defer cancel()
	running := factory.RunningDaemon()
	s, err := running.Status(ctx)
	if err != nil || s.Gateway == "" || s.Open {
		return
	}
	gateway, err := url.Parse(s.Gateway)
	if err != nil || !IsSameAddress(u, gateway) {
		return
	}
	if token, err := running.Token(ctx, false); err == nil && token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
}

// IsSameAddress reports whether two URLs lead to the same port of the same host without TLS. All
// names of the IPv4 loopback address are the same host.
func IsSameAddress(a, b *url.URL) bool {
	return isPlain(a) && isPlain(b) && httpwire.EffectivePort(a) == httpwire.EffectivePort(b) && hostOf(a) == hostOf(b)
}

// isPlain reports whether a URL is for HTTP or WebSocket without TLS.
func isPlain(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "ws" }

func hostOf(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() && ip.To4() != nil {
		return "127.0.0.1"
	}
	return host
}
