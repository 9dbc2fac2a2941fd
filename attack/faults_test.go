//go:build linux

package attack

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// Attack 63: commands that write the configuration and the state are killed at random times.
// Expected: both files are valid each time, and the next command works.
func TestKilledWrites(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.write(v.userFile(), `{"mcpServers": {"kept": {"command": "true"}, "every": `+builtIn("everything")+`}}`)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	for i := range repeatCount(40, 600) {
		words := [][]string{
			{"servers", "add", fmt.Sprint("new", i), "--", "true"}, {"servers", "remove", fmt.Sprint("new", i-1)}, {"servers", "disable", "every"}, {"servers", "enable", "every"}, {"trust", "--tool", "every.echo"},
		}[i%5]
		cmd := v.command(words...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(40*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // ProcessState has the result
		if timer.Stop(); cmd.ProcessState.ExitCode() == -1 {
			killed++
		}
		for _, path := range []string{v.userFile(), filepath.Join(v.home, "dowel", "state.json")} {
			text, err := os.ReadFile(path)
			if err == nil && !json.Valid(text) || os.IsNotExist(err) && path == v.userFile() {
				t.Fatalf("after %v was killed, %s is %q, %v", words, path, text, err)
			}
		}
	}
	if text, err := os.ReadFile(v.userFile()); err != nil || !strings.Contains(string(text), `"kept"`) {
		t.Errorf("the entry that no command named is gone: %s, %v", text, err)
	}
	v.succeed("kept", "servers", "list")
	if killed == 0 {
		t.Error("no command was killed")
	}
}

// Attack 64: kv is killed while it acknowledges writes. Expected: each acknowledged value is there
// afterwards.
func TestKilledStore(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.write(v.userFile(), `{"mcpServers": {"every": `+builtIn("everything")+`, "kv": `+builtIn("kv")+`}}`)
	v.start()
	var written []string
	for round := range repeatCount(3, 20) {
		for i := range 5 {
			key := fmt.Sprintf("k%d-%d.", round, i)
			if code, _ := v.run("call", "kv.set", "key="+key, "value=v"); code == 0 {
				written = append(written, key)
			}
		}
		for _, pid := range children(t, v.cmd.Process.Pid, "serve\x00kv") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		polltest.Until(t, "kv answers again", func() bool { code, _ := v.run("call", "kv.list"); return code == 0 })
	}
	for _, key := range written {
		if code, output := v.run("call", "kv.get", "key="+key); code != 0 {
			t.Errorf("the acknowledged write of %s is lost: %s", key, output)
		}
	}
	if len(written) == 0 {
		t.Error("no write was acknowledged")
	}
}

// children returns the child processes of a process that have a text in their command line.
func children(t *testing.T, parent int, command string) (all []int) {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range entries {
		var pid, ppid int
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		_, _ = fmt.Sscan(string(text), &pid)
		var state string
		_, _ = fmt.Sscan(rest, &state, &ppid)
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if ppid == parent && strings.Contains(string(line), command) {
			all = append(all, pid)
		}
	}
	return all
}

// Attack 65: the server files is killed while it writes. Expected: the file is whole each time, and
// the temporary files that stay are removed by a write an hour later.
func TestKilledFileWrites(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	target := filepath.Join(v.project, "target.txt")
	contents := []string{strings.Repeat("o", 100<<10), strings.Repeat("n", 100<<10)}
	write := func(content string) *exec.Cmd {
		return v.command("call", "files.write", "path=target.txt", "content="+content, "-O", "roots="+v.project)
	}
	v.write(target, contents[0])
	v.write(filepath.Join(v.project, ".dowel-of-a-killed-process.tmp"), "half") // the kills may leave none
	for i := range repeatCount(30, 400) {
		cmd := write(contents[i%2])
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rand.Int64N(int64(60*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // the file has the result
		timer.Stop()
		if text, err := os.ReadFile(target); err != nil || !slices.Contains(contents, string(text)) {
			t.Fatalf("the file is half written: %d bytes, %v", len(text), err)
		}
	}
	leftovers := func() []string {
		found, _ := filepath.Glob(filepath.Join(v.project, ".dowel-*.tmp"))
		return found
	}
	long := time.Now().Add(-2 * time.Hour)
	for _, path := range leftovers() {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := write("new").CombinedOutput(); err != nil || len(leftovers()) > 0 {
		t.Errorf("%v %s; left behind: %v", err, output, leftovers())
	}
}

// Attack 67: nothing can be written to the home. Expected: dowel up runs, says what it does not
// keep, and serves; commands and tasks work.
func TestReadOnlyHome(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.home = "/sys" // even root cannot make a folder there
	v.env = []string{"TMPDIR=" + t.TempDir()}
	v.start()
	if text := v.output(); !strings.Contains(text, "are not kept. To keep them, set XDG_STATE_HOME") {
		t.Errorf("the warning is missing:\n%s", text)
	}
	v.succeed("hi", "call", "everything.echo", "message=hi")
	fields := v.echoFields()
	fields[len(fields)-1] = "everything__echo"
	if code, text, _ := v.exchange("POST", "/mcp", strings.Replace(echoBody, "every__", "everything__", 1), fields...); code != 200 || !strings.Contains(text, "xyzzy") {
		t.Errorf("%d %s", code, text)
	}
}

// Attacks 66 and 68: no file may grow, as on a full disk, and few descriptors are allowed.
// Expected: an error that says so or success, and the configuration is as before or complete.
func TestScarceResources(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	const before = `{"mcpServers": {"kept": {"command": "true"}}}`
	v.write(v.userFile(), before)
	limited := func(limit string, words ...string) (string, error) {
		cmd := v.command(words...)
		shell := exec.Command("sh", "-c", `trap "" XFSZ; `+limit+`; exec "$@"`, "sh")
		shell.Args = append(shell.Args, cmd.Args...)
		shell.Args[4] = dowelPath
		shell.Dir, shell.Env = cmd.Dir, cmd.Env
		timer := time.AfterFunc(polltest.Limit, func() { _ = shell.Process.Kill() })
		defer timer.Stop()
		output, err := shell.CombinedOutput()
		return string(output), err
	}
	for _, words := range [][]string{{"servers", "add", "new", "--", "true"}, {"servers", "disable", "kept"}, {"servers", "remove", "kept"}} {
		output, err := limited("ulimit -f 0", words...)
		text, readErr := os.ReadFile(v.userFile())
		if err == nil || !strings.Contains(output, "file too large") || readErr != nil || string(text) != before {
			t.Errorf("full disk: dowel %v: %v %s; the file is %q, %v", words, err, output, text, readErr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(v.home, "dowel", "*tmp*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, n := range []int{64, 24, 16, 8} {
		output, err := limited(fmt.Sprintf("ulimit -n %d", n), "call", "echo", "message=xyzzy", "--", dowelPath, "serve", "everything")
		if err == nil && !strings.Contains(output, "xyzzy") || strings.Contains(output, "panic:") || strings.Contains(output, "goroutine ") {
			t.Errorf("%d descriptors: %v\n%s", n, err, output)
		}
	}
}

// Attack 69: three dowels start at once, with a server that ignores SIGTERM. Expected: one runs,
// the others say so, and nothing is left after its end.
func TestThreeAtOnce(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	pids := filepath.Join(t.TempDir(), "pids")
	v.write(v.userFile(), fmt.Sprintf(`{"mcpServers": {"every": %s, "deaf": {"command": "sh", "args": ["-c", %q]}}}`,
		builtIn("everything"), `trap "" TERM INT; echo $$ >> `+pids+`; while :; do sleep 1; done`))
	var all sync.WaitGroup
	outputs := make([]string, 3)
	running := make(chan *exec.Cmd, 3)
	for i := range outputs {
		all.Go(func() {
			cmd := v.command("up", "--http", "0")
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			running <- cmd
			_ = cmd.Wait() // the output has the result
			outputs[i] = out.String()
		})
	}
	polltest.Until(t, "the server runs", func() bool { return exists(pids) })
	polltest.Until(t, "two dowels have ended", func() bool {
		n := 0
		for range len(running) {
			cmd := <-running
			if syscall.Kill(cmd.Process.Pid, 0) != nil || isZombie(cmd.Process.Pid) {
				n++
			}
			running <- cmd
		}
		return n == 2
	})
	for range 3 {
		_ = (<-running).Process.Signal(os.Interrupt)
	}
	all.Wait()
	refused := 0
	for _, output := range outputs {
		if strings.Contains(output, "running") && !gatewayURL.MatchString(output) {
			refused++
		}
	}
	text, _ := os.ReadFile(pids)
	lines := strings.Fields(string(text))
	if refused != 2 || len(lines) == 0 {
		t.Errorf("%d were refused, servers %v:\n%s", refused, lines, strings.Join(outputs, "\n---\n"))
	}
	for _, line := range lines {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err == nil && syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is left", pid)
		}
	}
}

func isZombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(text), ") Z ")
}
