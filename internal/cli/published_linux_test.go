package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// On a terminal, dowel add asks for the values of a published server, repeats a question after a
// bad answer, and adds nothing without consent.
func TestAddOnTerminal(t *testing.T) {
	t.Parallel()
	u := newTestUser(t)
	base := startRegistry(t, map[string]string{"io.github.acme/weather": `{"name":"io.github.acme/weather","description":"\u001b[31mForecasts.","version":"1.2.3",
		"packages":[{"registryType":"npm","identifier":"@acme/weather","version":"1.2.3","transport":{"type":"stdio"},"packageArguments":[
			{"type":"named","name":"--unit","description":"The unit.","isRequired":true,"choices":["C","F"]}]}]}`}, nil)
	add := func(answers ...string) *pty {
		p := startOnTerminal(t, u.newCommand("add", "io.github.acme/weather", "--registry", base), 100, 24)
		p.expect("The unit; one of C, F")
		p.expect("value: ")
		p.typeText("K\n")
		p.expect(`unit is "K", want one of C, F`)
		p.typeText("F\n")
		p.expect("runs as you: npx -y @acme/weather@1.2.3 --unit F")
		p.expect("Add it as weather?")
		for _, answer := range answers {
			p.typeText(answer)
		}
		return p
	}
	add("n\n").expectExit(exit.Failed)
	if _, err := os.Stat(u.userFile()); err == nil {
		t.Error("it was added without consent")
	}
	p := add("y\n")
	p.expect("Written")
	p.expectExit(exit.OK)
	if got := u.readText(u.userFile()); !strings.Contains(got, `"--unit"`) || !strings.Contains(got, `"F"`) {
		t.Errorf("the file is\n%s", got)
	}
	p = startOnTerminal(t, u.newCommand("add", "io.github.acme/weather", "--as", "other", "--registry", base), 100, 24)
	p.expect("value: ")
	p.typeText("\x03")
	p.expectExit(exit.Interrupted)
}

// On a terminal, dowel add asks for required secrets without showing them. A typed secret is in a
// file of its own, which goes with the server, and not in the configuration. An empty answer leaves
// the environment variable.
func TestAddSecretsOnTerminal(t *testing.T) {
	t.Parallel()
	u := newTestUser(t)
	base := startRegistry(t, map[string]string{"io.github.acme/weather": `{"name":"io.github.acme/weather","description":"Forecasts.","version":"1.2.3",
		"remotes":[{"type":"streamable-http","url":"https://acme.example/mcp","headers":[
			{"name":"X-Key","description":"Your key.","isRequired":true,"isSecret":true},
			{"name":"X-Level","description":"The level.","isRequired":true,"isSecret":true,"choices":["low","high"]},
			{"name":"X-Other","description":"Another key.","isRequired":true,"isSecret":true}]}]}`}, nil)
	add := func(agreed string, words ...string) *pty {
		p := startOnTerminal(t, u.newCommand(append([]string{"add", "io.github.acme/weather", "--registry", base}, words...)...), 100, 24)
		p.expect("Your key")
		p.expect("the environment variable X_KEY): ")
		p.typeText("canary-of-the-key\n")
		p.expect("the environment variable X_LEVEL): ")
		p.typeText("canary-of-the-level\n")
		p.expect("the value of X-Level is wrong, want one of low, high")
		p.typeText("high\n")
		p.expect("the environment variable X_OTHER): ")
		p.typeText("\n")
		p.expect("X-Key: ${file:")
		p.expect("Add it as")
		p.typeText(agreed)
		return p
	}
	secrets := filepath.Join(u.home, "dowel", "secrets")
	add("n\n").expectExit(exit.Failed)
	if _, err := os.Stat(secrets); err == nil {
		t.Error("secrets were stored without consent")
	}
	for _, name := range []string{"weather", "second"} {
		p := add("y\n", "--as", name)
		p.expect("change a secret there")
		p.expectExit(exit.OK)
		if strings.Contains(p.output(), "canary") {
			t.Errorf("the terminal shows a secret:\n%s", p.output())
		}
	}
	written := u.readText(u.userFile())
	for _, part := range []string{"secrets/weather/X_KEY}", "secrets/weather/X_LEVEL}", `"X-Other": "${X_OTHER}"`, "secrets/second/X_KEY}"} {
		if !strings.Contains(written, part) {
			t.Errorf("%s is not in\n%s", part, written)
		}
	}
	if strings.Contains(written, "canary") {
		t.Errorf("the file has a secret:\n%s", written)
	}
	path := filepath.Join(secrets, "weather", "X_KEY")
	if got := u.readText(path); got != "canary-of-the-key\n" {
		t.Errorf("%s has %q", path, got)
	}
	if info, err := os.Stat(path); err != nil {
		t.Error(err)
	} else if info.Mode().Perm() != 0o600 {
		t.Errorf("%s has the mode %v", path, info.Mode())
	}
	u.expectSuccess("The secrets would be removed too", "servers", "remove", "weather", "--dry-run")
	u.expectSuccess("Removed the secrets", "servers", "remove", "weather")
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("the secrets have outlived their server")
	}
	if _, err := os.Stat(filepath.Join(secrets, "second", "X_KEY")); err != nil {
		t.Errorf("the other server has lost its secret: %v", err)
	}
	p := startOnTerminal(t, u.newCommand("add", "io.github.acme/weather", "--registry", base), 100, 24)
	p.expect("X_KEY): ")
	p.typeText("\x03")
	p.expectExit(exit.Interrupted)
}
