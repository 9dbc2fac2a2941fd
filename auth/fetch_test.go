package auth

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A metadata address that never answers ends discovery after a short time, and the error names it.
func TestSilentMetadata(t *testing.T) {
	t.Parallel()
	for _, silent := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"} {
		synctest.Test(t, func(t *testing.T) {
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				answer := func(status int, body string) (*http.Response, error) {
					header := http.Header{"Content-Type": {"application/json"}}
					return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
				}
				switch r.URL.Path {
				case silent:
					<-r.Context().Done()
					return nil, r.Context().Err()
				case "/mcp":
					return answer(http.StatusUnauthorized, "")
				}
				return answer(http.StatusOK, `{"resource":"https://a.example/mcp","authorization_servers":["https://as.example"]}`)
			})
			tr, err := NewTransport("https://a.example/mcp", &Options{Base: base})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, tried, err := tr.Discover(t.Context())
			if took := time.Since(start); took < fetchTimeout || took > 2*fetchTimeout {
				t.Errorf("%s: discovery took %v, want %v", silent, took, fetchTimeout)
			}
			if !slices.ContainsFunc(tried, func(a Attempt) bool { return strings.Contains(a.URL, silent) }) || err == nil || !strings.Contains(err.Error(), silent) {
				t.Errorf("%s: tried %v, %v", silent, tried, err)
			}
		})
	}
}
