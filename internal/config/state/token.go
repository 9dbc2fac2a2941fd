package state

import (
	"crypto/rand"
	"encoding/base64"
)

// tokenBytes is the number of random bytes in a token.
const tokenBytes = 32

// NewToken returns a random bearer token: 32 bytes in base64url.
func NewToken() string {
	raw := make([]byte, tokenBytes)
	rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// StoredToken returns the gateway's bearer token, or "" before the first call of [State.Token].
func (s *State) StoredToken() string { return s.current().Gateway.Token }

// Token returns the gateway's bearer token. The first call creates it. If several processes do so
// at once, all get the same token.
func (s *State) Token() (string, error) {
	if token := s.StoredToken(); token != "" {
		return token, nil
	}
	var token string
	err := s.updateFile(func(now fileContent) []valueChange {
		if token = now.Gateway.Token; token != "" {
			return nil
		}
		token = NewToken()
		return []valueChange{{[]string{"gateway", "token"}, token}}
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// RenewToken replaces the gateway's bearer token. The old one is invalid at once.
func (s *State) RenewToken() (string, error) {
	token := NewToken()
	err := s.updateFile(func(fileContent) []valueChange {
		return []valueChange{{[]string{"gateway", "token"}, token}}
	})
	if err != nil {
		return "", err
	}
	return token, nil
}
