package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// The description of an unusable answer has no secrets, neither its own nor the request's.
func TestUnusableAnswersShowNoSecrets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		endpoint, media string
		status          int
		answer          string // %s is a secret of the request
		want            string // in the error; empty for a part of the status
	}{
		{"authorization_code", "application/json", 200, `{"access_token":"canary","token_type":7}`, "40 bytes"},
		{"authorization_code", "application/json", 200, `{"access_token":"canary"`, "another form"},
		{"authorization_code", "application/x-www-form-urlencoded", 200, "access_token=canary&token_type=bearer", "x-www-form-urlencoded"},
		{"authorization_code", "text/plain", 400, "bad request: client_secret=canary&token=canary, try again", "try again"},
		{"authorization_code", "text/plain", 500, `{"request":{"refresh_token": "canary"}}`, "500"},
		{"authorization_code", "application/json", 400, `{"error":"invalid_grant","error_description":"unknown %s here"}`, "unknown *** here"},
		{"register", "application/json", 201, `{"client_secret":"canary"}`, "another form"},
		{"register", "application/json", 201, `{"client_id":5,"client_secret":"canary"}`, "another form"},
	} {
		s := newSetup(t, &authtest.Options{OnRequest: func(endpoint string, w http.ResponseWriter, r *http.Request) bool {
			if endpoint != tt.endpoint {
				return false
			}
			w.Header().Set("Content-Type", tt.media)
			w.WriteHeader(tt.status)
			answer := tt.answer
			if strings.Contains(answer, "%s") {
				answer = fmt.Sprintf(answer, r.Form.Get("code"))
			}
			_, _ = io.WriteString(w, answer)
			return true
		}}, Options{})
		_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
		if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.answer, err, tt.want)
		}
	}
}

// The refusal of an endpoint that repeats the secrets of the request shows none of them: the secret
// of the client in each of its forms, the proof, the token of the user at an identity provider.
func TestRepeatedSecretsAreMasked(t *testing.T) {
	t.Parallel()
	var seen []string // the secrets of the last request
	repeat := func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		id, secret, _ := r.BasicAuth()
		plain, _ := url.QueryUnescape(secret)
		seen = []string{r.Header.Get("DPoP"), r.Form.Get("subject_token"), r.Form.Get("client_secret"), secret, plain}
		_, blob, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		text, _ := json.Marshal("refused " + id + ": " + strings.Join(append(seen, blob), " and ")) // a string
		fmt.Fprintf(w, `{"error":"invalid_client","error_description":%s}`, text)
	}
	as := authtest.Options{OnRequest: func(endpoint string, w http.ResponseWriter, r *http.Request) bool {
		if endpoint == "client_credentials" {
			repeat(w, r)
		}
		return endpoint == "client_credentials"
	}}
	s := newSetup(t, &as, Options{DPoP: true, ClientCredentials: true, Client: Client{ID: "robot", Secret: "s3cret/with:odd+chars"}})
	_, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
	checkMasked(t, err, seen, 3)

	idp := httptest.NewServer(http.HandlerFunc(repeat))
	defer idp.Close()
	e := &Enterprise{TokenURL: idp.URL, ClientID: "at-idp", ClientSecret: "secret-at-idp", IDToken: func(context.Context) (string, error) { return "eyJh.eyJz.id", nil }}
	_, err = e.Assert(t.Context(), AssertionRequest{Issuer: "https://as.example"})
	checkMasked(t, err, seen, 2)
}

// checkMasked checks that an error shows a refusal without the secrets. n of them must be set.
func checkMasked(t *testing.T, err error, secrets []string, n int) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "refused ") {
		t.Fatalf("%v", err)
	}
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		if n--; strings.Contains(err.Error(), secret) {
			t.Errorf("%q is shown: %v", secret, err)
		}
	}
	if n != 0 {
		t.Errorf("%d fewer secrets were sent than expected: %q", n, secrets)
	}
}

func TestReadScopes(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		`"a b"`: {"a", "b"}, `"a,b"`: {"a", "b"}, `["a","b"]`: {"a", "b"}, `""`: nil, `null`: nil, `7`: nil, ``: nil,
	} {
		if got := readScopes([]byte(raw)); !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s is %q, want %q", raw, got, want)
		}
	}
}
