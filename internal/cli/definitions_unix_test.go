//go:build unix

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/trust"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// changingEntry returns the entry of a server that reads its tools from a file, and the file. more
// are further members, after a comma.
func (u *testUser) changingEntry(more string) (entry, tools string) {
	tools = filepath.Join(u.project, "tools.json")
	return `{"command": "` + testBinary(u.t) + `", "args": ["` + changingWord + `", "` + tools + `"]` + more + `}`, tools
}

// envScript is a model's script of three runs that call the tool env of the server a. The second
// one ends at the call.
const envScript = `{"turns": [
	{"calls": [{"name": "a__env", "arguments": {"name": "HOME"}}]}, {"expect": ["it ran"], "text": "done"},
	{"calls": [{"name": "a__env", "arguments": {"name": "HOME"}}]},
	{"calls": [{"name": "a__env", "arguments": {"name": "HOME"}}]}, {"expect": ["it ran"], "text": "done"}]}`

// approvedRun runs a task that calls the tool env, and reports whether it ran without an approval.
// Without one, the error must show the change and tell how to accept it.
func (u *testUser) approvedRun(model string) bool {
	u.t.Helper()
	out := u.runDowel("run", "Go.", "--model", "gpt-test", "--base-url", model)
	switch out.code {
	case exit.OK:
		return true
	case exit.Approval:
		checkText(u.t, out.stderr, append([]string{"a.env", "has changed since you allowed it", time.Now().Format("2006-01-02"), "dowel trust --tool a.env"}, turnedDifferences...), nil)
	default:
		u.t.Fatalf("%+v", out)
	}
	return false
}

// A tool that the user has approved asks again when the server changes its description, schema and
// hints between two starts or while it runs, and the refusal shows the change.
func TestApprovalCountsForItsDefinition(t *testing.T) {
	for name, approve := range map[string]string{"one tool": "", "all tools": "a.*", "by the entry": "entry"} {
		for _, running := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", beside dowel up"}[running], func(t *testing.T) {
				t.Parallel()
				p := newTestUser(t)
				m := startModel(t, envScript)
				more := ""
				if approve == "entry" {
					more = `, "alwaysAllow": ["*"]`
				}
				entry, tools := p.changingEntry(more)
				p.writeFile(tools, honestTools)
				p.writeFile(p.userFile(), `{"mcpServers": {"a": `+entry+`}}`)
				turn := func(content string) { p.writeFile(tools, content) }
				if running {
					p.startDaemon()
					p.awaitStates(map[string]hub.Status{"a": hub.Ready})
					turn = func(content string) { p.writeFile(tools, content); p.expectSuccess("turned", "call", "a.turn") }
				}
				if approve != "entry" {
					argument := "a.env"
					if approve != "" {
						argument = approve
					}
					p.expectSuccess("no longer needs an approval", "trust", "--tool", argument)
				}
				if !p.approvedRun(m.url) {
					t.Fatal("the approved definition needs an approval")
				}
				turn(turnedTools)
				if running {
					polltest.Until(t, "the change is seen", func() bool { return strings.Contains(p.runDowel("status").stdout, "changed: the tool env (") })
				}
				if p.approvedRun(m.url) {
					t.Fatal("the changed definition needs no approval")
				}
				checkText(t, p.expectSuccess("no longer needs an approval", "trust", "--tool", "a.env"), turnedDifferences, nil)
				if !p.approvedRun(m.url) {
					t.Error("the accepted definition needs an approval")
				}
				if running && strings.Contains(p.runDowel("status").stdout, "changed:") {
					t.Error("the accepted definition counts as changed")
				}
			})
		}
	}
}

// A server cannot make a tool read-only by changing it, unless the user accepts the change. A
// change of the description alone does not stop a tool that was read-only before.
func TestChangedHintsDoNotCount(t *testing.T) {
	const (
		readOnly = `[{"name":"env","description":"Reads.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`
		retold   = `[{"name":"env","description":"Reads well.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`
		writes   = `[{"name":"env","description":"Reads.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}}]`
	)
	for name, tt := range map[string]struct {
		first, then string
		answer      string // of the model after the call
		want        int
	}{
		"becomes read-only": {writes, readOnly, ``, exit.Approval},
		"stays read-only":   {readOnly, retold, `, {"expect": ["it ran"], "text": "done"}`, exit.OK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestUser(t)
			m := startModel(t, `{"turns": [{"calls": [{"name": "a__env", "arguments": {}}]}`+tt.answer+`]}`)
			entry, tools := p.changingEntry(`, "trustAnnotations": true`)
			p.writeFile(tools, tt.first)
			p.writeFile(p.userFile(), `{"mcpServers": {"a": `+entry+`}}`)
			p.startDaemon()
			p.awaitStates(map[string]hub.Status{"a": hub.Ready})
			p.writeFile(tools, tt.then)
			p.expectSuccess("turned", "call", "a.turn")
			polltest.Until(t, "the change is seen", func() bool { return strings.Contains(p.runDowel("status").stdout, "changed: the tool env (") })
			if out := p.runDowel("run", "Go.", "--model", "gpt-test", "--base-url", m.url); out.code != tt.want {
				t.Errorf("%+v", out)
			}
		})
	}
}

// With "definitions": "hold", which is the default of a project's servers, a changed tool is
// neither listed nor called until the user accepts it.
func TestHeldDefinitions(t *testing.T) {
	for _, project := range []bool{false, true} {
		t.Run(map[bool]string{true: "project", false: "user"}[project], func(t *testing.T) {
			t.Parallel()
			p := newTestUser(t)
			file, more := p.userFile(), `, "definitions": "hold"`
			if project {
				file, more = p.projectFile(), ""
			}
			entry, tools := p.changingEntry(more)
			p.writeFile(tools, honestTools)
			p.writeFile(file, `{"mcpServers": {"a": `+entry+`}}`)
			if project {
				p.expectSuccess("allowed", "trust", "a", "--yes")
			}
			p.startDaemon()
			p.awaitStates(map[string]hub.Status{"a": hub.Ready})
			p.expectSuccess("it ran", "call", "a.env", "name=x")
			p.writeFile(tools, turnedTools)
			p.expectSuccess("turned", "call", "a.turn")
			const why = "the tool env is left out: its definition has changed ("
			polltest.Until(t, "the changed tool is withheld", func() bool { return strings.Contains(p.runDowel("status").stdout, why) })
			checkText(t, p.expectSuccess("", "status", "a"), append([]string{"dowel trust --definitions a"}, turnedDifferences...), nil)
			checkText(t, p.expectSuccess("", "tools", "a"), []string{"turn"}, []string{"env"})
			if out := p.runDowel("call", "a.env", "name=x"); out.code == exit.OK || !strings.Contains(out.stdout+out.stderr, "dowel trust --definitions a") {
				t.Errorf("the call: %+v", out)
			}
			var changed []trust.ChangedLine
			if err := json.Unmarshal([]byte(p.expectSuccess("", "trust", "--definitions", "--json")), &changed); err != nil || len(changed) != 1 || changed[0].Accepted || changed[0].Changes[0].Name != "env" {
				t.Errorf("%+v, %v", changed, err)
			}
			checkText(t, p.expectSuccess("dowel trust --definitions a --yes", "trust", "--definitions", "a"), turnedDifferences, nil)
			p.expectSuccess("accepted", "trust", "--definitions", "a", "--yes")
			p.expectSuccess("it ran", "call", "a.env", "name=x")
			p.expectSuccess("No definition has changed", "trust", "--definitions")
			if out := p.runDowel("trust", "--definitions", "b"); out.code != exit.Usage || !strings.Contains(out.stderr, "no server of your configuration is called b") {
				t.Errorf("%+v", out)
			}
		})
	}
}

// dowel doctor names a server with definitions that differ at each start, and advises a setting.
func TestDoctorNamesVolatileDefinitions(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	entry, tools := p.changingEntry("")
	p.writeFile(tools, strings.Replace(honestTools, "Reads a variable.", "PID", 1))
	p.writeFile(p.userFile(), `{"mcpServers": {"a": `+entry+`}}`)
	p.startDaemon()
	for n := range 4 {
		if n > 0 {
			p.expectSuccess("a was restarted", "servers", "restart", "a")
		}
		p.awaitStates(map[string]hub.Status{"a": hub.Ready})
		out := p.expectSuccess("", "doctor", "a")
		advice, volatile := `add "definitions": "note" to its entry`, n == 3
		if strings.Contains(out, advice) != volatile || strings.Contains(out, "1 differ from the accepted ones") != (n == 1 || n == 2) {
			t.Errorf("after %d starts: %s", n+1, out)
		}
	}
}

// Without a running dowel, commands do not use a tool, prompt or resource template with a changed
// definition either if the entry withholds it.
func TestHeldDefinitionsWithoutDaemon(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"hold", "note"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newTestUser(t)
			entry, _ := p.changingEntry(`, "definitions": "` + mode + `"`)
			entry = strings.Replace(entry, "tools.json", allKindsFile, 1)
			tools := filepath.Join(p.project, allKindsFile)
			p.writeFile(p.userFile(), `{"mcpServers": {"a": `+entry+`}}`)
			p.writeFile(tools, honestTools)
			commands := [][]string{{"call", "a.env"}, {"call", "a.env", "--unchecked"}, {"prompt", "a.ask"}, {"read", "a", "note://one"}}
			for _, words := range commands {
				p.expectSuccess("it ran", words...)
			}
			p.writeFile(tools, turnedTools)
			for _, words := range commands {
				if mode == "note" {
					p.expectSuccess("it ran", words...)
				} else {
					p.expectFailure(exit.Connection, "is not offered: its definition has changed (", words...)
				}
			}
			p.expectSuccess("", "trust", "--definitions", "a", "--yes")
			p.expectSuccess("it ran", "call", "a.env")
		})
	}
}
