//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// config check shows all problems in order, and the files that it read.
func TestConfigCheck(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	checkText(t, p.expectSuccess("Found no configuration file. Looked for:", "config", "check"), []string{p.userFile(), p.projectFile(), ".mcp.json"}, nil)
	p.writeFile(p.userFile(), `{"mcpServers": {"a": {"command": "x"}}}`)
	checkText(t, p.expectSuccess("1 server, no problems. Read:\n  "+p.userFile(), "config", "check"), nil, []string{"1 servers", ".mcp.json"})
	p.writeFile(p.userFile(), "{\"gateway\": {\"address\": \"here\"},\n\"mcpServers\": {\n\"a\": {\"command\": \"x\", \"disabeld\": true, \"args\": [\"${NO_SUCH_A}\"], \"env\": 1},\n\"b\": {\"command\": \"${NO_SUCH_B}\"}}}")
	out := p.runDowel("config", "check")
	last := -1
	for _, want := range []string{":1:25: error: gateway.address", ":3:", "disabeld", "NO_SUCH_A", ":3:", "env must be", ":4:", "NO_SUCH_B", "2 servers, 5 problems"} {
		at := strings.Index(out.stdout[last+1:], want)
		if at < 0 {
			t.Fatalf("%q does not come next in\n%s", want, out.stdout)
		}
		last += 1 + at
	}
	if out.code != exit.Failed {
		t.Errorf("%+v", out)
	}
	p.writeFile(p.userFile(), `{"mcpServers": {`)
	out = p.runDowel("config", "check")
	checkText(t, out.stdout, []string{"the file ends too early"}, []string{"hujson", "parsing", "EOF"})
}

// config explain quotes values that are empty or contain spaces.
func TestConfigExplain(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"a": {"command": "x", "args": ["two words", "", "plain"], "env": {"A": "${NO_SUCH_VARIABLE}", "B": "${NO_SUCH_VARIABLE:-}"}}}}`)
	checkText(t, p.expectSuccess("", "config", "explain", "a"), []string{
		"command = x\n", "args[0] = \"two words\"\n", "args[1] = \"\"\n", "args[2] = plain\n",
		`env.A = ""  from ${NO_SUCH_VARIABLE} (environment variable NO_SUCH_VARIABLE is not set)`,
		`env.B = ""  from ${NO_SUCH_VARIABLE:-} (default`,
	}, nil)
}
