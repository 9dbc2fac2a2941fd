package auth

import (
	"context"
	"crypto"
	"net/http"
)

// Options configure a [Transport]. The zero value is ready: it finds everything out, keeps tokens
// in memory, and fails with [*NeedsLogin] where a user must log in.
type Options struct {
	// Login lets the user log in. nil means that no user can log in.
	Login Login
	// Store keeps registrations and tokens. nil means the memory of this Transport.
	Store Store
	// Account distinguishes several logins at the same server. It may be empty.
	Account string
	// Client identifies the client at the authorization server.
	Client Client
	// Scopes replace the scopes that the server asks for. Scopes that an operation turns out to
	// need are added.
	Scopes []string
	// ClientCredentials makes the client log in as itself, with Client.Secret or Client.Key and
	// without a user.
	ClientCredentials bool
	// Assertion returns a signed assertion with which the client logs in without a user: the token
	// of a workload's platform, or of an identity provider ([Enterprise.Assert]). A refused
	// assertion is not retried. nil means another way.
	Assertion func(ctx context.Context, r AssertionRequest) (string, error)
	// Subject returns the access token of a user, for whom the client acts. The authorization
	// server exchanges it for a token of the MCP server (RFC 8693), so Server.Issuer and Client
	// must be set: the MCP server must not choose who gets the user's token. nil means another way.
	Subject func(ctx context.Context) (string, error)
	// OnBehalfOf exchanges the token of Subject in the form of Entra: as the assertion of a JWT
	// bearer grant, with requested_token_use=on_behalf_of.
	OnBehalfOf bool
	// DPoP binds tokens to a key of the client, even if the server does not ask for it.
	DPoP bool
	// AllowHTTP sends tokens to a server over http. Else only https will do, or this machine.
	AllowHTTP bool
	// Server replaces facts about the authorization server that cannot be found out.
	Server Server
	// Base sends the requests. nil means a transport that is shared by all Transports.
	Base http.RoundTripper
}

// Client identifies the client at an authorization server. The zero Client has no identity in
// advance: it uses dynamic registration.
type Client struct {
	// ID is the id of a client that was registered by hand; Secret and Key are its credentials, if
	// it has any. With an ID, no other registration is tried.
	ID, Secret string
	// Key signs the assertions of the method private_key_jwt. It is an ECDSA, RSA or Ed25519 key.
	Key crypto.Signer
	// KeyID is the kid of Key. It may be empty.
	KeyID string
	// DocumentURL is the https URL of the client's metadata document ([ClientDocument]). It is used
	// as the client's id where the authorization server knows such documents.
	DocumentURL string
	// Name is shown to the user at a login. The default is "dowel".
	Name string
	// RedirectURI is the only redirect URI that may be used. If it is empty, Login chooses one.
	RedirectURI string
}

// Server replaces facts about an authorization server. Each field that is set is used without
// asking the server.
type Server struct {
	// Issuer is the authorization server, if the MCP server names none or several. Set it together
	// with a secret, key or Assertion: without it, the first authorization server that the MCP
	// server names gets them, and is remembered as the only one.
	Issuer string
	// MetadataURL is the address of the authorization server's metadata.
	MetadataURL string
	// AuthorizationURL and TokenURL are its endpoints, if it has no metadata.
	AuthorizationURL, TokenURL string
	// Resource is the value of the resource parameter, and the resource that the MCP server may
	// name in its metadata although it is another one. OmitResource leaves the parameter out, for
	// servers that refuse it.
	Resource     string
	OmitResource bool
	// AssumePKCE uses servers that do not say in their metadata that they know PKCE.
	AssumePKCE bool
	// Params are added to requests to the authorization and the token endpoint, such as audience.
	// An empty prompt leaves out the prompt=consent that offline_access leads to.
	Params map[string]string
	// NoFallback refuses servers without protected resource metadata, as revision 2025-03-26 allows
	// them.
	NoFallback bool
	// AllowPrivate allows addresses of private networks for the authorization server. They are
	// always allowed if the MCP server has one itself.
	AllowPrivate bool
}

// AssertionRequest names the audience of an assertion.
type AssertionRequest struct {
	Issuer   string // the authorization server of the MCP server, the audience
	Resource string // value of the resource parameter; empty if it is omitted
	Scopes   []string
}
