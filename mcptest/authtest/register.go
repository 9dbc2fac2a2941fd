package authtest

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// serveRegister registers a client (RFC 7591).
func (s *Server) serveRegister(w http.ResponseWriter, r *http.Request) {
	var request map[string]any
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&request)
	c := &Client{ID: newSecret("client"), Registration: request}
	c.Name, _ = request["client_name"].(string)
	c.Method, _ = request["token_endpoint_auth_method"].(string)
	c.RedirectURIs = stringsOf(request["redirect_uris"])
	switch {
	case s.has("no-registration"):
		http.NotFound(w, r)
		return
	case s.has("registration-refused") && c.Name != "Known Client":
		http.Error(w, "Forbidden: the client is not on the list", http.StatusForbidden)
		return
	case s.has("registration-token") && r.Header.Get("Authorization") == "":
		writeError(w, http.StatusUnauthorized, "invalid_token", "registration needs an API token")
		return
	case err != nil || r.Method != http.MethodPost:
		writeError(w, http.StatusBadRequest, "invalid_client_metadata", "want a POST of a JSON object")
		return
	case !slices.ContainsFunc(c.RedirectURIs, isRedirectURI) || !slices.Equal(slices.DeleteFunc(slices.Clone(c.RedirectURIs), notRedirectURI), c.RedirectURIs):
		writeError(w, http.StatusBadRequest, "invalid_redirect_uri", "want redirect_uris of https, or of http on a loopback address")
		return
	}
	if c.Method == "" {
		c.Method = "client_secret_basic"
	}
	if s.has("registration-secret") && c.Method == "none" {
		c.Method = "client_secret_post"
	}
	answer := maps.Clone(request)
	if c.Method != "none" {
		c.Secret = newSecret("secret")
		answer["client_secret"] = c.Secret
		answer["client_secret_expires_at"] = 0
		if s.has("registration-expires") {
			answer["client_secret_expires_at"] = s.Now().Add(time.Hour).Unix()
		}
	}
	if s.has("registration-managed") {
		answer["registration_client_uri"] = s.URL + s.options.Path + "/registered/" + c.ID
		answer["registration_access_token"] = newSecret("management")
	}
	answer["client_id"], answer["client_id_issued_at"], answer["token_endpoint_auth_method"] = c.ID, s.Now().Unix(), c.Method
	s.mu.Lock()
	s.clients[c.ID] = c
	s.mu.Unlock()
	writeJSON(w, http.StatusCreated, answer)
}

// serveRegistered deletes a client that was registered dynamically (RFC 7592, section 2.3).
func (s *Server) serveRegistered(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodDelete || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer management-") {
		writeError(w, http.StatusUnauthorized, "invalid_token", "want a DELETE with the registration access token")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, path.Base(r.URL.Path))
	w.WriteHeader(http.StatusNoContent)
}

// PublishDocument makes a client ID metadata document known under its URL. The server does not
// fetch documents: it refuses a client whose document was not published.
func (s *Server) PublishDocument(url string, document map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[url] = document
}

// Client returns a copy of the client with an id. ok is false if it is not registered.
func (s *Server) Client(id string) (c Client, ok bool) {
	found := s.findClient(id)
	if found == nil {
		return Client{}, false
	}
	return *found, true
}

// findClient returns a registered client, or one with a published document; nil if there is none.
func (s *Server) findClient(id string) *Client {
	documents := !s.has("no-documents")
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[id]; c != nil {
		return c
	}
	document := s.documents[id]
	if !documents || document == nil || document["client_id"] != id {
		return nil
	}
	c := &Client{ID: id, Method: "none", RedirectURIs: stringsOf(document["redirect_uris"]), Registration: document}
	c.Name, _ = document["client_name"].(string)
	return c
}

// allowsRedirect reports whether a client may use a redirect URI.
func (s *Server) allowsRedirect(c *Client, uri string) bool {
	if len(c.RedirectURIs) == 0 {
		return isLoopbackURI(uri)
	}
	if slices.Contains(c.RedirectURIs, uri) {
		return true
	}
	return !s.has("redirect-exact") && isLoopbackURI(uri) && slices.ContainsFunc(c.RedirectURIs, func(known string) bool {
		return isLoopbackURI(known) && withoutPort(known) == withoutPort(uri)
	})
}

func notRedirectURI(uri string) bool { return !isRedirectURI(uri) }

func isRedirectURI(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Fragment == "" && (u.Scheme == "https" && u.Host != "" || isLoopbackURI(uri))
}

func isLoopbackURI(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func withoutPort(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	return u.Hostname() + u.EscapedPath() + "?" + u.RawQuery
}

func stringsOf(value any) []string {
	list, _ := value.([]any)
	if texts, ok := value.([]string); ok {
		return texts
	}
	var texts []string
	for _, v := range list {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}
