package config

import (
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/hub"
)

// Kind is the way to reach a server.
type Kind string

const (
	// Stdio servers are started as a process and use its stdin and stdout.
	Stdio Kind = "stdio"
	// HTTP servers speak Streamable HTTP.
	HTTP Kind = "http"
	// SSE servers speak the HTTP+SSE transport of 2024.
	SSE Kind = "sse"
	// WebSocket servers speak MCP over WebSocket.
	WebSocket Kind = "ws"
	// Auto servers speak Streamable HTTP, or HTTP+SSE if they do not support that. If the URL has
	// the scheme ws or wss, they speak WebSocket.
	Auto Kind = "auto"
)

// Spec is the configuration of a server, independent of its dialect. A duration of 0 means that the
// file sets none.
type Spec struct {
	Kind Kind

	// Command, Args, Env, EnvFile and Dir start a Stdio server.
	Command string
	Args    []string
	Env     map[string]string
	// PassEnv names environment variables to pass on. Variables that are not set are left out.
	PassEnv []string
	// EnvFile is a file of KEY=VALUE lines. Env wins over it.
	EnvFile string
	Dir     string
	// KeepDetached keeps daemons that the server has started when it ends.
	KeepDetached bool

	// URL, Headers, HeadersHelper and OAuth apply to the other kinds.
	URL     string
	Headers map[string]string
	// HeadersHelper is a shell command line that prints a JSON object of headers.
	HeadersHelper string
	OAuth         *OAuth

	Disabled bool
	// Required means that dowel must not start without this server.
	Required bool

	// Start limits the time until the server is ready, without the time in which a package runner
	// installs it. Install limits that time.
	Start, Install time.Duration
	// Policy is how a hub runs the server. Sharing is empty if the file does not set it, and may be
	// [ShareInCluster].
	hub.Policy

	// AlwaysAllow names the tools that need no approval; "*" means all.
	AlwaysAllow []string
	// TrustAnnotations means that the user trusts the server to say which of its tools are
	// read-only. It has an effect only in the user's own files.
	TrustAnnotations bool

	// Serialize runs the server's calls one at a time, so that each question of the server belongs
	// to a known call.
	Serialize bool
	// Definitions is [NoteChanges] or [HoldChanges]. Empty leaves it to [Set.HoldsChanges].
	Definitions string
	// Revision pins the protocol: "legacy", "modern" or a single revision. Empty means negotiation.
	Revision string
}

// OAuth is the login configuration. Its strings are passed on as written.
type OAuth struct {
	// Off disables logging in.
	Off                                             bool
	ClientID, ClientSecret                          string
	PrivateKey                                      string // file of a key in PEM, instead of ClientSecret
	ClientDocument                                  string // URL of a client ID metadata document
	Scopes                                          []string
	Issuer, MetadataURL, AuthorizationURL, TokenURL string
	RedirectURI, CallbackPort                       string
	// Resource is the value of the parameter resource. [OmitResource] sends none.
	Resource string
	// Params are added to requests to the authorization server.
	Params map[string]string
	// Account distinguishes logins at the same server.
	Account string
	// Grant is [ClientCredentials], or empty for a login of the user.
	Grant string
	// DPoP binds tokens to a key even if the server does not ask for it.
	DPoP bool
	// AssumePKCE uses an authorization server even if its metadata does not list PKCE.
	AssumePKCE bool
	// PerUser gives each user of the gateway a login of its own. Otherwise all users
	// share one login.
	PerUser bool
	// Exchange is the method by which the gateway exchanges the token of its user for a token that
	// the server accepts: [ExchangeToken], [ExchangeEntra] or [ExchangeIDJAG]. Empty: no exchange.
	Exchange string
	// IDPTokenURL, IDPClientID and IDPClientSecret are the token endpoint of the users' identity
	// provider and the client there, for [ExchangeIDJAG].
	IDPTokenURL, IDPClientID, IDPClientSecret string
}

// Values of [OAuth].Exchange.
const (
	ExchangeToken = "rfc8693" // token exchange
	ExchangeEntra = "entra"   // the on-behalf-of form of Entra
	ExchangeIDJAG = "id-jag"  // an assertion of the identity provider
)

const (
	// ClientCredentials is the grant of a client that logs in as itself, without a user.
	ClientCredentials = "client_credentials"
	// OmitResource is a value of [OAuth].Resource.
	OmitResource = "omit"
)

// Source identifies the file of a server.
type Source struct {
	Path string
	// Dialect is the name of one of [Dialects].
	Dialect string
	Scope   Scope
}

// Server is an entry of a file with unexpanded variables. It does not change after it was read.
type Server struct {
	Name string
	Source
	At Position
	Spec
	// Unknown are the keys that dowel does not know.
	Unknown []string
	// Problems are the problems of this entry. They are in [Set.Problems] too.
	Problems []Problem

	inputs    []Input
	positions map[string]Position
}

// Valid reports whether the entry has no errors. Only valid entries can be used.
func (s *Server) Valid() bool { return !hasErrors(s.Problems) }

// HasBareVariables reports whether $NAME stands for a variable in the strings of the entry, like
// ${NAME}.
func (s *Server) HasBareVariables() bool { return s.findDialect().bareVariables }

// Where returns the position of a field, named like [Value.Field]. For a field that is not in the
// file it returns the position of the server.
func (s *Server) Where(field string) Position {
	if at, ok := s.positions[field]; ok {
		return at
	}
	return s.At
}

// clone returns a copy that shares no slices or maps.
func (s Spec) clone() Spec {
	s.Args, s.PassEnv, s.WatchPaths, s.AlwaysAllow = slices.Clone(s.Args), slices.Clone(s.PassEnv), slices.Clone(s.WatchPaths), slices.Clone(s.AlwaysAllow)
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	s.Tools.Only, s.Tools.Hide = slices.Clone(s.Tools.Only), slices.Clone(s.Tools.Hide)
	s.Tools.Rename, s.Tools.Describe = maps.Clone(s.Tools.Rename), maps.Clone(s.Tools.Describe)
	if s.OAuth != nil {
		o := *s.OAuth
		o.Scopes, o.Params = slices.Clone(o.Scopes), maps.Clone(o.Params)
		s.OAuth = &o
	}
	return s
}

// eachString replaces each non-empty string that may contain variables by the result of f. It
// always visits the fields in the same order.
func (s *Spec) eachString(f func(field, text string) string) {
	one := func(field string, text *string) {
		if *text != "" {
			*text = f(field, *text)
		}
	}
	one("command", &s.Command)
	mapList("args", s.Args, f)
	mapTable("env", s.Env, f)
	one("envFile", &s.EnvFile)
	one("cwd", &s.Dir)
	one("url", &s.URL)
	mapTable("headers", s.Headers, f)
	one("headersHelper", &s.HeadersHelper)
	mapList("watchPaths", s.WatchPaths, f)
	if o := s.OAuth; o != nil {
		for i := range oauthStrings {
			one("oauth."+oauthStrings[i].field, oauthStrings[i].of(o))
		}
		mapList("oauth.scopes", o.Scopes, f)
		mapTable("oauth.params", o.Params, f)
	}
}
