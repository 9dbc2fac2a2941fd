// Package oauth holds the parts of OAuth that a client and a resource server share: the metadata
// documents and their addresses, the challenges of WWW-Authenticate fields, PKCE, and proofs of
// possession.
package oauth

import (
	"net/url"
	"strings"
)

// ResourceMetadata is the metadata of a protected resource (RFC 9728, section 2).
type ResourceMetadata struct {
	Resource              string   `json:"resource"`
	AuthorizationServers  []string `json:"authorization_servers,omitempty"`
	ScopesSupported       []string `json:"scopes_supported,omitempty"`
	BearerMethods         []string `json:"bearer_methods_supported,omitempty"`
	ResourceName          string   `json:"resource_name,omitempty"`
	ResourceDocumentation string   `json:"resource_documentation,omitempty"`
	JWKSURI               string   `json:"jwks_uri,omitempty"`
	DPoPAlgorithms        []string `json:"dpop_signing_alg_values_supported,omitempty"`
	DPoPRequired          bool     `json:"dpop_bound_access_tokens_required,omitempty"`
}

// ServerMetadata is the metadata of an authorization server (RFC 8414, section 2, and the
// extensions that MCP uses).
type ServerMetadata struct {
	Issuer                        string   `json:"issuer"`
	AuthorizationEndpoint         string   `json:"authorization_endpoint,omitempty"`
	TokenEndpoint                 string   `json:"token_endpoint,omitempty"`
	RegistrationEndpoint          string   `json:"registration_endpoint,omitempty"`
	RevocationEndpoint            string   `json:"revocation_endpoint,omitempty"`
	IntrospectionEndpoint         string   `json:"introspection_endpoint,omitempty"`
	DeviceAuthorizationEndpoint   string   `json:"device_authorization_endpoint,omitempty"`
	PushedAuthorizationEndpoint   string   `json:"pushed_authorization_request_endpoint,omitempty"`
	RequirePushedAuthorization    bool     `json:"require_pushed_authorization_requests,omitempty"`
	JWKSURI                       string   `json:"jwks_uri,omitempty"`
	ScopesSupported               []string `json:"scopes_supported,omitempty"`
	ResponseTypes                 []string `json:"response_types_supported,omitempty"`
	GrantTypes                    []string `json:"grant_types_supported,omitempty"`
	TokenEndpointAuthMethods      []string `json:"token_endpoint_auth_methods_supported,omitempty"`
	TokenEndpointAuthAlgorithms   []string `json:"token_endpoint_auth_signing_alg_values_supported,omitempty"`
	CodeChallengeMethods          []string `json:"code_challenge_methods_supported,omitempty"`
	DPoPAlgorithms                []string `json:"dpop_signing_alg_values_supported,omitempty"`
	SendsIssuer                   bool     `json:"authorization_response_iss_parameter_supported,omitempty"` // RFC 9207
	ClientIDMetadataDocuments     bool     `json:"client_id_metadata_document_supported,omitempty"`
	ServiceDocumentation          string   `json:"service_documentation,omitempty"`
	IdentityChainingTokenTypes    []string `json:"identity_chaining_requested_token_types_supported,omitempty"`
	AuthorizationGrantProfiles    []string `json:"authorization_grant_profiles_supported,omitempty"`
	RevocationEndpointAuthMethods []string `json:"revocation_endpoint_auth_methods_supported,omitempty"`
}

// Well-known names of metadata documents.
const (
	wellKnownResource = "/.well-known/oauth-protected-resource"
	wellKnownServer   = "/.well-known/oauth-authorization-server"
	wellKnownOpenID   = "/.well-known/openid-configuration"
)

// ResourceMetadataURL returns the address at which a protected resource publishes its metadata: the
// well-known name between the host and the path (RFC 9728, section 3.1). A "/" at the end of the
// path is removed, and a query is kept.
func ResourceMetadataURL(resource *url.URL) string {
	u := insertWellKnown(resource, wellKnownResource)
	u.RawQuery = resource.RawQuery
	return u.String()
}

// ResourceMetadataURLs returns the addresses at which a client looks for the metadata of a server:
// with the path of the server, then without (authorization-server-discovery: protected resource
// metadata).
func ResourceMetadataURLs(server *url.URL) []string {
	urls := []string{ResourceMetadataURL(server)}
	root := url.URL{Scheme: server.Scheme, Host: server.Host, Path: wellKnownResource}
	if root.String() != urls[0] {
		urls = append(urls, root.String())
	}
	return urls
}

// ServerMetadataURLs returns the addresses at which a client looks for the metadata of an issuer,
// in the order of the specification (authorization-server-discovery: authorization server
// metadata).
func ServerMetadataURLs(issuer *url.URL) []string {
	urls := []string{insertWellKnown(issuer, wellKnownServer).String(), insertWellKnown(issuer, wellKnownOpenID).String()}
	if path := strings.TrimSuffix(issuer.EscapedPath(), "/"); path != "" {
		urls = append(urls, issuer.Scheme+"://"+issuer.Host+path+wellKnownOpenID)
	}
	return urls
}

// insertWellKnown returns a URL with a well-known name before its path, without query and fragment.
func insertWellKnown(u *url.URL, name string) *url.URL {
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	to := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: name + path}
	if unescaped, err := url.PathUnescape(path); err == nil && unescaped != path {
		to.Path, to.RawPath = name+unescaped, name+path
	}
	return to
}
