package resource

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	jsonv2 "github.com/go-json-experiment/json"
)

// minRSABits is the least size of an RSA key (RFC 7518, section 3.3).
const minRSABits = 2048

// readKey decodes a JSON Web Key. It returns an error unless the key is a public key for
// signatures.
func readKey(raw json.RawMessage) (*jose.JSONWebKey, error) {
	key := &jose.JSONWebKey{}
	if err := json.Unmarshal(raw, key); err != nil {
		return nil, err
	}
	switch {
	case !key.IsPublic():
		return nil, errors.New("it is not a public key")
	case !key.Valid():
		return nil, errors.New("it is not valid")
	case key.Use != "" && key.Use != "sig":
		return nil, fmt.Errorf("its use is %q, not sig", key.Use)
	}
	if r, ok := key.Key.(*rsa.PublicKey); ok && r.N.BitLen() < minRSABits {
		return nil, fmt.Errorf("it is an RSA key of %d bits, want at least %d", r.N.BitLen(), minRSABits)
	}
	return key, nil
}

// algorithmsOf returns the signature algorithms for which a key can be used, or nil if its type is
// unknown.
func algorithmsOf(key jose.JSONWebKey) []string {
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case *ecdsa.PublicKey:
		switch public.Curve.Params().BitSize {
		case 256:
			return []string{"ES256"}
		case 384:
			return []string{"ES384"}
		case 521:
			return []string{"ES512"}
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	}
	return nil
}

// keyLife returns how long keys may be used before they are read again: the max-age in the header
// of the response, kept between minKeyLife and maxKeyLife, or minKeyLife if it has none.
func keyLife(h http.Header) time.Duration {
	for _, directive := range strings.Split(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if seconds, err := strconv.Atoi(strings.Trim(value, `"`)); err == nil && strings.EqualFold(name, "max-age") {
			return min(max(time.Duration(min(seconds, int(maxKeyLife/time.Second)))*time.Second, minKeyLife), maxKeyLife)
		}
	}
	return minKeyLife
}

// readClaims decodes the claims of a token. Names are case-sensitive. A name that occurs twice is
// an error, because another program could use the other value.
func readClaims(raw []byte) (*claims, error) {
	c := &claims{}
	if err := jsonv2.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	return c, nil
}
