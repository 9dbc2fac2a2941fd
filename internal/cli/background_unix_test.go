//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/down"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/up"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"golang.org/x/sys/unix"
)

// killLater ends a process that a test may leave running.
func killLater(t *testing.T, pid int) {
	t.Helper()
	t.Cleanup(func() {
		if pid > 0 && isRunning(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

func TestUpDetached(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"kv": `+p.builtInEntry("kv", "")+`}}`)
	if out := p.runDowel("down"); out.code != exit.OK || !strings.Contains(out.stdout, "No dowel is running") {
		t.Errorf("down with nothing running: %+v", out)
	}
	var started up.Detached
	if err := json.Unmarshal([]byte(p.expectSuccess("", "up", "--detach", "--http", "0", "--origin", "https://a.example", "--origin", "https://b.example", "--json")), &started); err != nil {
		t.Fatal(err)
	}
	killLater(t, started.PID)
	if id, err := unix.Getsid(started.PID); err != nil || id != started.PID {
		t.Errorf("the process %d is in the session %d, %v: want one of its own", started.PID, id, err)
	}
	if now := p.serverStates(); len(now) != 1 || now["kv"].Name == "" {
		t.Errorf("its servers: %v", now)
	}
	if out := p.runDowel("up", "-d"); out.code == 0 || !strings.Contains(out.stderr, "process "+strconv.Itoa(started.PID)) || !strings.Contains(out.stderr, "dowel down") {
		t.Errorf("a second dowel: %+v", out)
	}
	if text, err := os.ReadFile(started.Log); err != nil || !strings.Contains(string(text), `"gateway"`) {
		t.Errorf("its log: %q, %v", text, err)
	}
	var ended down.Result
	if err := json.Unmarshal([]byte(p.expectSuccess("", "down", "--json")), &ended); err != nil || ended.PID != started.PID {
		t.Errorf("down: %+v, %v", ended, err)
	}
	polltest.Until(t, "the process has ended", func() bool { return !isRunning(started.PID) })

	p.expectSuccess("runs in the background, process", "up", "--detach", "--http", "0")
	p.expectSuccess("has ended", "down")
	if _, err := os.Stat(started.Log + ".1"); err != nil {
		t.Errorf("the first log is gone: %v", err)
	}
}

// What the background process says of its failure is shown.
func TestUpDetachedFails(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	out := p.runDowel("up", "--detach", "--http", "256.0.0.1:1")
	if out.code != exit.Failed || !strings.Contains(out.stderr, "could not start in the background") || !strings.Contains(out.stderr, "256.0.0.1") || !strings.Contains(out.stderr, "up.log") {
		t.Errorf("%+v", out)
	}
	if out := p.runDowel("up", "--detach", "--stdio"); out.code != exit.Usage {
		t.Errorf("with --stdio: %+v", out)
	}
}

// The dowel of a client ends with the client.
func TestDownOfAClientsDowel(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	cmd := p.newCommand("up", "--stdio")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "dowel runs", func() bool { return p.runDowel("status").code == 0 })
	if out := p.runDowel("down"); out.code != exit.Failed || !strings.Contains(out.stderr, "it ends when you close the client") {
		t.Errorf("%+v", out)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
