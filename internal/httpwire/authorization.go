package httpwire

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Authorization holds the facts about a request that a resource server has let pass. Requests with
// the same token share it, so it must not be changed.
type Authorization struct {
	Principal mcp.Principal
	// Challenge returns the values of WWW-Authenticate that ask the client of a request for a token
	// with more scopes.
	Challenge func(r *http.Request, scopes []string) []string
	// Token is the *resource.Token.
	Token any
	// Raw is the access token. It must reach authorization servers only.
	Raw string
}

type authorizationKey struct{}

// WithAuthorization returns a context with the authorization of its request.
func WithAuthorization(ctx context.Context, a *Authorization) context.Context {
	return context.WithValue(ctx, authorizationKey{}, a)
}

// AuthorizationFrom returns the authorization of a request's context, or nil if no resource server
// has let the request pass.
func AuthorizationFrom(ctx context.Context) *Authorization {
	a, _ := ctx.Value(authorizationKey{}).(*Authorization)
	return a
}

// PrincipalOr returns a function that returns the principal whom a resource server has verified for
// a request, or fallback without a resource server.
func PrincipalOr(fallback mcp.Principal) func(*http.Request) mcp.Principal {
	return func(r *http.Request) mcp.Principal {
		if a := AuthorizationFrom(r.Context()); a != nil {
			return a.Principal
		}
		return fallback
	}
}

// ScopeChecker compares the scopes of a principal with the scopes that a request needs. The zero
// value needs none.
type ScopeChecker struct {
	handler scopedHandler
}

// scopedHandler is an optional interface of [mcp.Handler].
type scopedHandler interface {
	Scopes(ctx context.Context, p mcp.Principal, method string, params json.RawMessage) []string
}

// NewScopeChecker returns the checker for a handler, which may have a method Scopes: see
// [mcp.Handler].
func NewScopeChecker(h mcp.Handler) (c ScopeChecker) {
	c.handler, _ = h.(scopedHandler)
	return c
}

// Missing returns all scopes that a message needs if the principal lacks one of them, and nil
// otherwise. Only requests need scopes.
func (c ScopeChecker) Missing(ctx context.Context, p mcp.Principal, msg *jsonrpc.Message) []string {
	if c.handler == nil || !msg.IsRequest() {
		return nil
	}
	needed := c.handler.Scopes(ctx, p, msg.Method, msg.Params)
	if p.HasScopes(needed...) {
		return nil
	}
	return needed
}

// RefuseScopes answers a request of a principal who lacks scopes: with status 403 and a challenge
// that names all scopes that the request needs (basic/authorization: scope challenge handling).
func RefuseScopes(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, scopes []string) {
	list := strings.Join(scopes, " ")
	challenges := []string{`Bearer error="insufficient_scope", scope="` + list + `"`}
	if a := AuthorizationFrom(r.Context()); a != nil {
		challenges = a.Challenge(r, scopes)
	}
	w.Header()["Www-Authenticate"] = challenges
	RefuseRequest(w, id, http.StatusForbidden, "the request needs a token with the scopes "+list)
}

// EnforceScopes is a middleware for transports that cannot refuse a message with a status: a
// request without the scopes that next wants is answered with an error.
func EnforceScopes(next mcp.Handler) mcp.Handler {
	h, ok := next.(scopedHandler)
	if !ok {
		return next
	}
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if needed := h.Scopes(ctx, req.Principal, req.Method, req.Params); !req.Principal.HasScopes(needed...) {
			return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "%s needs a token with the scopes %s", req.Method, strings.Join(needed, " "))
		}
		return next.ServeMCP(ctx, req)
	})
}
