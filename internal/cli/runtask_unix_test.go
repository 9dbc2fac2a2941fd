//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// writeConfig writes the user's file with servers, a default model and an audit log.
func (u *testUser) writeConfig(m *model) (audit string) {
	audit = filepath.Join(u.home, "audit", "log.jsonl")
	u.writeFile(u.userFile(), `{
		"mcpServers": {"mine": `+u.builtInEntry("everything", `, "trustAnnotations": true, "alwaysAllow": ["test_trigger_resource_update"]`)+`, "keys": {"command": "`+testBinary(u.t)+`", "args": ["serve", "kv", "memory=true"], "trustAnnotations": true}},
		"models": {"scripted": {"provider": "openai", "model": "gpt-test", "url": "`+m.url+`"}}, "model": "scripted",
		"gateway": {"audit": "`+audit+`", "auditArguments": true}
	}`)
	return audit
}

// readAudit returns the records of an audit log.
func readAudit(t *testing.T, path string) (all []audit.Record) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(text) {
		var r audit.Record
		if err := json.Unmarshal(l, &r); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		all = append(all, r)
	}
	return all
}

const wholeScript = `{"turns": [
	{"calls": [{"name": "mine__echo", "arguments": {"message": "hi"}}, {"name": "keys__list"}]},
	{"expect": ["hi", "keys"], "text": "Both."}]}`

// A task can use all configured servers, through the running dowel or without one. Servers of a
// project wait for trust.
func TestRunTaskWhole(t *testing.T) {
	for name, running := range map[string]bool{"alone": false, "beside dowel up": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestUser(t)
			audit := p.writeConfig(startModel(t, wholeScript))
			p.writeFile(p.projectFile(), `{"mcpServers": {"theirs": `+p.builtInEntry("everything", "")+`}, "models": {"evil": {"model": "x", "url": "http://evil.example"}}}`)
			if running {
				p.startDaemon()
			}
			out := p.runDowel("run", "Do both.")
			if out.code != exit.OK || out.stdout != "Both.\n" {
				t.Errorf("%+v\n%s", out, p.output())
			}
			checkText(t, out.stderr, []string{"the tools of theirs are missing", "dowel trust theirs", "models has no effect in a project", "dowel.json:1:"}, nil)
			if n := strings.Count(out.stderr, "models has no effect"); n != 1 {
				t.Errorf("one warning is given %d times: %s", n, out.stderr)
			}
			outcomes := map[string]int{}
			for _, r := range readAudit(t, audit) {
				outcomes[r.Server+"."+r.Name+" "+r.Outcome+" "+r.By]++
				if r.Name == "echo" && string(r.Arguments) != `{"message":"hi"}` {
					t.Errorf("the arguments of %+v are %s", r, r.Arguments)
				}
			}
			for _, want := range []string{"mine.echo ok ", "keys.list ok ", "mine.echo allowed annotation", "keys.list allowed annotation"} {
				if outcomes[want] != 1 {
					t.Errorf("%q is %d times in the audit log: %v", want, outcomes[want], outcomes)
				}
			}
		})
	}
}

// Lasting approvals hold until they are revoked. Tools of a project's server cannot have one.
func TestRunTaskApprovals(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	m := startModel(t, `{"turns": [
		{"calls": [{"name": "keys__set", "arguments": {"key": "a", "value": "b"}}]},
		{"calls": [{"name": "keys__set", "arguments": {"key": "a", "value": "b"}}]},
		{"expect": ["stored"], "text": "stored"},
		{"calls": [{"name": "mine__test_trigger_resource_update"}]},
		{"text": "allowed by the configuration"},
		{"calls": [{"name": "keys__set", "arguments": {"key": "a", "value": "b"}}]},
		{"calls": [{"name": "theirs__set", "arguments": {"key": "a", "value": "b"}}]}]}`)
	audit := p.writeConfig(m)
	p.writeFile(p.projectFile(), `{"mcpServers": {"theirs": {"command": "`+testBinary(t)+`", "args": ["serve", "kv", "memory=true"], "alwaysAllow": ["set"]}}}`)
	p.expectSuccess("allowed", "trust", "theirs", "--yes")

	needed := p.runDowel("run", "Store it.")
	if needed.code != exit.Approval || !strings.Contains(needed.stderr, "dowel trust --tool keys.set") {
		t.Errorf("%+v", needed)
	}
	p.expectSuccess("keys.set no longer needs an approval", "trust", "--tool", "keys.set")
	p.expectSuccess("keys: a model calls set without an approval", "trust", "--list")
	p.expectSuccess(`[{"name":"keys","tools":["set"]}]`, "trust", "--list", "keys", "--json")
	p.expectSuccess("stored\n", "run", "Store it.")
	p.expectSuccess("allowed by the configuration\n", "run", "Show me.")
	p.expectSuccess("keys.set needs an approval again", "trust", "--tool", "--revoke", "keys.set")
	p.expectSuccess("keys.* no longer needs an approval", "trust", "--tool", "keys.*")
	if out := p.runDowel("trust", "--tool", "--revoke", "keys.set"); out.code != exit.Usage || !strings.Contains(out.stderr, "revoke all with dowel trust --tool --revoke 'keys.*'") {
		t.Errorf("%+v", out)
	}
	p.expectSuccess("keys: a model calls all of its tools", "trust", "--tool", "--list")
	p.expectSuccess("keys.* needs an approval again", "trust", "--tool", "--revoke", "keys.*")
	if out := p.runDowel("run", "Store it."); out.code != exit.Approval {
		t.Errorf("%+v", out)
	}
	for words, want := range map[string]string{
		"trust --tool":                       "dowel trust --tool SERVER.TOOL",
		"trust --tool keys":                  "keys.TOOL, or 'keys.*' for all",
		"trust --tool nope.set":              "no server is called nope",
		"trust --tool theirs.set":            "theirs came with a project",
		"trust --tool --revoke keys.set":     "keys.set has no approval to revoke",
		"trust --tool --revoke nope.nothing": "nope.nothing has no approval to revoke",
	} {
		if out := p.runDowel(strings.Fields(words)...); out.code != exit.Usage || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v, want %q", words, out, want)
		}
	}
	p.writeFile(filepath.Join(p.home, "dowel", "state.json"), strings.Replace(p.readState(), `"servers"`, `"x-note": {}, "servers"`, 1))
	if out := p.runDowel("run", "Store it."); out.code != exit.Approval || !strings.Contains(out.stderr, "theirs.set") {
		t.Errorf("what a project's file says counts: %+v", out)
	}
	by := map[string]bool{}
	for _, r := range readAudit(t, audit) {
		by[r.Outcome+" "+r.By+" "+r.Server+"."+r.Name] = true
	}
	for _, want := range []string{"refused mode keys.set", "allowed always keys.set", "allowed always mine.test_trigger_resource_update", "refused mode theirs.set"} {
		if !by[want] {
			t.Errorf("%q is not in the audit log: %v", want, by)
		}
	}
}

func (u *testUser) readState() string {
	text, err := os.ReadFile(filepath.Join(u.home, "dowel", "state.json"))
	if err != nil {
		u.t.Fatal(err)
	}
	return string(text)
}

// With --server, only the named servers start.
func TestRunTaskServers(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	m := startModel(t, `{"turns": [
		{"calls": [{"name": "keys__list"}, {"name": "everything__echo", "arguments": {"message": "built in"}}, {"name": "mine__echo"}]},
		{"expect": ["keys", "built in", "there is no tool mine__echo"], "text": "two"}]}`)
	p.writeConfig(m)
	if out := p.runDowel("run", "Look.", "--server", "keys", "--server", "everything"); out.code != exit.OK || out.stdout != "two\n" || out.stderr != "" {
		t.Errorf("%+v", out)
	}
	for words, want := range map[string]string{
		"run Go. --server nope":                        "no server is called nope; there are mine, keys, everything",
		"run Go. --server mine,keys":                   "repeat the flag for several servers: --server mine --server keys",
		"run Go. --server mine --server mine":          "--server mine is given twice",
		"run Go. --url nowhere":                        "--url nowhere: write a URL",
		"run Go. --server mine -O a=b":                 "mine",
		"run Go. -O a=b":                               "name only that one with --server",
		"run Go. -e A=b":                               "--env and --dir are for a built-in server",
		"run Go. -H A:b":                               "--header is for servers at a --url",
		"run Go. --approve some":                       "want read-only, all or none",
		"run Go. --max-steps 0":                        "write a number from 1",
		"run":                                          "no task is given",
		"run Go. --":                                   "there is no command after --",
		"run Go. --model scripted --base-url http://x": "do not go with scripted",
		"run Go. --system @nope":                       "--system: open nope",
	} {
		if out := p.runDowel(strings.Fields(words)...); out.code != exit.Usage || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v, want %q", words, out, want)
		}
	}
	out := p.runDowel("run", "Go.", "--", "no-such-program-anywhere")
	if out.code != exit.Connection || !strings.Contains(out.stderr, "no connection to no-such-program-anywhere") {
		t.Errorf("%+v", out)
	}
}

// The first Ctrl-C cancels the running call and prints the partial answer.
func TestRunTaskInterrupted(t *testing.T) {
	for name, flags := range map[string][]string{"lines": nil, "json": {"--json"}} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, `{"turns": [{"text": "I wait.", "calls": [{"name": "cli-test__wait"}]}]}`)
			trace := filepath.Join(t.TempDir(), "trace")
			cmd := newCommand(t, m.runArgs(t, append(flags, "Wait", "--approve", "all", "-e", traceVariable+"="+trace)...)...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, trace, "waiting")
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // ProcessState has the result
			if got := cmd.ProcessState.ExitCode(); got != exit.Interrupted || !strings.Contains(stdout.String(), "I wait.") {
				t.Errorf("exit code %d, stdout: %s\nstderr: %s", got, stdout.String(), stderr.String())
			}
			waitFor(t, trace, "cancelled")
			if last := lastLine(stdout.String()); flags != nil && !strings.Contains(last, `"reason":"interrupted","exit":130,"answer":"I wait.","partial":true`) {
				t.Errorf("the last event is %s", last)
			}
		})
	}
}

// If Ctrl-C stops a reply, its received part is printed.
func TestRunTaskPartialReply(t *testing.T) {
	t.Parallel()
	m := startStallingServer(t, "The answer is")
	polltest.UntilLongEnough(t, 100*time.Millisecond, func(pause time.Duration) error {
		cmd := newCommand(t, "run", "Go", "--model", "gpt-test", "--base-url", m.url, "--server", "everything")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-m.stalls
		time.Sleep(pause) // dowel reads the part in this time
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // ProcessState has the result
		if got := cmd.ProcessState.ExitCode(); got != exit.Interrupted || stdout.String() != "The answer is\n" {
			return fmt.Errorf("exit code %d, stdout: %s\nstderr: %s", got, stdout.String(), stderr.String())
		}
		return nil
	})
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// Ctrl-C also ends dowel while it waits for its servers.
func TestRunTaskInterruptedEarly(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	cmd := newCommand(t, "run", "Go", "--model", "gpt-test", "--base-url", "http://127.0.0.1:1/v1", "--", "sh", "-c", "echo > '"+started+"'; exec sleep 60")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, started, "\n")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // ProcessState has the result
	if got := cmd.ProcessState.ExitCode(); got != exit.Interrupted {
		t.Errorf("exit code %d, stderr: %s", got, stderr.String())
	}
}
