//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// A command fails if it cannot write its output.
func TestFullDevice(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("there is no device that is always full: %v", err)
	}
	defer full.Close()
	cmd := newCommand(t, withTestServer(t, "tools")...)
	cmd.Stdout = full
	var stderr strings.Builder
	cmd.Stderr = &stderr
	_ = cmd.Run() // ProcessState has the result
	if code := cmd.ProcessState.ExitCode(); code != exit.Failed || !strings.Contains(stderr.String(), "could not be written") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// A wrong command line has exit code 2, a missing resource does not. With --json both errors are
// JSON, even if the rest of the command line is invalid.
func TestWhoseFault(t *testing.T) {
	t.Parallel()
	nowhere := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(nowhere, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		words []string
		code  int
		says  string
	}{
		{[]string{"tools", "kv", "-O", "nope=1"}, exit.Usage, "no option"},
		{[]string{"serve", "kv", "nope=1"}, exit.Usage, "no option"},
		{[]string{"serve", "kv", "path=" + nowhere + "/x"}, exit.Failed, "cannot create the folder"},
		{[]string{"--json", "bogus"}, exit.Usage, `{"error":`},
		{[]string{"call", "everything.echo", "--bogus", "--json"}, exit.Usage, `{"error":`},
	} {
		if out := runDowel(t, "", test.words...); out.code != test.code || !strings.Contains(out.stderr, test.says) {
			t.Errorf("%v: exit code %d, want %d: %s", test.words, out.code, test.code, out.stderr)
		}
	}
}
