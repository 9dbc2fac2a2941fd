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
	"sync/atomic"
)

var errSeal = errors.New("not sealed with a current key, or changed since")

// Keys seals data that travels through clients: request state, cursors, session ids. The first
// secret seals; all of them open. The zero value has one random secret, which only this process
// knows. Keys may be used concurrently and must not be copied.
type Keys struct {
	random  sync.Once
	current atomic.Pointer[keySecrets]
}

// keySecrets are the secrets of a [Keys] at one time. They do not change.
type keySecrets [][]byte

// NewKeys returns keys derived from secrets of at least 16 bytes each.
func NewKeys(secrets ...[]byte) (*Keys, error) {
	k := &Keys{}
	if err := k.Replace(secrets...); err != nil {
		return nil, err
	}
	return k, nil
}

// Replace replaces the secrets, of at least 16 bytes each. It takes effect for everything that is
// sealed or opened afterwards. If it fails, the secrets stay as they are. To exchange the secret of
// several replicas, add the new one at the end everywhere, then move it to the front, and remove
// the old one when nothing that it has sealed is in use any more.
func (k *Keys) Replace(secrets ...[]byte) error {
	if len(secrets) == 0 {
		return errors.New("at least one secret is needed")
	}
	var now keySecrets
	for i, s := range secrets {
		if len(s) < 16 {
			return fmt.Errorf("secret %d has %d bytes, at least 16 are needed", i+1, len(s))
		}
		now = append(now, bytes.Clone(s))
	}
	k.current.Store(&now)
	return nil
}

// secrets returns the secrets of now.
func (k *Keys) secrets() *keySecrets {
	if now := k.current.Load(); now != nil {
		return now
	}
	k.random.Do(func() {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret)                           // never fails (crypto/rand)
		k.current.CompareAndSwap(nil, &keySecrets{secret}) // Replace may have been faster
	})
	return k.current.Load()
}

// Sealer seals for one purpose. Data sealed for another purpose does not open.
type Sealer struct {
	keys    *Keys
	purpose string
	derived atomic.Pointer[derivedKeys]
}

// derivedKeys are the keys of a [Sealer], derived from secrets.
type derivedKeys struct {
	secrets *keySecrets
	aeads   []cipher.AEAD
}

// For returns the sealer of a purpose. It derives its keys on first use, because many servers never
// seal anything.
func (k *Keys) For(purpose string) *Sealer { return &Sealer{keys: k, purpose: purpose} }

// aeads returns the ciphers of the secrets of now. The first one seals.
func (s *Sealer) aeads() []cipher.AEAD {
	now, derived := s.keys.secrets(), s.derived.Load()
	if derived == nil || derived.secrets != now {
		derived = &derivedKeys{now, deriveCiphers(*now, s.purpose)}
		s.derived.Store(derived)
	}
	return derived.aeads
}

func deriveCiphers(secrets keySecrets, purpose string) (aeads []cipher.AEAD) {
	for _, secret := range secrets {
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
