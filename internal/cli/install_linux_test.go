package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// installing is a package runner that installs forever. It notes its start and, a second after
// SIGTERM, how many it got.
const installing = `#!/bin/sh
terms=0
trap 'terms=$((terms + 1))' TERM
trap '' PIPE # of its stderr, to which sh writes that SIGTERM has ended a sleep
echo "$$ begun" > "$TRACE"
while [ $terms = 0 ]; do sleep 0.05 </dev/null; done
sleep 1 </dev/null; sleep 0.5 </dev/null
echo "undone after $terms" >> "$TRACE"
exit 143
`

// writeRunner writes an executable npx with the given script, and returns its path and trace.
func writeRunner(t *testing.T, script string) (npx, trace string) {
	t.Helper()
	dir := t.TempDir()
	npx, trace = filepath.Join(dir, "npx"), filepath.Join(dir, "trace")
	if err := os.WriteFile(npx, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return npx, trace
}

// The limit of the command line ends the wait for an install, with the reason, and npx undoes it.
func TestInstallWithinConnectTimeout(t *testing.T) {
	t.Parallel()
	npx, trace := writeRunner(t, installing)
	out := runDowel(t, "", "tools", "--connect-timeout", "5s", "-e", "TRACE="+trace, "--", npx, "-y", "pkg")
	if out.code != exit.Timeout || !strings.Contains(out.stderr, "no connection within 5s: npx is installing the server") {
		t.Errorf("exit code %d, stderr: %s", out.code, out.stderr)
	}
	waitFor(t, trace, "undone after 1\n")
}

// Neither Ctrl-C nor the death of dowel kills npx in the middle of an install, and npx gets one
// SIGTERM only: npm takes a second one as the order to exit without cleanup.
func TestInstallOutlivesDowel(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			npx, trace := writeRunner(t, installing)
			cmd := newCommand(t, "tools", "-e", "TRACE="+trace, "--", npx, "-y", "pkg")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, trace, "begun")
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the trace has the result
			if waitFor(t, trace, "undone after 1\n"); signal == syscall.SIGINT && cmd.ProcessState.ExitCode() != exit.Interrupted {
				t.Errorf("exit code %d, stderr: %s", cmd.ProcessState.ExitCode(), stderr.String())
			}
		})
	}
}
