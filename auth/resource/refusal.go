package resource

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/jsonrpc"
)

// Error codes of challenges (RFC 6750, section 3.1, and RFC 9449, section 7.1).
const (
	codeInvalidRequest    = "invalid_request"
	codeInvalidToken      = "invalid_token"
	codeInsufficientScope = "insufficient_scope"
	codeInvalidProof      = "invalid_dpop_proof"
	codeUseNonce          = "use_dpop_nonce"
)

// refusal is the reason why a request may not pass.
type refusal struct {
	code   string // of the challenge; empty if the request had no credentials
	reason error  // for the log
}

func (r *refusal) Error() string { return r.reason.Error() }

func refuse(code string, reason error) error { return &refusal{code, reason} }

// unavailableError reports that no decision was possible, because an authorization server does not
// answer.
type unavailableError struct{ reason error }

func (e *unavailableError) Error() string { return e.reason.Error() }
func (e *unavailableError) Unwrap() error { return e.reason }

// texts tell the client's user about a refusal. They do not say why a token is invalid.
var texts = map[string]string{
	"":                    "this server needs an access token: log in at the authorization server that the protected resource metadata names",
	codeInvalidRequest:    "the request must carry one access token in one Authorization field, and no token in its URL",
	codeInvalidToken:      "the access token is not valid for this server: it may have expired, or belong to another server",
	codeInsufficientScope: "the access token lacks scopes that this request needs",
	codeInvalidProof:      "the DPoP proof is missing or not valid for this request",
	codeUseNonce:          "the DPoP proof must have the nonce of the field DPoP-Nonce",
}

// retryAfter is how long clients wait if an authorization server does not answer.
const retryAfter = 5 * time.Second

// answerRefusal answers a request that may not pass.
func (s *Server) answerRefusal(w http.ResponseWriter, r *http.Request, err error) {
	allowAnyOrigin(w)
	var why *refusal
	if !errors.As(err, &why) {
		s.log.Error("a token could not be verified", "err", err)
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		httpwire.Refuse(w, http.StatusServiceUnavailable, "tokens cannot be verified at the moment: try again later")
		return
	}
	if why.code != "" {
		s.log.Info("a request was refused", "code", why.code, "reason", why.reason, "path", r.URL.Path, "from", r.RemoteAddr)
	}
	status := http.StatusUnauthorized
	switch why.code {
	case codeInvalidRequest:
		status = http.StatusBadRequest
	case codeInsufficientScope:
		status = http.StatusForbidden
	case codeUseNonce:
		w.Header()[oauth.HeaderDPoPNonce] = []string{s.nonces.issue(s.now())}
	}
	w.Header()["Www-Authenticate"] = s.challenges(r, why.code, s.opts.Scopes)
	httpwire.RefuseRequest(w, jsonrpc.ID{}, status, texts[why.code])
}

// challenges returns the values of WWW-Authenticate: one for each scheme that the request could use
// or has used. An error about a proof is reported with the scheme DPoP alone.
func (s *Server) challenges(r *http.Request, code string, scopes []string) []string {
	var values []string
	aboutProof := code == codeInvalidProof || code == codeUseNonce
	if !s.opts.RequireDPoP && !aboutProof {
		values = append(values, s.challenge(r, "Bearer", code, scopes))
	}
	if s.opts.RequireDPoP || s.opts.OfferDPoP || aboutProof || usesDPoP(r) {
		values = append(values, s.challenge(r, oauth.SchemeDPoP, code, scopes))
	}
	return values
}

func usesDPoP(r *http.Request) bool {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, oauth.SchemeDPoP)
}

func (s *Server) challenge(r *http.Request, scheme, code string, scopes []string) string {
	c := oauth.Challenge{Scheme: scheme}
	add := func(name, value string) {
		if value != "" {
			c.Params = append(c.Params, oauth.Param{Name: name, Value: value})
		}
	}
	if code != "" {
		add("error", code)
		add("error_description", texts[code])
	}
	add("scope", joinScopes(scopes))
	add("resource_metadata", s.metadataURL(r))
	if scheme == oauth.SchemeDPoP {
		add("algs", joinScopes(proofAlgorithmNames))
	}
	return c.String()
}

// challengeScopes asks for a token with scopes and Options.Scopes, which a new token needs too. It
// is the Challenge of [httpwire.Authorization].
func (s *Server) challengeScopes(r *http.Request, scopes []string) []string {
	all := slices.Clone(s.opts.Scopes)
	for _, scope := range scopes {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return s.challenges(r, codeInsufficientScope, all)
}
