package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"

	"github.com/dowel-mcp/dowel/auth/resource"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/mcp"
)

// ErrAuth is the error of a request for the gateway's own token if gateway.auth replaces that
// token.
var ErrAuth = errors.New("the gateway accepts access tokens of the authorization servers in gateway.auth, and no token of dowel: clients log in there by themselves")

// NewResourceServer returns the check of access tokens for a listener. The address in the settings
// counts as an allowed host.
func NewResourceServer(a config.GatewayAuth, l net.Listener, listen *ListenOptions, logger *slog.Logger) (*resource.Server, error) {
	guard, _, err := newResourceServer(a, l, listen, nil, logger)
	return guard, err
}

// newResourceServer is NewResourceServer with the keys of nonces, and returns the address of the
// server as clients know it. nil keys are random.
func newResourceServer(a config.GatewayAuth, l net.Listener, listen *ListenOptions, keys *mcp.Keys, logger *slog.Logger) (guard *resource.Server, at string, err error) {
	opts := resource.Options{
		URL: a.URL, Audiences: a.Audiences, Scopes: a.Scopes, Keys: keys, Logger: logger, OfferDPoP: a.DPoP != "", RequireDPoP: a.DPoP == "required",
	}
	if opts.URL == "" {
		if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
			return nil, "", fmt.Errorf("other machines can reach %s: set url to the address that clients use, such as https://mcp.example.com", l.Addr())
		}
		opts.URL = "http://" + l.Addr().String()
	} else if u, err := url.Parse(opts.URL); err == nil && u.Hostname() != "" {
		listen.Hosts = append(listen.Hosts, u.Hostname())
	}
	for _, issuer := range a.Issuers {
		described := resource.Issuer{URL: issuer, RequireType: a.RequireType}
		if a.ClientID != "" {
			described.Introspection = &resource.Introspection{ClientID: a.ClientID, ClientSecret: a.ClientSecret}
		}
		opts.Issuers = append(opts.Issuers, described)
	}
	guard, err = resource.New(opts)
	return guard, opts.URL, err
}
