package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

var (
	proofAlgorithms = []jose.SignatureAlgorithm{jose.ES256}
	proofTime       = time.Unix(1_800_000_000, 0)
)

func TestProof(t *testing.T) {
	t.Parallel()
	key, err := NewDPoPKey()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	same, err := ParseDPoPKey(stored)
	if err != nil {
		t.Fatal(err)
	}
	claims := ProofClaims{Method: "POST", URL: "https://MCP.example.com:443/mcp?x=1#y", Token: "token", Nonce: "n-1"}
	first, err := key.MakeProof(claims, proofTime)
	if err != nil {
		t.Fatal(err)
	}
	second, err := same.MakeProof(claims, proofTime)
	if err != nil {
		t.Fatal(err)
	}
	claims.URL = "https://mcp.example.com/mcp"
	var ids []string
	for _, text := range []string{first, second} {
		proof, err := VerifyProof([]string{text}, claims, proofAlgorithms, proofTime.Add(time.Minute), 5*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if proof.Thumbprint != key.Thumbprint() || proof.Nonce != "n-1" || !proof.IssuedAt.Equal(proofTime) {
			t.Errorf("got %+v, want the thumbprint %s, the nonce n-1 and the time %v", proof, key.Thumbprint(), proofTime)
		}
		ids = append(ids, proof.ID)
	}
	if ids[0] == ids[1] {
		t.Errorf("two proofs have the id %s", ids[0])
	}
}

// TestThumbprint uses the example of RFC 7638, section 3.1.
func TestThumbprint(t *testing.T) {
	t.Parallel()
	var key jose.JSONWebKey
	if err := json.Unmarshal([]byte(`{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs`+
		`tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-`+
		`bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}`), &key); err != nil {
		t.Fatal(err)
	}
	if got, err := Thumbprint(&key); got != "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestBadProofs(t *testing.T) {
	t.Parallel()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]any{"jti": "1", "htm": "POST", "htu": "https://mcp.example.com/mcp", "iat": proofTime.Unix(), "ath": hashToken("token")}
	sign := func(change map[string]any, opts *jose.SignerOptions, key jose.SigningKey) string {
		t.Helper()
		payload := map[string]any{}
		for _, m := range []map[string]any{good, change} {
			for name, value := range m {
				payload[name] = value
			}
		}
		raw, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := jose.NewSigner(key, opts)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign(raw)
		if err != nil {
			t.Fatal(err)
		}
		text, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	usual := (&jose.SignerOptions{EmbedJWK: true}).WithType(proofType)
	with := func(change map[string]any) []string {
		return []string{sign(change, usual, jose.SigningKey{Algorithm: jose.ES256, Key: private})}
	}
	ok := with(nil)[0]
	for _, tt := range []struct {
		name   string
		values []string
		want   string // in the error; empty if the proof is valid
	}{
		{"valid", []string{ok}, ""},
		{"other spelling of the target", with(map[string]any{"htu": "https://mcp.EXAMPLE.com:443/mcp"}), ""},
		{"no proof", nil, "has 0 DPoP fields"},
		{"two proofs", []string{ok, ok}, "has 2 DPoP fields"},
		{"large", []string{strings.Repeat("a", maxProof+1)}, "at most"},
		{"not a JWS", []string{"abc"}, "no JWS"},
		{"changed signature", []string{ok[:len(ok)-4] + "AAAA"}, "signature"},
		{"other type", []string{sign(nil, (&jose.SignerOptions{EmbedJWK: true}).WithType("JWT"), jose.SigningKey{Algorithm: jose.ES256, Key: private})}, `typ "JWT"`},
		{"no key", []string{sign(nil, (&jose.SignerOptions{}).WithType(proofType), jose.SigningKey{Algorithm: jose.ES256, Key: private})}, "no public key"},
		{"symmetric algorithm", []string{sign(nil, (&jose.SignerOptions{}).WithType(proofType), jose.SigningKey{Algorithm: jose.HS256, Key: make([]byte, 32)})}, "no JWS"},
		{"other method", with(map[string]any{"htm": "GET"}), "htm"},
		{"other path", with(map[string]any{"htu": "https://mcp.example.com/other"}), "htu"},
		{"other scheme", with(map[string]any{"htu": "http://mcp.example.com/mcp"}), "htu"},
		{"no target", with(map[string]any{"htu": "mcp"}), "htu"},
		{"too old", with(map[string]any{"iat": proofTime.Unix() - 301}), "issued 5m1s"},
		{"from the future", with(map[string]any{"iat": proofTime.Unix() + 301}), "issued 5m1s"},
		{"no time", with(map[string]any{"iat": nil}), "issued"},
		{"no id", with(map[string]any{"jti": ""}), "jti"},
		{"long id", with(map[string]any{"jti": strings.Repeat("x", maxProofID+1)}), "jti"},
		{"other token", with(map[string]any{"ath": hashToken("another")}), "ath"},
		{"no token hash", with(map[string]any{"ath": nil}), "ath"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := VerifyProof(tt.values, ProofClaims{Method: "POST", URL: "https://mcp.example.com/mcp?q", Token: "token"}, proofAlgorithms, proofTime, 5*time.Minute)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestPrivateKeyInProof checks that a proof which contains the private key is refused.
func TestPrivateKeyInProof(t *testing.T) {
	t.Parallel()
	key, err := NewDPoPKey()
	if err != nil {
		t.Fatal(err)
	}
	private, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key.private},
		(&jose.SignerOptions{}).WithType(proofType).WithHeader("jwk", json.RawMessage(private)))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyProof([]string{text}, ProofClaims{Method: "GET", URL: "https://a.example/"}, proofAlgorithms, proofTime, time.Minute); err == nil {
		t.Error("a proof with a private key is accepted")
	}
}
