package config

import (
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/hub"
)

// Kind is how a server is reached.
type Kind string

const (
	// Stdio: it is started, and spoken to over its stdin and stdout.
	Stdio Kind = "stdio"
	// HTTP: Streamable HTTP.
	HTTP Kind = "http"
	// SSE: the HTTP+SSE of 2024.
	SSE Kind = "sse"
	// Auto: Streamable HTTP, or HTTP+SSE where the server does not know that.
	Auto Kind = "auto"
)

// Spec is what a configuration says about a server, whatever its dialect. Durations are 0 where nothing is said.
type Spec struct {
	Kind Kind

	// Command, Args, Env, EnvFile and Dir start a Stdio server.
	Command string
	Args    []string
	Env     map[string]string
	// PassEnv names variables to hand on as they are; those that are not set are left out.
	PassEnv []string
	// EnvFile is a file of KEY=VALUE lines; Env wins over it.
	EnvFile string
	Dir     string

	// URL and the others reach the other kinds.
	URL     string
	Headers map[string]string
	// HeadersHelper is a command line for the shell that prints a JSON object of headers.
	HeadersHelper string
	OAuth         *OAuth

	Disabled bool
	// Required: what dowel does is of no use without this server.
	Required bool

	// Start limits how long the server may take to become ready.
	Start time.Duration
	// Policy is how a hub runs the server. Sharing is empty if the entry does not say it.
	hub.Policy

	// AlwaysAllow names the tools that need no approval; "*" is all.
	AlwaysAllow []string

	// Serialize runs calls one at a time, so that it is known which one a question belongs to.
	Serialize bool
	// Revision pins the protocol: "legacy", "modern", or one revision; empty: it is found out.
	Revision string
}

// OAuth is what a configuration says about logging in. It is passed on as it is written.
type OAuth struct {
	// Off: do not log in.
	Off                                     bool
	ClientID, ClientSecret                  string
	Scopes                                  []string
	MetadataURL, AuthorizationURL, TokenURL string
	RedirectURI, CallbackPort, Resource     string
}

// Source says where a server stands.
type Source struct {
	Path string
	// Dialect is the name of one of [Dialects].
	Dialect string
	Scope   Scope
}

// Server is one entry of a file, as it is written: variables are not expanded yet. It is not changed once it is read.
type Server struct {
	Name string
	Source
	At Position
	Spec
	// Unknown are the keys that mean nothing to dowel.
	Unknown []string
	// Problems are those of this entry; they are in [Set.Problems] too.
	Problems []Problem

	inputs []Input
	places map[string]Position
}

// Valid reports whether the entry can be used: none of its problems is an error.
func (s *Server) Valid() bool { return !fatal(s.Problems) }

// Where returns where a field stands: its name is that of [Value.Field]. Of a field that is not in the file it is where the
// server stands.
func (s *Server) Where(field string) Position {
	if at, ok := s.places[field]; ok {
		return at
	}
	return s.At
}

func (s Spec) clone() Spec {
	s.Args, s.PassEnv, s.WatchPaths, s.AlwaysAllow = slices.Clone(s.Args), slices.Clone(s.PassEnv), slices.Clone(s.WatchPaths), slices.Clone(s.AlwaysAllow)
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	s.Tools.Only, s.Tools.Hide = slices.Clone(s.Tools.Only), slices.Clone(s.Tools.Hide)
	s.Tools.Rename, s.Tools.Describe = maps.Clone(s.Tools.Rename), maps.Clone(s.Tools.Describe)
	if s.OAuth != nil {
		o := *s.OAuth
		o.Scopes = slices.Clone(o.Scopes)
		s.OAuth = &o
	}
	return s
}

// each passes the strings that may hold variables through f, in a fixed order, each with the name of its field.
func (s *Spec) each(f func(field, text string) string) {
	one := func(field string, text *string) {
		if *text != "" {
			*text = f(field, *text)
		}
	}
	one("command", &s.Command)
	list("args", s.Args, f)
	table("env", s.Env, f)
	one("envFile", &s.EnvFile)
	one("cwd", &s.Dir)
	one("url", &s.URL)
	table("headers", s.Headers, f)
	one("headersHelper", &s.HeadersHelper)
	list("watchPaths", s.WatchPaths, f)
	if o := s.OAuth; o != nil {
		for i := range oauthStrings {
			one("oauth."+oauthStrings[i].field, oauthStrings[i].of(o))
		}
		list("oauth.scopes", o.Scopes, f)
	}
}
