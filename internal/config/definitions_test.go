package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
)

// TestHoldsChanges checks which key decides, and that a project cannot decide for other servers.
func TestHoldsChanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		user, project string // the key at the top level of each file, with a comma
		entries       string // of both files
		own, foreign  bool   // whether changes of the user's and the project's server are held
	}{
		{"", "", `{"command": "x"}`, false, true},
		{`"definitions": "hold",`, "", `{"command": "x"}`, true, true},
		{`"definitions": "note",`, "", `{"command": "x"}`, false, false},
		{"", `"definitions": "note",`, `{"command": "x"}`, false, true},
		{"", `"definitions": "hold",`, `{"command": "x"}`, false, true},
		{`"definitions": "hold",`, "", `{"command": "x", "definitions": "note"}`, false, false},
		{`"definitions": "note",`, "", `{"command": "x", "definitions": "hold"}`, true, true},
	} {
		home, project := t.TempDir(), t.TempDir()
		user := filepath.Join(home, ".config", "dowel")
		if err := os.MkdirAll(user, 0o700); err != nil {
			t.Fatal(err)
		}
		for folder, text := range map[string]string{
			user:    "{" + test.user + `"mcpServers": {"own": ` + test.entries + "}}",
			project: "{" + test.project + `"mcpServers": {"foreign": ` + test.entries + "}}",
		} {
			if err := os.WriteFile(filepath.Join(folder, "dowel.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		set := config.Load(config.Options{Home: home, Project: project, GOOS: "linux", Env: func(string) (string, bool) { return "", false }})
		if own, foreign := set.HoldsChanges(set.Server("own")), set.HoldsChanges(set.Server("foreign")); own != test.own || foreign != test.foreign {
			t.Errorf("%+v: held are %v, %v", test, own, foreign)
		}
	}
}
