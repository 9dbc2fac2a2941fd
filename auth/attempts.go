package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// challenge holds the parameters of the WWW-Authenticate fields of a refusal.
type challenge struct {
	metadataURL string
	scopes      []string
	code        string // the parameter error
	description string
	dpop        bool // the server takes DPoP tokens
}

// readChallenge reads the challenges of a refusal. The scheme that was sent says why; another
// scheme is an alternative. sent is empty without a token.
func readChallenge(h http.Header, sent string) challenge {
	all := oauth.ParseChallenges(h)
	schemes := []string{"Bearer", oauth.SchemeDPoP}
	if _, ok := oauth.FindChallenge(all, "", sent); ok {
		schemes = []string{sent}
	}
	get := func(param string) string {
		c, _ := oauth.FindChallenge(all, param, schemes...)
		return c.Get(param)
	}
	location, _ := oauth.FindChallenge(all, "resource_metadata", "Bearer", oauth.SchemeDPoP)
	_, dpop := oauth.FindChallenge(all, "", oauth.SchemeDPoP)
	return challenge{
		metadataURL: location.Get("resource_metadata"), scopes: splitScopes(get("scope")),
		code: get("error"), description: get("error_description"), dpop: dpop,
	}
}

// reason describes the refusal for an error message.
func (c challenge) reason() string {
	switch {
	case c.code != "" && c.description != "":
		return c.code + ": " + shorten(c.description)
	case c.code != "":
		return c.code
	}
	return "status 401"
}

// attempts decides how often one request is repeated.
type attempts struct {
	t         *Transport
	r         *http.Request
	adopted   int    // newer tokens that another request or process has got
	nonces    int    // repetitions with a new DPoP nonce
	renewed   bool   // the token was renewed for this request
	loggedIn  bool   // a login was made for this request
	operation string // of a step-up for this request; empty without one
}

// Bounds of the repetitions of one request.
const (
	maxAdopted = 3
	maxNonces  = 2
	maxStepUps = 2 // also of one operation, in all requests (authorization: step-up)
)

// next returns the credential with which the request is sent again after a refusal. It returns nil
// if the refusal must be passed on.
func (a *attempts) next(ctx context.Context, c *credential, resp *http.Response) (*credential, error) {
	said := readChallenge(resp.Header, c.scheme())
	if c != nil && c.dpop != nil && said.code == "use_dpop_nonce" && a.nonces < maxNonces {
		a.nonces++
		return c, nil
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return a.renewOrLogin(ctx, c, said)
	case said.code == "insufficient_scope" && len(said.scopes) > 0, isBareScopeChallenge(c, resp, said):
		return a.stepUp(ctx, c, said)
	}
	return nil, nil
}

// isBareScopeChallenge is the tolerance scope-without-error: a refusal names scopes that the token
// lacks, and no error. A server should send the error insufficient_scope (RFC 6750, section 3.1),
// but servers on the official Go SDK do not.
func isBareScopeChallenge(c *credential, resp *http.Response, said challenge) bool {
	return c != nil && resp.StatusCode == http.StatusForbidden && said.code == "" &&
		slices.ContainsFunc(said.scopes, func(scope string) bool { return !slices.Contains(c.granted, scope) })
}

func (a *attempts) renewOrLogin(ctx context.Context, c *credential, said challenge) (*credential, error) {
	if cur := a.t.current.Load(); cur.isNewer(c) && a.adopted < maxAdopted {
		a.adopted++
		return cur, nil
	}
	if a.loggedIn {
		return nil, &NeedsLogin{Server: a.t.server, Reason: "the server refuses the token of a new login (" + said.reason() + ")"}
	}
	n := &need{kind: renewal, failed: c, challenge: said, noRefresh: a.renewed}
	next, err := a.t.acquire(ctx, n)
	switch {
	case errors.Is(err, errUndescribed):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if n.result == loggedIn {
		a.loggedIn = true
	} else if n.result == refreshed {
		a.renewed = true
	} else if a.adopted++; a.adopted > maxAdopted {
		return nil, &NeedsLogin{Server: a.t.server, Reason: "the server refuses every token (" + said.reason() + ")"}
	}
	return next, nil
}

// stepUp gets a token with more scopes. It never refreshes: a refreshed token has the same scopes.
func (a *attempts) stepUp(ctx context.Context, c *credential, said challenge) (*credential, error) {
	if cur := a.t.current.Load(); cur.isNewer(c) {
		if a.adopted < maxAdopted && cur.hasRequested(said.scopes) {
			a.adopted++
			return cur, nil
		}
		c = cur
	}
	operation := requestOperation(a.r)
	lacks := &ScopeNeeded{Server: a.t.server, Operation: operation, Scopes: said.scopes}
	if c != nil {
		lacks.Granted = c.granted
	}
	if a.adopted > maxAdopted || a.t.countedStepUps(operation) >= maxStepUps {
		lacks.Reason = "asking for them has not helped"
		return nil, lacks
	}
	if !a.t.canObtain() {
		lacks.Reason = "a user must log in again for them"
		return nil, lacks
	}
	n := &need{kind: stepUp, failed: c, challenge: said, operation: operation}
	next, err := a.t.acquire(ctx, n)
	a.operation = operation
	if n.isShared || n.result == adopted {
		a.adopted++
	}
	return next, err
}

// noteSuccess forgets the step-ups of the request's operation, because they have helped.
func (a *attempts) noteSuccess() {
	if a.operation == "" {
		return
	}
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	delete(a.t.stepUps, a.operation)
}

func (t *Transport) countedStepUps(operation string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stepUps[operation]
}

// countStepUp counts a step-up of an operation. Requests that share it count once.
func (t *Transport) countStepUp(operation string) {
	const maxOperations = 1000
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.stepUps) > maxOperations {
		clear(t.stepUps)
	}
	t.stepUps[operation]++
}

// requestOperation describes what a request does: its method, and the name of a tool, prompt or
// resource. Modern requests name both in their header, others only in their body.
func requestOperation(r *http.Request) string {
	if method := r.Header.Get(mcpwire.HeaderMethod); method != "" {
		return describeOperation(method, r.Header.Get(mcpwire.HeaderName))
	}
	if r.Method == http.MethodPost && r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			raw, _ := io.ReadAll(body)
			body.Close()
			if operation := bodyOperation(raw); operation != "" {
				return operation
			}
		}
	}
	return r.Method + " " + r.URL.Path
}

func bodyOperation(raw []byte) string {
	if raw = bytes.TrimSpace(raw); !json.Valid(raw) || !rawjson.IsObject(raw) {
		return ""
	}
	method, _ := rawjson.String(rawjson.Lookup(raw, "method"))
	params := rawjson.Lookup(raw, "params")
	if params == nil || !rawjson.IsObject(params) {
		return method
	}
	for _, field := range []string{"name", "uri"} {
		if name, ok := rawjson.String(rawjson.Lookup(params, field)); ok {
			return describeOperation(method, name)
		}
	}
	return method
}

func describeOperation(method, name string) string {
	if name == "" {
		return method
	}
	return method + " " + shorten(name)
}
