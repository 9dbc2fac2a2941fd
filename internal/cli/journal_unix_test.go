//go:build unix

package cli

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// dowel wire shows the calls of other processes while they happen, ends with Ctrl-C, and has the
// past ones without secrets.
func TestWireOfTheRunningDowel(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"ev": `+p.builtInEntry("everything", "")+`}}`)
	p.expectFailure(exit.Connection, "no dowel is running", "wire", "--past")
	records := filepath.Join(p.home, "records")
	p.startDaemon("--record", records)
	p.awaitStates(map[string]hub.Status{"ev": hub.Ready})
	live := p.newCommand("wire", "method:tools/call")
	out, err := live.StdoutPipe()
	if err != nil || live.Start() != nil {
		t.Fatal(err)
	}
	seen := make(chan string)
	go func() {
		defer close(seen)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			seen <- lines.Text()
		}
	}()
	line := ""
	for line == "" { // the command may not watch yet
		p.expectSuccess("hello", "call", "ev.echo", "message=hello postgres://u:swordfish@h/db")
		select {
		case line = <-seen:
		default:
		}
	}
	for _, want := range []string{"─●─ ev", "echo", "hello postgres://u:****@h/db", "ms"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}
	_ = live.Process.Signal(syscall.SIGINT)
	for range seen {
	}
	if _ = live.Wait(); live.ProcessState.ExitCode() != 0 {
		t.Errorf("Ctrl-C ended dowel wire with %d", live.ProcessState.ExitCode())
	}
	frames := p.expectSuccess("→ ev", "wire", "--past", "--frames", "tool:echo", "kind:request")
	if strings.Count(frames, "\n") < 2 || strings.Contains(frames, "swordfish") { // one on each leg
		t.Errorf("the frames are\n%s", frames)
	}
	p.expectSuccess("dowel call ev.echo --args", "wire", "--past", "--as", "dowel", "status:ok")
	recorded, err := filepath.Glob(filepath.Join(records, "*.jsonl"))
	if err != nil || len(recorded) != 1 {
		t.Fatalf("%v, %v", recorded, err)
	}
	p.expectSuccess("─●─ ev", "wire", recorded[0], "tool:echo")
	recording := filepath.Join(p.home, "all.jsonl")
	if err := os.WriteFile(recording, []byte(p.expectSuccess(`"k":"op"`, "wire", "--past", "--export", "jsonl")), 0o600); err != nil {
		t.Fatal(err)
	}
	p.expectSuccess("─●─ ev", "wire", recording, "tool:echo", "server:ev")
	p.expectFailure(exit.Usage, `unknown key "sever"`, "wire", "sever:ev")
	p.expectFailure(exit.Usage, "want jsonl or har", "wire", "--export", "csv")
	p.expectFailure(exit.Usage, "line 1 is not from a recording", "wire", p.writeTemporary("broken.jsonl", "{}\n"))
}

// writeTemporary writes a file into the user's home and returns its path.
func (u *testUser) writeTemporary(name, text string) string {
	path := filepath.Join(u.home, name)
	u.writeFile(path, text)
	return path
}
