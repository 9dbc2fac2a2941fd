package authtest

import (
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// proofWindow is how far the time in a DPoP proof may be from now.
const proofWindow = 5 * time.Minute

var proofAlgorithms = []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA}

// readProof returns the thumbprint of the key that signed the DPoP proof of a request to target
// (RFC 9449). It is empty without a proof. token is the access token of the request, empty at the
// token endpoint.
func readProof(r *http.Request, target, token string) (thumbprint string, err error) {
	values := r.Header[oauth.HeaderDPoP]
	if len(values) == 0 {
		return "", nil
	}
	claims := oauth.ProofClaims{Method: r.Method, URL: target, Token: token}
	proof, err := oauth.VerifyProof(values, claims, proofAlgorithms, time.Now(), proofWindow)
	return proof.Thumbprint, err
}

// refuseKey refuses a request without a proof of the key to which the grant is bound. It reports
// whether it did.
func (t *tokenRequest) refuseKey(g *grant) bool {
	if g.key == "" || g.key == t.key {
		return false
	}
	t.refuse("invalid_dpop_proof", "the grant is bound to another key than the one of the proof")
	return true
}

// isProved reports whether the sender of a request to a resource has the key of its token. A token
// without a key is a bearer token.
func isProved(r *http.Request, target, scheme, token string, a *accessToken) bool {
	key, err := "", error(nil)
	if scheme == oauth.SchemeDPoP {
		if key, err = readProof(r, target, token); key == "" {
			return false
		}
	}
	return err == nil && key == a.key
}
