package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// newUndecidedProject makes a project for which dowel asks the user: it has a server that waits for
// trust, and the home has a server of another tool.
func newUndecidedProject(t *testing.T) (home, project string) {
	t.Helper()
	home, project = t.TempDir(), t.TempDir()
	for _, name := range homeVariables {
		t.Setenv(name, home)
	}
	for path, text := range map[string]string{
		filepath.Join(project, "dowel.json"):    `{"mcpServers": {"theirs": {"command": "evil"}}}`,
		filepath.Join(home, ".cursor/mcp.json"): `{"mcpServers": {"cursors": {"command": "npx"}}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home, project
}

// One Ctrl-C ends a question and changes nothing.
func TestInterruptOfConsent(t *testing.T) {
	for _, command := range []string{"trust", "import"} {
		t.Run(command, func(t *testing.T) {
			home, project := newUndecidedProject(t)
			p := onTerminal(t, command, "--project", project)
			p.expect("[y/N] ")
			p.typeText("\x03")
			p.expectExit(exit.Interrupted)
			for _, file := range []string{"dowel/state.json", "dowel/dowel.json"} {
				if text, err := os.ReadFile(filepath.Join(home, file)); err == nil {
					t.Errorf("%s holds %s", file, text)
				}
			}
		})
	}
}

// The question about a server with files in the project offers the folder.
func TestConsentToFolder(t *testing.T) {
	for answer, want := range map[string]string{"f\n": `"folder": true`, "y\n": `"file run.sh"`, "\n": ""} {
		home, project := newUndecidedProject(t)
		for name, text := range map[string]string{"run.sh": "true", "dowel.json": `{"mcpServers": {"theirs": {"command": "./run.sh"}}}`} {
			if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p := onTerminal(t, "trust", "--project", project)
		p.expect("y: this version, f: this folder, whatever its code becomes [y/f/N] ")
		p.typeText(answer)
		p.expectExit(exit.OK)
		text, err := os.ReadFile(filepath.Join(home, "dowel/state.json"))
		if want == "" && err == nil || !strings.Contains(string(text), want) {
			t.Errorf("%q: %s, %v", answer, text, err)
		}
	}
}

// Only y and yes mean agreement.
func TestConsent(t *testing.T) {
	for _, test := range []struct{ command, answer, file, Contains string }{
		{"trust", "y\n", "dowel/state.json", "command evil"},
		{"trust", "\n", "dowel/state.json", ""},
		{"trust", "\x04", "dowel/state.json", ""},
		{"import", "yes\nno\n", "dowel/dowel.json", "npx"},
		{"import", "yes\ny\n", "dowel/dowel.json", `"trustAnnotations": true`},
		{"import", "no\n", "dowel/dowel.json", ""},
		{"import", "\x04", "dowel/dowel.json", ""},
	} {
		t.Run(test.command+" "+strings.TrimSpace(test.answer), func(t *testing.T) {
			home, project := newUndecidedProject(t)
			p := onTerminal(t, test.command, "--project", project)
			if test.command == "import" {
				p.expect("npx")
			}
			p.expect("[y/N] ")
			for answer := range strings.Lines(test.answer) {
				p.typeText(answer)
				if strings.HasPrefix(answer, "yes") {
					p.expect("declares them read-only? [y/N] ")
				}
			}
			p.expectExit(exit.OK)
			text, err := os.ReadFile(filepath.Join(home, test.file))
			if test.Contains == "" && err == nil || !strings.Contains(string(text), test.Contains) {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}
