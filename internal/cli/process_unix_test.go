//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/term"
)

// A signal ends the call, the server and dowel, in this order.
func TestSignals(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			trace := filepath.Join(t.TempDir(), "trace")
			cmd := newCommand(t, withTestServer(t, "call", "wait", "-e", traceVariable+"="+trace)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, trace, "waiting")
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // ProcessState has the result
			if got := cmd.ProcessState.ExitCode(); got != 128+int(signal) {
				t.Errorf("exit code %d, stderr: %s", got, stderr.String())
			}
			waitFor(t, trace, "cancelled")
		})
	}
}

// The second Ctrl-C ends dowel without waiting for a server that ignores the first. All processes
// of the server end too.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	script := fmt.Sprintf(`trap "" TERM; echo $$ > '%s.part'; mv '%s.part' '%s'; while :; do sleep 1; done`, pidFile, pidFile, pidFile)
	cmd := newCommand(t, "tools", "--", "sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(waitFor(t, pidFile, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // the system may merge two signals at once
	}
	_ = cmd.Wait() // ProcessState has the result
	if code := cmd.ProcessState.ExitCode(); code != exit.Interrupted {
		t.Errorf("exit code %d", code)
	}
	polltest.Until(t, fmt.Sprintf("the end of the server, process %d", pid), func() bool { return syscall.Kill(pid, 0) != nil })
}

// If the reader of the output closes it, dowel ends silently and without failure.
func TestBrokenPipe(t *testing.T) {
	for _, test := range []struct {
		name  string
		words []string
	}{
		{"call", []string{"call", "lines"}},
		{"json", []string{"call", "lines", "--json"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cmd := newCommand(t, withTestServer(t, test.words...)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := stdout.Read(make([]byte, 10)); err != nil {
				t.Error(err)
			}
			stdout.Close()
			if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
				t.Errorf("%v, stderr: %s", err, stderr.String())
			}
		})
	}
}

func TestWatch(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			cmd := newCommand(t, withTestServer(t, "watch", "--json", "--revision", revision, "test://ticking")...)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil || !strings.Contains(line, `"method":"notifications/resources/updated"`) || !strings.Contains(line, "test://ticking") {
				t.Errorf("got %q, %v", line, err)
			}
			stdout.Close() // the next change cannot be written
			if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
				t.Errorf("%v, stderr: %s", err, stderr.String())
			}
		})
	}
}

func TestWatchCounts(t *testing.T) {
	t.Parallel()
	out := runDowel(t, "", withTestServer(t, "watch", "-n", "2", "--uri", "test://ticking")...)
	if out.code != exit.OK || strings.Count(out.stdout, " updated test://ticking\n") != 2 {
		t.Errorf("exit code %d, stdout: %s, stderr: %s", out.code, out.stdout, out.stderr)
	}
}

// A built-in server runs as an ordinary child process.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	cmd := newCommand(t, "call", "everything.echo", "message=hello", "--wire")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil || !strings.Contains(string(stdout), "hello") || !strings.Contains(stderr.String(), "server/discover") {
		t.Errorf("%v, stdout: %s, stderr: %s", err, stdout, stderr.String())
	}
}

func waitFor(t *testing.T, file, text string) string {
	t.Helper()
	var content []byte
	polltest.Until(t, fmt.Sprintf("%q in %s", text, file), func() (found bool) {
		var err error
		if content, err = os.ReadFile(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Contains(string(content), text)
	})
	return string(content)
}

// The examples of the help work. Examples that need more than dowel are skipped.
func TestExamples(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink(testBinary(t), filepath.Join(folder, "dowel")); err != nil {
		t.Fatal(err)
	}
	f := &factory.Factory{Stdout: term.NewScreen(&bytes.Buffer{}, nil), Stderr: term.NewScreen(&bytes.Buffer{}, nil)}
	ran := 0
	for _, c := range append(newRoot(f).Commands(), newRoot(f)) {
		for line := range strings.Lines(c.Example) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "dowel" || strings.Contains(line, "npx") || strings.Contains(line, "jq") ||
				slices.Contains([]string{"watch", "serve", "up", "servers", "status", "run", "chat", "models", "wire", "login", "logout", "console", "search", "add", "task"}, words[1]) || strings.Contains(line, "github") || strings.Contains(line, "films") {
				continue // needs something such as a model, a registry or a task, changes the configuration, or never ends
			}
			ran++
			cmd := newCommand(t)
			cmd.Path, cmd.Args, cmd.Dir = "/bin/sh", []string{"sh", "-c", line}, folder
			cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 && !strings.Contains(line, "--json") {
				t.Errorf("%s: %v\n%s", strings.TrimSpace(line), err, out)
			}
		}
	}
	if ran < 12 {
		t.Errorf("only %d examples were run", ran)
	}
}
