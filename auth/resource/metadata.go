package resource

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/oauth"
)

// wellKnown begins the path of the metadata (RFC 9728, section 3).
const wellKnown = "/.well-known/oauth-protected-resource"

// serveMetadata answers a request for the metadata of the resource at path. Pages of all origins
// may read it: it is public, and clients in browsers need it before they have a token.
func (s *Server) serveMetadata(w http.ResponseWriter, r *http.Request, path string) {
	allowAnyOrigin(w)
	path = strings.TrimSuffix(path, "/")
	if _, ok := s.pathBelow(path); !ok {
		httpwire.Refuse(w, http.StatusNotFound, "the resources of this server begin with "+s.url.String())
		return
	}
	switch r.Method {
	case http.MethodOptions:
		w.Header().Set("Access-Control-Allow-Methods", "GET")
		w.Header().Set("Access-Control-Allow-Headers", "*, MCP-Protocol-Version, Authorization")
		w.Header().Set("Access-Control-Max-Age", "7200")
		w.WriteHeader(http.StatusNoContent)
		return
	case http.MethodGet, http.MethodHead:
	default:
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		httpwire.Refuse(w, http.StatusMethodNotAllowed, "the metadata can be read only")
		return
	}
	scopes := s.opts.ScopesSupported
	if scopes == nil {
		scopes = s.opts.Scopes
	}
	document := oauth.ResourceMetadata{
		Resource: s.origin(r) + path, ScopesSupported: scopes, BearerMethods: []string{"header"},
		ResourceName: s.opts.Name, ResourceDocumentation: s.opts.Documentation, DPoPRequired: s.opts.RequireDPoP,
	}
	for _, issuer := range s.opts.Issuers {
		document.AuthorizationServers = append(document.AuthorizationServers, issuer.URL)
	}
	if s.opts.OfferDPoP || s.opts.RequireDPoP {
		document.DPoPAlgorithms = proofAlgorithmNames
	}
	body, err := json.Marshal(document)
	if err != nil {
		panic(err) // strings can be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(body) // a client that has disconnected needs no answer
}

// allowAnyOrigin lets pages of all origins read an answer that holds nothing secret.
func allowAnyOrigin(w http.ResponseWriter) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Access-Control-Expose-Headers", "WWW-Authenticate, DPoP-Nonce, Retry-After")
}

// metadataURL returns the address of the metadata of the resource that a request is for.
func (s *Server) metadataURL(r *http.Request) string {
	return s.origin(r) + wellKnown + s.resourcePath(r)
}

// origin returns the scheme and host of the server's URL. It replaces a loopback host by
// the host of the request, because clients compare the resource with the address that they know.
func (s *Server) origin(r *http.Request) string {
	host := s.url.Host
	if s.isLoopback && samePort(r.Host, s.url) {
		host = r.Host
	}
	return s.url.Scheme + "://" + host
}

// samePort reports whether host names a loopback host with the port of u.
func samePort(host string, u *url.URL) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), ""
	}
	return httpwire.IsLoopbackHost(name) && port == u.Port()
}

// resourcePath returns the path of the resource that a request is for. A proxy may have changed the
// path of a request, so any path that is not below the server's URL is the URL's own.
func (s *Server) resourcePath(r *http.Request) string {
	path := strings.TrimSuffix(r.URL.EscapedPath(), "/")
	if _, ok := s.pathBelow(path); ok {
		return path
	}
	return s.path
}

// pathBelow returns the part of a path below the path of the server's URL.
func (s *Server) pathBelow(path string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, s.path)
	return rest, ok && (rest == "" || rest[0] == '/')
}
