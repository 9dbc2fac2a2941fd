package sse

import (
	"net/url"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

func TestSameOrigin(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"https://example.com/sse", "https://EXAMPLE.com:443/m", true}, {"http://example.com", "http://example.com:80", true}, {"http://[::1]:8080/", "http://[::1]:8080/x", true},
		{"https://example.com", "http://example.com", false}, {"https://example.com", "https://example.com:8443", false}, {"https://example.com", "https://www.example.com", false},
		{"https://example.com", "https://example.com.", false}, {"https://example.com", "https:/m", false}, {"https://example.com", "mailto:a@example.com", false},
	} {
		a, _ := url.Parse(tt.a)
		b, _ := url.Parse(tt.b)
		if httpwire.SameOrigin(a, b) != tt.same || httpwire.SameOrigin(b, a) != tt.same {
			t.Errorf("%s and %s: %v", tt.a, tt.b, !tt.same)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, told := range []string{"/messages?x=1", "m", "?x", "//evil", "//eXAmple.Com#0", "http://evil/", "https://example.com:443/x", "https:x", "https:///x", "\\\\evil/x", "https://example.com@evil/", "https://example.com\\@evil/"} {
		f.Add(told)
	}
	stream, _ := url.Parse("https://user@example.com/a/sse?k=1")
	f.Fuzz(func(t *testing.T, told string) {
		to, err := resolveEndpoint(stream, told)
		if err != nil {
			return
		}
		again, err := url.Parse(to.String())
		if err != nil || again.Scheme != "https" || !strings.EqualFold(again.Hostname(), "example.com") || again.Port() != "" && again.Port() != "443" || again.User.String() != "user" {
			t.Errorf("%q: %s %v", told, to, err)
		}
	})
}
