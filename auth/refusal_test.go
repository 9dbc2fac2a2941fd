package auth

import (
	"fmt"
	"io"
	"net/http"
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
