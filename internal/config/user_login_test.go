package config

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestUserLoginMistakes(t *testing.T) {
	for name, tt := range map[string]struct{ oauth, want string }{
		"shared":           {`{"exchange": "rfc8693", "issuer": "https://as", "clientId": "x"}`, "oauth.per is shared"},
		"unknown exchange": {`{"per": "user", "exchange": "rfc8692"}`, `oauth.exchange cannot be "rfc8692"`},
		"unknown owner":    {`{"per": "users"}`, `oauth.per cannot be "users"`},
		"no issuer":        {`{"per": "user", "exchange": "entra", "clientId": "x"}`, "needs issuer and clientId"},
		"no client":        {`{"per": "user", "exchange": "entra", "issuer": "https://as"}`, "needs issuer and clientId"},
		"no provider":      {`{"per": "user", "exchange": "id-jag", "issuer": "https://as", "clientId": "x"}`, "needs idpTokenUrl"},
		"exchange":         {`{"per": "user", "exchange": "rfc8693", "issuer": "https://as", "clientId": "x"}`, ""},
		"one account":      {`{"per": "shared"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := `{"mcpServers": {"s": {"url": "https://h/mcp", "oauth": ` + tt.oauth + `}}}`
			for _, inProject := range []bool{false, true} {
				dir := t.TempDir()
				path := filepath.Join(dir, "dowel.json")
				if err := writeFile(path, text); err != nil {
					t.Fatal(err)
				}
				o := Options{Home: t.TempDir(), GOOS: "linux", Env: func(string) (string, bool) { return "", false }}
				want := tt.want
				if inProject {
					o.Project, want = dir, "no place in a project's file"
				} else {
					o.Files = []string{path}
				}
				var problems []string
				for _, p := range Load(o).Problems {
					problems = append(problems, p.Message)
				}
				if all := strings.Join(problems, "\n"); want == "" && all != "" || !strings.Contains(all, want) {
					t.Errorf("in a project's file %v: %s, want %q", inProject, all, want)
				}
			}
		})
	}
}
