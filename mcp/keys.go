package mcp

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// ErrSeal is what opening a sealed text fails with, whatever is wrong with it.
var ErrSeal = errors.New("not sealed with a current key, or changed since")

// Keys seals what travels through clients: request state, cursors, session ids. The first secret seals, all of them
// open, so that replicas agree and secrets rotate: add the new one last everywhere, then move it to the front, then
// drop the old one. Keys is safe for concurrent use and does not change.
type Keys struct{ secrets [][]byte }

// NewKeys returns keys derived from secrets of at least 16 bytes each.
func NewKeys(secrets ...[]byte) (*Keys, error) {
	if len(secrets) == 0 {
		return nil, errors.New("at least one secret is needed")
	}
	k := &Keys{}
	for i, s := range secrets {
		if len(s) < 16 {
			return nil, fmt.Errorf("secret %d has %d bytes, at least 16 are needed", i+1, len(s))
		}
		k.secrets = append(k.secrets, bytes.Clone(s))
	}
	return k, nil
}

// RandomKeys returns keys that only this process knows.
func RandomKeys() *Keys {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	return &Keys{[][]byte{secret}}
}

// Sealer seals for one purpose. What is sealed for one purpose does not open for another.
type Sealer struct{ aeads func() []cipher.AEAD }

// For returns the sealer of a purpose. Its keys are derived when they are first needed: many servers never seal anything.
func (k *Keys) For(purpose string) *Sealer {
	return &Sealer{sync.OnceValue(func() []cipher.AEAD { return k.derive(purpose) })}
}

func (k *Keys) derive(purpose string) (aeads []cipher.AEAD) {
	for _, secret := range k.secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "dowel "+purpose, 32)
		if err != nil {
			panic(err) // only for lengths that SHA-256 cannot give
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			panic(err) // only for other key lengths
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic(err) // only for other block sizes
		}
		aeads = append(aeads, aead)
	}
	return aeads
}

// Seal returns plain encrypted and authenticated together with bound, as URL-safe text. bound is not contained: the
// same bytes have to be given to Open.
func (s *Sealer) Seal(plain, bound []byte) string {
	return base64.RawURLEncoding.EncodeToString(s.aeads()[0].Seal(nil, nil, plain, bound))
}

// Open returns what was sealed; [ErrSeal] if the text is anything else.
func (s *Sealer) Open(sealed string, bound []byte) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || strings.ContainsAny(sealed, "\r\n") { // which the decoder reads past
		return nil, ErrSeal
	}
	for _, aead := range s.aeads() {
		if plain, err := aead.Open(nil, nil, raw, bound); err == nil {
			return plain, nil
		}
	}
	return nil, ErrSeal
}
