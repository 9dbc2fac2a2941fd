package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// NewVerifier returns a PKCE code verifier of 43 characters, 256 random bits (RFC 7636, section
// 4.1).
func NewVerifier() string { return randomText(32) }

// NewState returns a value of 128 random bits for the state parameter.
func NewState() string { return randomText(16) }

// CodeChallenge returns the S256 challenge of a verifier (RFC 7636, section 4.2).
func CodeChallenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// randomText returns n random bytes in base64url.
func randomText(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
