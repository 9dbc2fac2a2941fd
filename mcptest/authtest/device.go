package authtest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// device is a running device flow (RFC 8628).
type device struct {
	grant    *grant
	userCode string
	approved bool
	denied   bool
	polls    int
	polled   time.Time
	interval time.Duration
}

const deviceLifetime = 10 * time.Minute

// serveDevice starts a device flow. The user approves it by a GET of verification_uri_complete.
func (s *Server) serveDevice(w http.ResponseWriter, r *http.Request) {
	c, ok := s.authenticate(r)
	if !ok {
		writeError(w, http.StatusUnauthorized, "invalid_client", "the client is unknown, or its credentials are wrong")
		return
	}
	f := r.PostForm
	scopes := strings.Fields(f.Get("scope"))
	for _, check := range []func() (string, string){
		func() (string, string) { return s.checkResources(f["resource"]) },
		func() (string, string) { return s.checkScopes(scopes) },
	} {
		if code, description := check(); code != "" {
			writeError(w, http.StatusBadRequest, code, description)
			return
		}
	}
	d := &device{interval: 5 * time.Second, userCode: strings.ToUpper(newSecret("user")[5:13])}
	d.grant = &grant{client: c, scopes: scopes, resources: f["resource"], user: s.user(), family: newSecret("family"), offline: true,
		expires: s.Now().Add(deviceLifetime)}
	code := newSecret("device")
	s.mu.Lock()
	s.devices[code] = d
	s.mu.Unlock()
	activate := s.URL + s.options.Path + "/activate"
	writeJSON(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": d.userCode, "verification_uri": activate, "expires_in": int(deviceLifetime.Seconds()),
		"verification_uri_complete": activate + "?user_code=" + url.QueryEscape(d.userCode), "interval": int(d.interval.Seconds()),
	})
}

// serveActivate is the page on which the user approves a device.
func (s *Server) serveActivate(w http.ResponseWriter, r *http.Request) {
	denied := s.has("deny")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		if d.userCode == r.Form.Get("user_code") {
			d.approved, d.denied = !denied, denied
			_, _ = fmt.Fprintln(w, "You can close this page.")
			return
		}
	}
	http.Error(w, "unknown code", http.StatusNotFound)
}

// grantDevice answers a poll of a device.
func (s *Server) grantDevice(t *tokenRequest) {
	code := t.form.Get("device_code")
	slow := s.has("slow-down")
	s.mu.Lock()
	d := s.devices[code]
	var problem string
	switch {
	case d == nil || d.grant.client.ID != t.client.ID:
		problem = "invalid_grant"
	case s.now().After(d.grant.expires):
		problem = "expired_token"
	case slow && d.polls == 0, !d.polled.IsZero() && s.now().Sub(d.polled) < d.interval-time.Second/2:
		problem = "slow_down"
		d.interval += 5 * time.Second
	case d.denied:
		problem = "access_denied"
	case !d.approved:
		problem = "authorization_pending"
	default:
		delete(s.devices, code)
	}
	if d != nil {
		d.polls++
		d.polled = s.now()
	}
	s.mu.Unlock()
	if problem != "" {
		t.refuse(problem, "the device has no token")
		return
	}
	t.answer(d.grant, d.grant.scopes, true)
}
