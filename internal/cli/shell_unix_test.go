//go:build unix

package cli

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/shell"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// offspringScript writes the process ids of the server, of the shell and of the shell's children to
// a file, and keeps running.
const offspringScript = `exec 2>/dev/null
{ echo $PPID; echo $$
sleep 1000 & echo $!
sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' & echo $!
sleep 1000 | cat & echo $!
nohup sleep 1000 & echo $!
if [ -e /proc/self/environ ]; then
	setsid sleep 1000 & echo $!
	setsid sh -c 'setsid sleep 1000 & echo $!'
fi
echo up; } > pids.part
mv pids.part pids
wait`

// readOffspring returns the ids that offspringScript has written. The server's id is the first.
func readOffspring(t *testing.T, dir string) (pids []int) {
	t.Helper()
	for line := range strings.Lines(waitFor(t, filepath.Join(dir, "pids"), "up\n")) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			pids = append(pids, pid)
		}
	}
	if want := map[bool]int{true: 8, false: 6}[runtime.GOOS == "linux"]; len(pids) != want {
		t.Fatalf("got the processes %v", pids)
	}
	for _, pid := range pids {
		if !isRunning(pid) {
			t.Errorf("%d of %v does not run: this shows nothing of it", pid, pids)
		}
	}
	return pids
}

// The processes of a shell end with their server, however it ends.
func TestShellEndsWithItsServer(t *testing.T) {
	for name, end := range map[string]func(c *client.Client, server int){
		"killed":     func(_ *client.Client, server int) { syscall.Kill(server, syscall.SIGKILL) },
		"terminated": func(_ *client.Client, server int) { syscall.Kill(server, syscall.SIGTERM) },
		"closed":     func(c *client.Client, _ int) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c, err := client.Dial(t.Context(), stdio.Command{Path: testBinary(t), Args: []string{"serve", "shell", "dir=" + dir}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r, err := client.Call[shell.Result](t.Context(), c, "run", map[string]any{"command": offspringScript, "timeout": 0})
			if err != nil || r.State != shell.Running {
				t.Fatalf("got %+v, %v", r, err)
			}
			pids := readOffspring(t, dir)
			end(c, pids[0])
			awaitExits(t, pids, polltest.Limit)
		})
	}
}

// They also end with the process that has started the server.
func TestShellEndsWithACommandThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := newCommand(t, "call", "shell.run", "command="+offspringScript, "timeout=100", "-O", "dir="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := readOffspring(t, dir)
	cmd.Process.Kill()
	_ = cmd.Wait() // killed above
	awaitExits(t, pids, polltest.Limit)
}

// The built-in servers files and shell only start when a command names them.
func TestLocalServersAreAskedFor(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	if out := p.expectSuccess("", "tools"); strings.Contains(out, "shell__") || strings.Contains(out, "files__") || !strings.Contains(out, "everything__echo") {
		t.Error(out)
	}
	p.expectSuccess("by\n[shell ", "call", "shell.run", "command=echo by")
	p.expectSuccess("Returns a file", "tools", "files.read")
	p.expectSuccess("", "tools", "shell", "-O", "timeout=5s")
	p.expectFailure(exit.Usage, "it only runs when a command names it", "servers", "remove", "shell")
	p.expectFailure(exit.Usage, "dowel add shell", "servers", "disable", "shell")
	p.expectFailure(exit.Usage, "shell acts on this machine", "serve", "shell", "--http", "0.0.0.0:0", "--open")
	p.expectFailure(exit.Usage, "files acts on this machine", "serve", "files", "--http", "[::]:0", "--open")
	p.expectFailure(exit.Usage, "give sandbox=true as well", "serve", "shell", "network=true")
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"everything": hub.Ready, "weather": hub.Ready, "kv": hub.Ready})
	if states := p.listStates(); len(states) != 3 {
		t.Errorf("got %v", states)
	}
	p.expectSuccess("by\n[shell ", "call", "shell.run", "command=echo by")
}

// Commands in a shell only see the keys of models that are set for them.
func TestShellHasNoModelKeys(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "one")
	t.Setenv("ANTHROPIC_API_KEY", "two")
	p := newTestUser(t)
	const show = "command=echo ${OPENAI_API_KEY-none} ${ANTHROPIC_API_KEY-none}"
	p.expectSuccess("none none\n", "call", "shell.run", show)
	p.expectSuccess("three none\n", "call", "shell.run", show, "--env", "OPENAI_API_KEY=three")
	p.expectSuccess("none two\n", "call", "shell.run", show, "-O", "keys=ANTHROPIC_API_KEY")
	p.expectFailure(exit.Usage, "want OPENAI_API_KEY or ANTHROPIC_API_KEY", "serve", "shell", "keys=HOME")
}

// Once added to the user's servers, they work in the folder of the servers add command.
func TestLocalServersAreAnchored(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	out := p.expectSuccess("roots="+p.project, "servers", "add", "files", "-O", "read-only=true", "--dry-run")
	if strings.Contains(out, "shell") {
		t.Error(out)
	}
	p.expectSuccess("dir="+filepath.Join(p.project, "inner"), "servers", "add", "shell", "-O", "dir=inner", "--dry-run")
}
