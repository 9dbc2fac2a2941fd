package auth

import (
	"context"
	"net/url"
)

// Login lets the user log in at an authorization server. It is used concurrently. A program
// without a user leaves [Options.Login] nil.
type Login interface {
	// Login receives one redirect from an authorization server:
	//
	//  1. It chooses a redirect URI and begins to listen there.
	//  2. It calls r.Start with the redirect URI. Start registers the client if that is needed, and
	//     returns the URL that the user must open.
	//  3. It shows that URL, and opens it in a browser if it can. The URL has scheme http or https.
	//     Never pass it through a shell.
	//  4. It waits for a redirect with the parameter state of the URL, and returns all parameters
	//     of that redirect. Redirects with another state belong to other logins or to attackers.
	//
	// The parameters are checked by the caller. If Login returns an error, such as [*NeedsLogin],
	// the requests that wait for the login fail with it. If the record in the Store has changed
	// since, because another process has logged in, the error is ignored and that login is used.
	Login(ctx context.Context, r LoginRequest) (url.Values, error)
}

// LoginRequest is a login that a user must make.
type LoginRequest struct {
	Server  string // URL of the MCP server
	Account string // as in Options.Account
	// RedirectURIs are the redirect URIs that the authorization server is known to accept, best
	// first. If it is empty, or none of them can be used, Login chooses a loopback address with any
	// port, and the client is registered with that.
	RedirectURIs []string
	// Exact says that only RedirectURIs can be used.
	Exact bool
	// Start returns the authorization URL. It is called at most once.
	Start func(ctx context.Context, redirectURI string) (authorizationURL string, err error)
	// Device logs in with a browser on another device, in place of Start. It calls show once, and
	// returns when the user has decided. Login then returns nil parameters, and the error of
	// Device. Device is nil if the authorization server has no such flow.
	Device func(ctx context.Context, show func(DeviceCode)) error
}

// LoginFunc is a function that is a [Login].
type LoginFunc func(ctx context.Context, r LoginRequest) (url.Values, error)

// Login implements [Login].
func (f LoginFunc) Login(ctx context.Context, r LoginRequest) (url.Values, error) { return f(ctx, r) }
