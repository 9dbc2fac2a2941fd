package daemon

import (
	"context"
	"net/http"
	"strings"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/auth/resource"
	"github.com/dowel-mcp/dowel/internal/userlogin"
)

// loginUser begins the login of a request's user at a server, or waits for its end: see
// Options.Login of package gateway.
func (d *Daemon) loginUser(ctx context.Context, server string, wait bool) (address string, err error) {
	pages := d.pages.Load()
	l, ok := d.source.UserLogin(ctx, server)
	if pages == nil || !ok {
		return "", nil
	}
	if wait {
		return "", pages.Await(ctx, server, l.Principal)
	}
	return pages.Begin(ctx, userlogin.Login{Server: server, Principal: l.Principal, Issuer: l.Issuer, Run: l.Run})
}

// servePages serves the pages on which users log in at servers, in front of next. url is the
// address of the gateway.
func (d *Daemon) servePages(url string, guard *resource.Server, listen ListenOptions, next http.Handler) http.Handler {
	url = strings.TrimSuffix(url, "/")
	o := userlogin.Options{
		URL: url, Resource: url + "/mcp", Protect: guard.Protect, Logger: d.options.Logger,
		Client: auth.Client{ID: d.settings.Auth.ClientID, Secret: d.settings.Auth.ClientSecret},
	}
	if d.cluster != nil {
		o.Network, o.Values = d.cluster, d.cluster.Values()
	}
	pages := userlogin.New(o)
	d.pages.Store(pages)
	hosts := listen.Guard()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Path, userlogin.Prefix):
			next.ServeHTTP(w, r)
		case hosts.Check(w, r):
			pages.ServeHTTP(w, r)
		}
	})
}
