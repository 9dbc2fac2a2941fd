package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Names of DPoP in HTTP (RFC 9449).
const (
	HeaderDPoP      = "Dpop"       // canonical form of DPoP, the field of the proof
	HeaderDPoPNonce = "Dpop-Nonce" // canonical form of DPoP-Nonce
	SchemeDPoP      = "DPoP"
	proofType       = "dpop+jwt"
)

// DPoPKey is a private key of a client, which proves the possession of its tokens (RFC 9449). It
// does not change and may be used concurrently.
type DPoPKey struct {
	private    *ecdsa.PrivateKey
	signer     jose.Signer
	thumbprint string
}

// NewDPoPKey returns a random key for ES256.
func NewDPoPKey() (*DPoPKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return newDPoPKey(private)
}

// ParseDPoPKey returns the key that [DPoPKey.MarshalJSON] has written.
func ParseDPoPKey(raw []byte) (*DPoPKey, error) {
	var key jose.JSONWebKey
	if err := json.Unmarshal(raw, &key); err != nil {
		return nil, err
	}
	private, ok := key.Key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("the DPoP key is not a private key of the curve P-256")
	}
	return newDPoPKey(private)
}

func newDPoPKey(private *ecdsa.PrivateKey) (*DPoPKey, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private},
		(&jose.SignerOptions{EmbedJWK: true}).WithType(proofType))
	if err != nil {
		return nil, err
	}
	thumbprint, err := Thumbprint(&jose.JSONWebKey{Key: private.Public()})
	return &DPoPKey{private: private, signer: signer, thumbprint: thumbprint}, err
}

// MarshalJSON returns the private key as a JSON Web Key.
func (k *DPoPKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(jose.JSONWebKey{Key: k.private})
}

// Thumbprint returns the value of dpop_jkt, and of cnf.jkt in tokens that are bound to the key.
func (k *DPoPKey) Thumbprint() string { return k.thumbprint }

// Thumbprint returns the SHA-256 thumbprint of a public key (RFC 7638) in base64url.
func Thumbprint(key *jose.JSONWebKey) (string, error) {
	sum, err := key.Thumbprint(crypto.SHA256)
	return base64.RawURLEncoding.EncodeToString(sum), err
}

// ProofClaims are the facts that a DPoP proof is about.
type ProofClaims struct {
	Method string
	URL    string // its query and fragment do not count
	Token  string // the access token, empty for a request without one
	Nonce  string // the nonce that the server has given, or empty
}

// proofPayload is the payload of a DPoP proof (RFC 9449, section 4.2).
type proofPayload struct {
	ID        string  `json:"jti"`
	Method    string  `json:"htm"`
	URL       string  `json:"htu"`
	IssuedAt  float64 `json:"iat"`
	TokenHash string  `json:"ath,omitempty"`
	Nonce     string  `json:"nonce,omitempty"`
}

// MakeProof returns a proof for one request. Each proof has an id of its own, so a repeated request
// needs a new proof.
func (k *DPoPKey) MakeProof(c ProofClaims, now time.Time) (string, error) {
	target, err := normalizeTarget(c.URL)
	if err != nil {
		return "", err
	}
	payload := proofPayload{ID: rand.Text(), Method: c.Method, URL: target, IssuedAt: float64(now.Unix()), Nonce: c.Nonce}
	if c.Token != "" {
		payload.TokenHash = hashToken(c.Token)
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		return "", err
	}
	signed, err := k.signer.Sign(raw)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Proof is a DPoP proof whose signature and claims were verified.
type Proof struct {
	ID         string
	Thumbprint string // of the key that signed it
	Nonce      string // as sent; the caller decides whether it is one of its own
	IssuedAt   time.Time
}

// maxProof bounds a proof in bytes, maxProofID its id.
const (
	maxProof   = 8 << 10
	maxProofID = 256
)

// VerifyProof verifies the proof of a request (RFC 9449, section 4.3). values are the values of the
// field DPoP; there must be one. window bounds how far the clock of the client may differ from now.
// The caller checks the nonce, that the token is bound to the key, and that the id is new.
func VerifyProof(values []string, c ProofClaims, algorithms []jose.SignatureAlgorithm, now time.Time, window time.Duration) (Proof, error) {
	if len(values) != 1 || len(values[0]) > maxProof {
		return Proof{}, fmt.Errorf("the request has %d DPoP fields, want one of at most %d bytes", len(values), maxProof)
	}
	signed, err := jose.ParseSignedCompact(values[0], algorithms)
	if err != nil {
		return Proof{}, fmt.Errorf("the DPoP proof is no JWS of %v: %w", algorithms, err)
	}
	header := signed.Signatures[0].Protected
	if kind, _ := header.ExtraHeaders[jose.HeaderType].(string); kind != proofType {
		return Proof{}, fmt.Errorf("the DPoP proof has typ %q, want %s", kind, proofType)
	}
	if header.JSONWebKey == nil || !header.JSONWebKey.IsPublic() {
		return Proof{}, errors.New("the DPoP proof has no public key in jwk")
	}
	raw, err := signed.Verify(header.JSONWebKey)
	if err != nil {
		return Proof{}, fmt.Errorf("the signature of the DPoP proof: %w", err)
	}
	var payload proofPayload
	if err := json.Unmarshal(raw, &payload); err != nil {
		return Proof{}, fmt.Errorf("the payload of the DPoP proof: %w", err)
	}
	if err := payload.check(c, now, window); err != nil {
		return Proof{}, err
	}
	thumbprint, err := Thumbprint(header.JSONWebKey)
	return Proof{ID: payload.ID, Thumbprint: thumbprint, Nonce: payload.Nonce, IssuedAt: time.Unix(int64(payload.IssuedAt), 0)}, err
}

// check compares the payload with the request.
func (p *proofPayload) check(c ProofClaims, now time.Time, window time.Duration) error {
	sent, err := normalizeTarget(p.URL)
	if err != nil {
		return fmt.Errorf("htu of the DPoP proof: %w", err)
	}
	want, err := normalizeTarget(c.URL)
	if err != nil {
		return err
	}
	age := now.Sub(time.Unix(int64(p.IssuedAt), 0))
	switch {
	case p.ID == "" || len(p.ID) > maxProofID:
		return fmt.Errorf("jti of the DPoP proof has %d bytes, want 1 to %d", len(p.ID), maxProofID)
	case p.Method != c.Method:
		return fmt.Errorf("htm of the DPoP proof is %q, want %s", p.Method, c.Method)
	case sent != want:
		return fmt.Errorf("htu of the DPoP proof is %s, want %s", sent, want)
	case age > window || age < -window:
		return fmt.Errorf("the DPoP proof was issued %v from now, want at most %v", age.Abs().Round(time.Second), window)
	case c.Token != "" && subtle.ConstantTimeCompare([]byte(p.TokenHash), []byte(hashToken(c.Token))) != 1:
		return errors.New("ath of the DPoP proof is not the hash of the access token")
	}
	return nil
}

// normalizeTarget returns a URL without query and fragment in the form in which two spellings of
// one target are equal (RFC 3986, sections 6.2.2 and 6.2.3).
func normalizeTarget(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%.200q is not a URL of a request, want http or https with a host", raw)
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	} else {
		host = strings.TrimSuffix(host, ":80")
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return u.Scheme + "://" + host + path, nil
}
