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

// proofWindow is how far the time in a proof or in a nonce may be from now, in both directions.
const proofWindow = 5 * time.Minute

// checkProof returns an error unless the sender of a request proves that it has the key to which
// the token is bound (RFC 9449, section 7).
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

// nonceSealer makes the nonces that clients put into their proofs. A nonce is the sealed time at
// which it was made, so it needs no storage, and replicas with the same keys accept each other's
// nonces.
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

// proofLog remembers the proofs that are still valid, so that a proof cannot be used twice.
// Replicas do not share their logs: each of them accepts a proof once. It is safe for concurrent
// use.
type proofLog struct {
	mu         sync.Mutex
	young, old map[[16]byte]struct{} // hashes of proofs; young becomes old, and old is dropped
	turned     time.Time             // when young was created
}

// maxProofs is the largest number of proofs in young and in old, at 16 bytes each. With more, the
// log forgets the oldest proofs while they are still valid.
const maxProofs = 200_000

func newProofLog() *proofLog { return &proofLog{young: map[[16]byte]struct{}{}} }

// addNew adds a proof, and reports false if the log already has it. A proof is valid for at most
// two proofWindows, and stays in young or old for at least as long.
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
