package config

import (
	"slices"
	"strings"
	"testing"
)

func TestGatewayAuth(t *testing.T) {
	set := loadUserFile(t, `{"gateway": {"auth": {"url": "https://mcp.example.com", "issuers": ["${ISSUER:-https://a.example}"],
		"audiences": ["api"], "scopes": ["use"], "servers": {"files": ["files"]}, "dpop": "required", "requireType": true, "clientId": "rs", "clientSecret": "${AUTH_SECRET:-s3cret}"}}}`)
	settings, problems := set.Gateway.Resolve(set.Variables)
	a := settings.Auth
	if len(problems) > 0 || !a.IsSet() || a.URL != "https://mcp.example.com" || !slices.Equal(a.Issuers, []string{"https://a.example"}) ||
		!slices.Equal(a.Audiences, []string{"api"}) || !slices.Equal(a.Scopes, []string{"use"}) || a.DPoP != "required" || !a.RequireType || a.ClientID != "rs" || a.ClientSecret != "s3cret" || !slices.Equal(a.Servers["files"], []string{"files"}) {
		t.Errorf("got %+v with %v", a, problems)
	}
	for _, tt := range []struct{ text, want string }{
		{`{"auth": {}}`, "names no authorization server"},
		{`{"auth": {"issuers": "https://a.example"}}`, "must be"},
		{`{"auth": {"issuers": ["https://a.example"], "dpop": "maybe"}}`, "dpop"},
		{`{"auth": {"issuers": ["https://a.example"], "isuers": []}}`, "isuers"},
		{`{"auth": {"issuers": ["https://a.example"], "servers": {"files": "files"}}}`, "servers.files must be"},
		{`{"auth": {"issuers": ["${NONE}"]}}`, "NONE"},
		{`{"auth": {"issuers": ["https://a.example", "https://b.example"], "clientId": "rs", "clientSecret": "x"}}`, "names 2 issuers"},
		{`{"auth": {"issuers": ["https://a.example", "https://b.example"], "clientSecret": "x"}}`, "names 2 issuers"},
		{`{"auth": {"issuers": ["https://a.example"]}, "open": true}`, "gateway.open lets everyone in"},
		{`{"auth": {"issuers": ["https://a.example"]}, "token": "x"}`, "gateway.token would have no effect"},
		{`{"auth": {"issuers": ["https://a.example"]}, "clients": {"ci": {"token": "x"}}}`, "gateway.clients.ci.token would have no effect"},
	} {
		set := loadUserFile(t, `{"gateway": `+tt.text+`}`)
		_, problems := set.Gateway.Resolve(set.Variables)
		var all strings.Builder
		for _, p := range slices.Concat(set.Problems, problems) {
			all.WriteString(p.Text() + "\n")
		}
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == Error }) {
			t.Errorf("%s: the gateway would open", tt.text)
		}
		if !strings.Contains(all.String(), tt.want) {
			t.Errorf("%s: got %q, want %q", tt.text, all.String(), tt.want)
		}
	}
}
