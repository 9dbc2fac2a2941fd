package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// encodeBasic encodes an id and a secret, joined by a colon, for the scheme Basic.
func encodeBasic(pair string) string { return base64.StdEncoding.EncodeToString([]byte(pair)) }

// chooseMethod returns the method by which a client authenticates at the token endpoint. A server
// that lists no methods supports client_secret_basic (RFC 8414, section 2).
func chooseMethod(m *oauth.ServerMetadata, hasSecret, hasKey bool) string {
	knows := func(method string) bool { return slices.Contains(m.TokenEndpointAuthMethods, method) }
	switch {
	case hasKey && (knows(methodKey) || !hasSecret):
		return methodKey
	case !hasSecret:
		return methodNone
	case len(m.TokenEndpointAuthMethods) == 0 || knows(methodBasic):
		return methodBasic
	}
	return methodPost // even if the list is only "none": Figma lists that, but requires the secret
}

// signAssertion returns a JWT that authenticates the client by its key, for the method
// private_key_jwt (RFC 7523, section 3).
func (c *Client) signAssertion(clientID, issuer string, now time.Time) (string, error) {
	const lifetime = 5 * time.Minute
	algorithm, err := keyAlgorithm(c.Key)
	if err != nil {
		return "", err
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	if c.KeyID != "" {
		options = options.WithHeader("kid", c.KeyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: c.Key}, options)
	if err != nil {
		return "", fmt.Errorf("the key of the client cannot sign: %w", err)
	}
	payload, err := json.Marshal(map[string]any{
		"iss": clientID, "sub": clientID, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(lifetime).Unix(),
	})
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("the key of the client cannot sign: %w", err)
	}
	return signed.CompactSerialize()
}

// keyAlgorithm returns the algorithm that belongs to a private key.
func keyAlgorithm(key crypto.Signer) (jose.SignatureAlgorithm, error) {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
	case *rsa.PrivateKey:
		return jose.RS256, nil
	case ed25519.PrivateKey:
		return jose.EdDSA, nil
	}
	return "", fmt.Errorf("the key of the client is a %T, want an *ecdsa.PrivateKey, *rsa.PrivateKey or ed25519.PrivateKey", key)
}

// checkOptions returns an error for options that contradict each other.
func (o *Options) checkOptions() error {
	switch c := o.Client; {
	case c.Secret != "" && c.ID == "":
		return errors.New("auth: Client.Secret is set without Client.ID")
	case c.Key != nil && c.ID == "" && c.DocumentURL == "":
		return errors.New("auth: Client.Key is set without Client.ID or Client.DocumentURL")
	case o.ClientCredentials && (c.ID == "" && c.DocumentURL == "" || c.Secret == "" && c.Key == nil):
		return errors.New("auth: ClientCredentials needs Client.ID and Client.Secret or Client.Key")
	case o.ClientCredentials && o.Assertion != nil:
		return errors.New("auth: set either ClientCredentials or Assertion")
	case o.Subject != nil && (o.Server.Issuer == "" || c.ID == ""):
		return errors.New("auth: Subject needs Server.Issuer and Client.ID")
	case o.Subject != nil && (o.ClientCredentials || o.Assertion != nil || o.Login != nil):
		return errors.New("auth: set one of Subject, ClientCredentials, Assertion and Login")
	case c.DocumentURL != "" && !isDocumentURL(c.DocumentURL):
		return fmt.Errorf("auth: Client.DocumentURL is %q, want an https URL with a path", shorten(c.DocumentURL))
	case c.Key != nil:
		_, err := keyAlgorithm(c.Key)
		return err
	}
	return nil
}

// publicKeys returns the key set of the client's metadata document.
func (c *Client) publicKeys() ([]byte, error) {
	algorithm, err := keyAlgorithm(c.Key)
	if err != nil {
		return nil, err
	}
	key := jose.JSONWebKey{Key: c.Key.Public(), KeyID: c.KeyID, Algorithm: string(algorithm), Use: "sig"}
	return json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key}})
}
