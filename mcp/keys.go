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

var errSeal = errors.New("not sealed with a current key, or changed since")

// Keys seals data that travels through clients: request state, cursors, session ids. The first
// secret seals; all of them open. To replace a secret on several replicas, add the new one at the
// end everywhere, then move it to the front, then remove the old one. Keys does not change and may
// be used concurrently.
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

// RandomKeys returns random keys, which only this process has.
func RandomKeys() *Keys {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	return &Keys{[][]byte{secret}}
}

// Sealer seals for one purpose. Data sealed for another purpose does not open.
type Sealer struct{ aeads func() []cipher.AEAD }

// For returns the sealer of a purpose. It derives its keys on first use, because many servers never
// seal anything.
func (k *Keys) For(purpose string) *Sealer {
	return &Sealer{sync.OnceValue(func() []cipher.AEAD { return k.deriveSealers(purpose) })}
}

func (k *Keys) deriveSealers(purpose string) (aeads []cipher.AEAD) {
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

// Seal encrypts plain, authenticates it together with bound, and returns URL-safe text. The text
// does not contain bound: Open needs the same bytes.
func (s *Sealer) Seal(plain, bound []byte) string {
	return base64.RawURLEncoding.EncodeToString(s.aeads()[0].Seal(nil, nil, plain, bound))
}

// Open returns the sealed data. It fails if the text is forged, changed, sealed for another purpose
// or with other bound bytes, or sealed with a key that was removed.
func (s *Sealer) Open(sealed string, bound []byte) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || strings.ContainsAny(sealed, "\r\n") { // the decoder ignores line ends
		return nil, errSeal
	}
	for _, aead := range s.aeads() {
		if plain, err := aead.Open(nil, nil, raw, bound); err == nil {
			return plain, nil
		}
	}
	return nil, errSeal
}
