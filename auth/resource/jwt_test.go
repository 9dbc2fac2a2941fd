package resource

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/go-jose/go-jose/v4"
)

// goodClaims returns the claims of a valid token.
func goodClaims(as *authtest.Server) map[string]any {
	now := as.Now().Unix()
	return map[string]any{"iss": as.Issuer, "sub": "ann", "aud": publicURL, "client_id": "c", "iat": now, "exp": now + 3600, "jti": "1"}
}

// TestSignedTokens checks the rules of RFC 9068, section 4, and RFC 8725.
func TestSignedTokens(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	other := authtest.Start(t, nil)
	now := as.Now().Unix()
	// with returns a valid access token with changed claims; nil removes a claim.
	with := func(changes map[string]any) string {
		claims := goodClaims(as)
		for name, value := range changes {
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
		}
		return as.Sign(nil, claims)
	}
	// typed returns a valid token with another header typ.
	typed := func(kind any) string {
		claims := goodClaims(as)
		claims["scope"] = ""
		return as.Sign(map[string]any{"typ": kind}, claims)
	}
	// bare returns a token of type JWT without the client and without scopes, like an ID token.
	bare := func(changes map[string]any) string {
		claims := goodClaims(as)
		delete(claims, "client_id")
		maps.Copy(claims, changes)
		return as.Sign(map[string]any{"typ": "JWT"}, claims)
	}
	// asJWT returns a token of type JWT with a scope.
	asJWT := func(changes map[string]any) string {
		claims := goodClaims(as)
		claims["scope"] = "a"
		maps.Copy(claims, changes)
		return as.Sign(map[string]any{"typ": "JWT"}, claims)
	}
	for _, tt := range []struct {
		name, token string
		want        string // in the reason; empty if the token is accepted
	}{
		{"valid", with(nil), ""},
		{"full type", typed("application/at+jwt"), ""},
		{"type JWT", typed("JWT"), ""},
		{"no type", typed(nil), ""},
		{"type JWT with scopes of Entra", bare(map[string]any{"scp": "a"}), ""},
		{"type JWT with roles of a client of Entra", bare(map[string]any{"roles": []string{"a"}, "azp": "c"}), ""},
		{"roles of another form", with(map[string]any{"roles": map[string]any{"a": 1}}), ""},
		{"audience among others", with(map[string]any{"aud": []string{"a", publicURL}}), ""},
		{"expired within the skew", with(map[string]any{"exp": now - 50}), ""},
		{"no subject", with(map[string]any{"sub": nil}), ""},
		{"expired", with(map[string]any{"exp": now - 70}), "has expired"},
		{"no expiry", with(map[string]any{"exp": nil}), "has no exp"},
		{"expiry is text", with(map[string]any{"exp": "tomorrow"}), "payload"},
		{"not yet valid", with(map[string]any{"nbf": now + 70}), "is valid from"},
		{"not yet valid within the skew", with(map[string]any{"nbf": now + 50}), ""},
		{"issued in the future", with(map[string]any{"iat": now + 70}), "issued in the future"},
		{"other audience", with(map[string]any{"aud": "https://other.example/mcp"}), "has the audience"},
		{"no audience", with(map[string]any{"aud": nil}), "has the audience"},
		{"empty audience", with(map[string]any{"aud": []string{}}), "has the audience"},
		{"prefix of the audience", with(map[string]any{"aud": "https://mcp.example.com/mc"}), "has the audience"},
		{"unknown issuer", with(map[string]any{"iss": other.Issuer}), "none of Issuers"},
		{"issuer with a slash", with(map[string]any{"iss": as.Issuer + "/"}), "none of Issuers"},
		{"nobody", with(map[string]any{"sub": nil, "client_id": nil}), "neither sub nor client_id"},
		{"key of another issuer", other.Sign(nil, goodClaims(as)), "no such key"},
		{"ID token by type", typed("id_token+jwt"), `typ "id_token+jwt"`},
		{"DPoP proof", typed("dpop+jwt"), `typ "dpop+jwt"`},
		{"ID-JAG", typed("oauth-id-jag+jwt"), `typ "oauth-id-jag+jwt"`},
		{"ID token by nonce", asJWT(map[string]any{"nonce": "n"}), "ID token"},
		{"ID token without a nonce", bare(nil), "neither scope"},
		{"ID token with a client", asJWT(map[string]any{"scope": nil}), "neither scope"},
		{"ID token of Entra with roles", bare(map[string]any{"roles": []string{"a"}}), "neither scope"},
		{"ID token by hash", asJWT(map[string]any{"at_hash": "h"}), "ID token"},
		{"ID token of Cognito", asJWT(map[string]any{"token_use": "id"}), "ID token"},
		{"refresh token of Keycloak", asJWT(map[string]any{"typ": "Refresh"}), "ID token"},
		{"bound to a certificate", with(map[string]any{"cnf": map[string]any{"x5t#S256": "x"}}), "cnf.x5t#S256"},
		{"confirmation that is no text", with(map[string]any{"cnf": map[string]any{"jkt": 1}}), "cnf.jkt"},
		{"alg none", encodeJWT(map[string]any{"alg": "none", "typ": "at+jwt"}, goodClaims(as), ""), `algorithm "none"`},
		{"alg HS256 with the public key", signSymmetric(t, as), "JWS of"},
		{"changed payload", changePayload(with(nil)), "signature"},
		{"encrypted", "a.b.c.d.e", "cannot be looked up"},
		{"not base64", "eyJhbGciOiJFUzI1NiJ9.!.c", "base64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			s := newTestServer(t, as, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			auth, err := s.findToken(t.Context(), "", tt.token)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, %v; want an error with %q", auth, err, tt.want)
			}
			if tt.want == "" {
				return
			}
			resp, _ := send(s, newPOST("/mcp", "Bearer "+tt.token))
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusBadRequest || strings.Contains(string(body), tt.want) {
				t.Errorf("status %d with %s, want 401 without the reason", resp.StatusCode, body)
			}
			if strings.Contains(log.String(), tt.token) {
				t.Errorf("the log has the token: %s", &log)
			}
		})
	}
}

// encodeJWT returns a token with the given signature, which need not be valid.
func encodeJWT(header, claims map[string]any, signature string) string {
	text := ""
	for _, part := range []map[string]any{header, claims} {
		raw, err := json.Marshal(part)
		if err != nil {
			panic(err)
		}
		text += base64.RawURLEncoding.EncodeToString(raw) + "."
	}
	return text + signature
}

// signSymmetric returns a token that is signed by HMAC with the issuer's public key as the secret,
// a known attack on servers that trust the header alg.
func signSymmetric(t *testing.T, as *authtest.Server) string {
	t.Helper()
	keys := fetchKeys(t, as)
	der, err := x509.MarshalPKIXPublicKey(keys.Keys[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: secret}, (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", keys.Keys[0].KeyID))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(goodClaims(as))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func fetchKeys(t *testing.T, as *authtest.Server) (keys jose.JSONWebKeySet) {
	t.Helper()
	resp, err := http.Get(as.Issuer + "/jwks")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

func changePayload(token string) string {
	parts := strings.Split(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		panic(err)
	}
	parts[1] = base64.RawURLEncoding.EncodeToString(bytes.Replace(raw, []byte(`"ann"`), []byte(`"bob"`), 1))
	return strings.Join(parts, ".")
}

// TestClaimNames checks that claims are read by their exact name, and that no claim may occur
// twice. Otherwise a user who may choose further claims could add "SUB" and replace the subject.
func TestClaimNames(t *testing.T) {
	t.Parallel()
	if c, err := readClaims([]byte(`{"sub":"ann","SUB":"bob","Iss":"x"}`)); err != nil || c.Subject != "ann" || c.Issuer != "" {
		t.Errorf("got %+v, %v; want the subject ann and no issuer", c, err)
	}
	if c, err := readClaims([]byte(`{"sub":"ann","sub":"bob"}`)); err == nil {
		t.Errorf("a claim that occurs twice is accepted: %+v", c)
	}
}

func TestRequireType(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	s := newTestServer(t, as, func(o *Options) { o.Issuers[0].RequireType = true })
	for kind, want := range map[string]int{"at+jwt": 200, "JWT": 401} {
		claims := goodClaims(as)
		claims["scope"] = "a"
		if resp, _ := send(s, newPOST("/mcp", "Bearer "+as.Sign(map[string]any{"typ": kind}, claims))); resp.StatusCode != want {
			t.Errorf("typ %s: status %d, want %d", kind, resp.StatusCode, want)
		}
	}
}

// TestCheck checks that Options.Check decides, once for each token.
func TestCheck(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	var calls atomic.Int32
	s := newTestServer(t, as, func(o *Options) {
		o.Check = func(_ context.Context, token *Token) error {
			calls.Add(1)
			switch token.Subject {
			case "bob":
				return errors.New("bob may not")
			case "eve":
				panic("eve")
			}
			token.Scopes = append(token.Scopes, "added")
			return nil
		}
	})
	for subject, want := range map[string]int{"ann": 200, "bob": 401, "eve": 503} {
		claims := goodClaims(as)
		claims["sub"] = subject
		token := as.Sign(nil, claims)
		resp, seen := send(s, newPOST("/mcp", "Bearer "+token))
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", subject, resp.StatusCode, want)
		}
		if want == 200 && (len(seen.Scopes) != 1 || seen.Scopes[0] != "added") {
			t.Errorf("the scopes are %q, want the one of Check", seen.Scopes)
		}
		calls.Store(0)
		if send(s, newPOST("/mcp", "Bearer "+token)); want == 200 && calls.Load() != 0 {
			t.Error("Check was called again for a token in the cache")
		}
	}
}
