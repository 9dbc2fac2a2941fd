package resource

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/go-jose/go-jose/v4"
)

var (
	proofAlgorithms     = []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.EdDSA, jose.PS256, jose.RS256}
	proofAlgorithmNames = []string{string(jose.ES256), string(jose.ES384), string(jose.EdDSA), string(jose.PS256), string(jose.RS256)}
)

// proofWindow is how old a proof may be, or how far from the future.
const proofWindow = 5 * time.Minute

// checkProof checks that the sender of a request has the key that its token is bound to (RFC 9449,
// section 7).
func (s *Server) checkProof(r *http.Request, scheme, raw string, t *Token) error {
	switch {
	case t.keyThumbprint == "":
		return refuse(codeInvalidToken, errors.New("the token is not bound to a key, and the request or the server asks for DPoP"))
	case scheme != oauth.SchemeDPoP:
		return refuse(codeInvalidToken, errors.New("the token is bound to a key, and was sent with the scheme Bearer"))
	}
	now := s.now()
	target := s.origin(r) + r.URL.EscapedPath()
	if _, ok := s.pathBelow(strings.TrimSuffix(r.URL.EscapedPath(), "/")); !ok {
		target = s.opts.URL // a proxy has changed the path
	}
	proof, err := oauth.VerifyProof(r.Header[oauth.HeaderDPoP], oauth.ProofClaims{Method: r.Method, URL: target, Token: raw}, proofAlgorithms, now, proofWindow)
	switch {
	case err != nil:
		return refuse(codeInvalidProof, err)
	case proof.Thumbprint != t.keyThumbprint:
		return refuse(codeInvalidProof, errors.New("the DPoP proof is made with another key than the one of the token"))
	case s.opts.DPoPNonces && !s.nonces.isCurrent(proof.Nonce, now):
		return refuse(codeUseNonce, fmt.Errorf("the DPoP proof has the nonce %.40q, which is not current", proof.Nonce))
	case !s.proofs.addNew(proof, now):
		return refuse(codeInvalidProof, errors.New("the DPoP proof was used before"))
	}
	return nil
}

// nonceSealer makes nonces for proofs. A nonce contains its time, sealed, so replicas with the same
// keys know it without shared memory.
type nonceSealer struct{ sealer *mcp.Sealer }

func newNonceSealer(keys *mcp.Keys) *nonceSealer { return &nonceSealer{keys.For("DPoP nonce")} }

func (n *nonceSealer) issue(now time.Time) string {
	return n.sealer.Seal(binary.BigEndian.AppendUint64(nil, uint64(now.Unix())), nil)
}

func (n *nonceSealer) isCurrent(nonce string, now time.Time) bool {
	plain, err := n.sealer.Open(nonce, nil)
	if err != nil || len(plain) != 8 {
		return false
	}
	age := now.Sub(time.Unix(int64(binary.BigEndian.Uint64(plain)), 0))
	return age < proofWindow && age > -proofWindow
}

// proofLog remembers the proofs of the last minutes, so that none is used twice. Each process has
// its own: replicas accept a proof once each.
type proofLog struct {
	mu         sync.Mutex
	young, old map[[16]byte]struct{}
	turned     time.Time // when young began
}

// maxProofs is the number of proofs in each half of a log, 16 bytes each. Beyond it the oldest are
// forgotten before their time.
const maxProofs = 200_000

func newProofLog() *proofLog { return &proofLog{young: map[[16]byte]struct{}{}} }

// addNew adds a proof. It reports false if the log has it already. Each half lasts as long as a proof
// can be valid, so the log forgets none that is.
func (l *proofLog) addNew(p oauth.Proof, now time.Time) bool {
	sum := sha256.Sum256([]byte(p.Thumbprint + " " + p.ID))
	key := [16]byte(sum[:16])
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.turned) > 2*proofWindow || len(l.young) >= maxProofs {
		l.old, l.young, l.turned = l.young, map[[16]byte]struct{}{}, now
	}
	_, isOld := l.old[key]
	_, isYoung := l.young[key]
	l.young[key] = struct{}{}
	return !isOld && !isYoung
}
