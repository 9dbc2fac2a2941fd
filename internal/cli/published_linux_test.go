package cli

import (
	"os"
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
