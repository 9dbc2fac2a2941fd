package oauth

import (
	"net/url"
	"slices"
	"testing"
)

func parseURL(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestResourceMetadataURLs(t *testing.T) {
	t.Parallel()
	for server, want := range map[string][]string{
		"https://example.com":             {"https://example.com/.well-known/oauth-protected-resource"},
		"https://example.com/":            {"https://example.com/.well-known/oauth-protected-resource"},
		"https://example.com/public/mcp":  {"https://example.com/.well-known/oauth-protected-resource/public/mcp", "https://example.com/.well-known/oauth-protected-resource"},
		"https://example.com:8443/mcp/":   {"https://example.com:8443/.well-known/oauth-protected-resource/mcp", "https://example.com:8443/.well-known/oauth-protected-resource"},
		"https://example.com/mcp?team=1":  {"https://example.com/.well-known/oauth-protected-resource/mcp?team=1", "https://example.com/.well-known/oauth-protected-resource"},
		"https://example.com/a%2Fb/mcp#x": {"https://example.com/.well-known/oauth-protected-resource/a%2Fb/mcp", "https://example.com/.well-known/oauth-protected-resource"},
		"https://user:secret@example.com": {"https://example.com/.well-known/oauth-protected-resource"},
	} {
		if got := ResourceMetadataURLs(parseURL(t, server)); !slices.Equal(got, want) {
			t.Errorf("ResourceMetadataURLs(%s) = %q, want %q", server, got, want)
		}
	}
}

func TestServerMetadataURLs(t *testing.T) {
	t.Parallel()
	for issuer, want := range map[string][]string{
		"https://auth.example.com": {
			"https://auth.example.com/.well-known/oauth-authorization-server",
			"https://auth.example.com/.well-known/openid-configuration",
		},
		"https://auth.example.com/": {
			"https://auth.example.com/.well-known/oauth-authorization-server",
			"https://auth.example.com/.well-known/openid-configuration",
		},
		"https://auth.example.com/tenant1": {
			"https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
			"https://auth.example.com/.well-known/openid-configuration/tenant1",
			"https://auth.example.com/tenant1/.well-known/openid-configuration",
		},
		"https://auth.example.com/tenant1/": {
			"https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
			"https://auth.example.com/.well-known/openid-configuration/tenant1",
			"https://auth.example.com/tenant1/.well-known/openid-configuration",
		},
	} {
		if got := ServerMetadataURLs(parseURL(t, issuer)); !slices.Equal(got, want) {
			t.Errorf("ServerMetadataURLs(%s) = %q, want %q", issuer, got, want)
		}
	}
}
