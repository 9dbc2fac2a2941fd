package authtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// Resource is a protected resource of a server: an HTTP endpoint that wants an access token, with
// the metadata of RFC 9728. Do not copy it as a resource server: it looks tokens up where they
// were issued. Package auth/resource verifies them.
type Resource struct {
	// URL is where the handler is, with the path /mcp.
	URL string

	handler http.Handler
	mu      sync.Mutex // guards everything below
	issuer  *Server
	scopes  []string
	seen    []http.Header
}

// Protect starts a protected resource on a loopback address, in front of handler. It ends with the
// test. A request needs a valid token for the resource with all scopes, which the challenge names.
func (s *Server) Protect(t testing.TB, handler http.Handler, scopes ...string) *Resource {
	t.Helper()
	p := &Resource{handler: handler, issuer: s, scopes: scopes}
	listening := httptest.NewUnstartedServer(http.HandlerFunc(p.serveRequest))
	p.URL = "http://" + listening.Listener.Addr().String() + "/mcp"
	s.mu.Lock()
	s.protected = append(s.protected, p.URL)
	s.mu.Unlock()
	listening.Start()
	t.Cleanup(listening.Close)
	return p
}

func (s *Server) isProtected(resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.protected, resource)
}

// SetServer moves the resource to another authorization server, unless s is nil, and changes the
// scopes that a request needs, unless the call names no scopes.
func (p *Resource) SetServer(s *Server, scopes ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s != nil {
		p.issuer = s
	}
	if len(scopes) > 0 {
		p.scopes = scopes
	}
}

// Headers returns the headers of all requests to the handler's path, refused ones too.
func (p *Resource) Headers() []http.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// origin returns the URL without its path.
func (p *Resource) origin() string { return strings.TrimSuffix(p.URL, "/mcp") }

// metadataName is the well-known URL of a resource's metadata, before the path of the resource.
const metadataName = "/.well-known/oauth-protected-resource"

// calledTool returns the name of the tool that a request calls, or "". It keeps the body.
func calledTool(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var call struct {
		Method string
		Params struct{ Name string }
	}
	if err != nil || json.Unmarshal(body, &call) != nil || call.Method != "tools/call" {
		return ""
	}
	return call.Params.Name
}

// serveRequest answers a request for the metadata, or checks the token and calls the handler.
func (p *Resource) serveRequest(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	s, scopes := p.issuer, slices.Clone(p.scopes)
	if r.URL.Path == "/mcp" {
		p.seen = append(p.seen, r.Header.Clone())
	}
	p.mu.Unlock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/.well-known/"):
		p.serveMetadata(w, r, s, scopes)
		return
	case r.URL.Path != "/mcp":
		http.NotFound(w, r)
		return
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a := s.findAccess(token)
	metadataPath := "/mcp"
	if s.has("challenge-per-tool") {
		tool := calledTool(r)
		if tool == "" {
			p.handler.ServeHTTP(w, r)
			return
		}
		metadataPath = "/" + tool
	}
	switch {
	case scheme != "Bearer" && scheme != oauth.SchemeDPoP:
		p.challenge(w, s, metadataPath, http.StatusUnauthorized, "", scopes)
	case a == nil || !p.isAudience(s, a.audience) || !isProved(r, p.URL, scheme, token, a):
		p.challenge(w, s, metadataPath, http.StatusUnauthorized, "invalid_token", scopes)
	case !containsAll(a.scopes, scopes):
		p.challenge(w, s, metadataPath, http.StatusForbidden, "insufficient_scope", scopes)
	default:
		p.handler.ServeHTTP(w, r)
	}
}

// isAudience reports whether a token was issued for this resource. A server that ignores the
// parameter resource has one audience for all.
func (p *Resource) isAudience(s *Server, audience []string) bool {
	return s.has("resource-ignored") || s.has("audience-empty") || s.has("audience-parameter") || s.has("resource-refused") ||
		slices.Contains(audience, p.identifier(s)) || len(audience) == 0 && s.has("no-metadata")
}

// identifier is the value of the member resource.
func (p *Resource) identifier(s *Server) string {
	switch {
	case s.has("resource-elsewhere"):
		return "https://elsewhere.example/mcp"
	case s.has("resource-origin"), s.has("resource-root"):
		return p.origin()
	}
	return p.URL
}

func (p *Resource) serveMetadata(w http.ResponseWriter, r *http.Request, s *Server, scopes []string) {
	path, resource := metadataName, p.identifier(s)
	if !s.has("resource-root") {
		path += "/mcp"
	}
	if tool, ok := strings.CutPrefix(r.URL.Path, metadataName+"/"); ok && tool != "mcp" && s.has("challenge-per-tool") {
		path, resource = r.URL.Path, p.origin()+"/"+tool
	}
	if r.URL.Path != path || s.has("no-metadata") {
		s.refuseWellKnown(w)
		return
	}
	metadata := map[string]any{
		"resource": resource, "authorization_servers": []string{s.Issuer}, "bearer_methods_supported": []string{"header"},
	}
	if len(scopes) > 0 {
		metadata["scopes_supported"] = scopes
	}
	writeJSON(w, http.StatusOK, metadata)
}

func (p *Resource) challenge(w http.ResponseWriter, s *Server, metadataPath string, status int, problem string, scopes []string) {
	text := "Bearer"
	add := func(name, value string) {
		if value != "" {
			text += fmt.Sprintf("%s %s=%q", map[bool]string{true: "", false: ","}[text == "Bearer"], name, value)
		}
	}
	add("error", problem)
	add("scope", strings.Join(scopes, " "))
	if !s.has("challenge-plain") && !s.has("resource-root") && !s.has("no-metadata") {
		add("resource_metadata", p.origin()+metadataName+metadataPath)
	}
	if !s.has("challenge-bare") {
		w.Header().Set("WWW-Authenticate", text)
	}
	writeError(w, status, problem, "the request is not authorized")
}
