package auth

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// documentRedirectURIs returns the redirect URIs of the metadata document that have a port, or only
// the configured one. Authorization servers should ignore the port of a loopback redirect URI
// (RFC 8252, section 7.3). For servers that compare it, the document lists the usual ports.
func documentRedirectURIs(configured string) []string {
	if configured != "" {
		return []string{configured}
	}
	var uris []string
	for _, host := range []string{"127.0.0.1", "localhost"} {
		for port := oauth.FirstRedirectPort; port <= oauth.LastRedirectPort; port++ {
			uris = append(uris, "http://"+host+":"+strconv.Itoa(port)+"/callback")
		}
	}
	return uris
}

// ClientDocument returns the content of a client ID metadata document for Client.DocumentURL, to be
// served there as application/json. The Name and RedirectURI of the client apply. Key adds its
// public key.
func ClientDocument(c Client) ([]byte, error) {
	if !isDocumentURL(c.DocumentURL) {
		return nil, fmt.Errorf("the document's URL is %q, want an https URL with a path", shorten(c.DocumentURL))
	}
	redirects := documentRedirectURIs(c.RedirectURI)
	if c.RedirectURI == "" {
		redirects = append([]string{"http://127.0.0.1/callback", "http://localhost/callback"}, redirects...)
	}
	document := struct {
		ClientID        string          `json:"client_id"`
		ClientName      string          `json:"client_name"`
		RedirectURIs    []string        `json:"redirect_uris"`
		GrantTypes      []string        `json:"grant_types"`
		ResponseTypes   []string        `json:"response_types"`
		AuthMethod      string          `json:"token_endpoint_auth_method"`
		ApplicationType string          `json:"application_type"`
		Keys            json.RawMessage `json:"jwks,omitempty"`
	}{
		c.DocumentURL, c.name(), redirects,
		[]string{"authorization_code", "refresh_token", grantDevice}, []string{"code"}, methodNone, "native", nil,
	}
	if c.Key != nil {
		keys, err := c.publicKeys()
		if err != nil {
			return nil, err
		}
		document.AuthMethod, document.Keys = methodKey, keys
	}
	raw, err := json.MarshalIndent(document, "", "  ")
	return append(raw, '\n'), err
}
