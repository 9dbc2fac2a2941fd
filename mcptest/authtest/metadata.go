package authtest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// addMetadataRoutes adds the places of RFC 8414 and OpenID Connect Discovery, with the issuer's
// path inserted and appended, and an answer for all other well-known URLs.
func (s *Server) addMetadataRoutes() {
	path := s.options.Path
	s.handle("/.well-known/oauth-authorization-server"+path, "metadata", func(w http.ResponseWriter, r *http.Request) {
		s.serveMetadata(w, r, !s.has("openid-only") && !s.has("openid-appended-only"))
	})
	if path != "" {
		s.handle("/.well-known/openid-configuration"+path, "metadata", func(w http.ResponseWriter, r *http.Request) {
			s.serveMetadata(w, r, !s.has("oauth-only") && !s.has("openid-appended-only"))
		})
	}
	s.handle(path+"/.well-known/openid-configuration", "metadata", func(w http.ResponseWriter, r *http.Request) {
		s.serveMetadata(w, r, !s.has("oauth-only"))
	})
	s.handle("/.well-known/", "metadata", func(w http.ResponseWriter, r *http.Request) { s.serveMetadata(w, r, false) })
}

func (s *Server) serveMetadata(w http.ResponseWriter, r *http.Request, exists bool) {
	if !exists || s.has("no-metadata") || r.Method != http.MethodGet {
		s.refuseWellKnown(w)
		return
	}
	writeJSON(w, http.StatusOK, s.metadata())
}

// refuseWellKnown answers a request for a well-known URL that does not exist.
func (s *Server) refuseWellKnown(w http.ResponseWriter) {
	switch {
	case s.has("wellknown-400"):
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "BadRequest"})
	case s.has("wellknown-403"):
		http.Error(w, "blocked", http.StatusForbidden)
	case s.has("wellknown-502"):
		http.Error(w, "bad gateway", http.StatusBadGateway)
	case s.has("wellknown-html"):
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>App</title>"))
	default:
		http.Error(w, "not found", http.StatusNotFound)
	}
}

func (s *Server) metadata() map[string]any {
	base := s.URL + s.options.Path
	issuer := s.Issuer
	switch {
	case s.has("issuer-template"):
		issuer = s.URL + "/{tenantid}"
	case s.has("issuer-other"):
		issuer = strings.Replace(issuer, "127.0.0.1", "127.0.0.2", 1)
	}
	methods := []string{"none", "client_secret_basic", "client_secret_post"}
	if s.has("method-unsaid") {
		methods = []string{"none"}
	}
	doc := map[string]any{
		"issuer":                                issuer,
		"authorization_endpoint":                base + "/authorize",
		"token_endpoint":                        base + "/token",
		"registration_endpoint":                 base + "/register",
		"introspection_endpoint":                base + "/introspect",
		"revocation_endpoint":                   base + "/revoke",
		"device_authorization_endpoint":         base + "/device",
		"jwks_uri":                              base + "/jwks",
		"response_types_supported":              []string{"code"},
		"code_challenge_methods_supported":      []string{"S256"},
		"token_endpoint_auth_methods_supported": methods,
		"grant_types_supported": []string{"authorization_code", "refresh_token", "client_credentials",
			"urn:ietf:params:oauth:grant-type:device_code", "urn:ietf:params:oauth:grant-type:token-exchange",
			"urn:ietf:params:oauth:grant-type:jwt-bearer"},
		"dpop_signing_alg_values_supported":              proofAlgorithms,
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          []string{"ES256"},
		"client_id_metadata_document_supported":          true,
		"authorization_response_iss_parameter_supported": true,
	}
	if len(s.options.Scopes) > 0 {
		doc["scopes_supported"] = s.options.Scopes
	}
	if s.has("script-endpoint") {
		doc["authorization_endpoint"] = "javascript:alert(1)"
	}
	for quirk, member := range map[string]string{
		"no-registration": "registration_endpoint", "no-documents": "client_id_metadata_document_supported",
		"no-challenge-methods": "code_challenge_methods_supported", "iss-none": "authorization_response_iss_parameter_supported",
		"iss-unadvertised": "authorization_response_iss_parameter_supported", "no-device": "device_authorization_endpoint",
	} {
		if s.has(quirk) {
			delete(doc, member)
		}
	}
	return doc
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// writeError answers with an error of OAuth.
func writeError(w http.ResponseWriter, status int, code, description string) {
	writeJSON(w, status, map[string]any{"error": code, "error_description": description})
}
