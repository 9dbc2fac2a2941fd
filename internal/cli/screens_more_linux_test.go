package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// builtWith matches the values of dowel version, and backupTime the time in the name of a copy.
var (
	builtWith  = regexp.MustCompile(`^(dowel|go|commit|date|platform)(\s+)\S.*$`)
	backupTime = regexp.MustCompile(`\.\d{8}-\d{6}\.bak`)
)

// showScreen runs a command on a terminal to its end, and compares the rows with the file of this
// name.
func (p *testUser) showScreen(name, program string, columns uint16, words []string, use func(*pty)) {
	p.t.Helper()
	p.showCommand(name, program, columns, p.newCommand(words...), use)
}

func (p *testUser) showCommand(name, program string, columns uint16, cmd *exec.Cmd, use func(*pty)) {
	p.t.Helper()
	terminal := startOnTerminal(p.t, cmd, columns, 24)
	if use != nil {
		use(terminal)
	}
	_ = terminal.cmd.Wait() // some end with an error
	<-terminal.ended
	rows := p.screenRows(terminal, program, columns)
	for i, row := range rows {
		rows[i] = backupTime.ReplaceAllString(row, ".#.bak")
		if name == "version" {
			rows[i] = builtWith.ReplaceAllString(row, "$1$2#")
		}
	}
	compareScreen(p.t, name, columns, rows)
}

// The commands that change files, and those about trust, keys and tasks.
func TestEditingScreens(t *testing.T) {
	t.Parallel()
	for _, columns := range screenWidths {
		p, program := newScreenUser(t)
		p.writeFile(p.userFile(), `{"mcpServers": {"kv": {"command": "dowel", "args": ["serve", "kv"]}, "old": {"command": "x"},
	"linear": {"command": "npx", "args": ["-y", "mcp-remote", "https://mcp.example.com/mcp"]},
	"needy": {"command": "x", "env": {"TOKEN": "${NO_SUCH_TOKEN}", "PLAIN": "1"}}}}`)
		p.writeFile(p.projectFile(), `{"mcpServers": {"theirs": {"command": "npx", "args": ["-y", "@acme/mcp"], "env": {"KEY": "${THEIR_KEY}"}}}}`)
		p.writeFile(filepath.Join(p.home, ".cursor", "mcp.json"), `{"mcpServers": {"kv": {"command": "dowel", "args": ["serve", "kv"]}}}`)
		answer := func(terminal *pty) {
			terminal.expect("[y/N] ")
			terminal.typeText("y\r")
		}
		for _, show := range []struct {
			name  string
			words []string
			use   func(*pty)
		}{
			{"servers-disable", []string{"servers", "disable", "kv"}, nil},
			{"servers-enable", []string{"servers", "enable", "kv"}, nil},
			{"servers-set", []string{"servers", "set", "linear"}, nil},
			{"servers-remove", []string{"servers", "remove", "old"}, nil},
			{"servers-reload", []string{"servers", "reload"}, nil},
			{"config-explain", []string{"config", "explain", "needy"}, nil},
			{"trust-server", []string{"trust", "theirs"}, answer},
			{"trust-list", []string{"trust", "--list"}, nil},
			{"trust-revoke", []string{"trust", "--revoke", "theirs"}, nil},
			{"auth-key", []string{"auth", "key", "--move", "file"}, nil},
			{"auth-client-document", []string{"auth", "client-document", "https://example.com/client.json"}, nil},
			{"task-get", []string{"task", "get", "1"}, nil},
			{"task-wait", []string{"task", "wait", "1"}, nil},
			{"task-answer", []string{"task", "answer", "1", "a=b"}, nil},
			{"task-cancel", []string{"task", "cancel", "1"}, nil},
			{"version", []string{"version"}, nil},
		} {
			p.showScreen(show.name, program, columns, show.words, show.use)
		}
		for _, show := range [][]string{{"export-dry", "--dry-run"}, {"export"}, {"export-remove", "--remove"}} {
			cmd := p.newCommand(append([]string{"export", "--to", "cursor"}, show[1:]...)...)
			cmd.Path = linkTemporaryProgram(t)
			p.showCommand(show[0], program, columns, cmd, nil)
		}
	}
}

// linkTemporaryProgram returns a path at which dowel takes itself for temporary, wherever go test
// has put this program.
func linkTemporaryProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dowel")
	if os.Link(testBinary(t), path) == nil {
		return path
	}
	content, err := os.ReadFile(testBinary(t))
	if err == nil {
		err = os.WriteFile(path, content, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A task with an approval on the terminal.
func TestRunScreen(t *testing.T) {
	t.Parallel()
	for _, columns := range screenWidths {
		p, program := newScreenUser(t)
		m := startModel(t, `{"turns": [{"calls": [{"name": "kv__set", "arguments": {"key": "city", "value": "Oslo"}}]},
			{"text": "The key city has the value Oslo.", "usage": {"input": 1200, "output": 12}}]}`)
		words := []string{"run", "Store that the city is Oslo", "--model", "gpt-test", "--base-url", m.url, "--server", "kv"}
		p.showScreen("run", program, columns, words, func(terminal *pty) {
			terminal.expect("/?]")
			terminal.typeText("y\r")
		})
	}
}
