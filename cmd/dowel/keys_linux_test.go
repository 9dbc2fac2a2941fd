package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// asDowel makes the test binary run as the program.
const asDowel = "DOWEL_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asDowel) != "" {
		main()
	}
	os.Exit(m.Run())
}

// readEnviron returns the initial environment of a process, as other processes of the user see it.
func readEnviron(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hasKept reports whether a server has written the environment of its parent to a file, which
// follows its own.
func hasKept(folder, name string) bool {
	text, err := os.ReadFile(filepath.Join(folder, name))
	return err == nil && bytes.Count(text, []byte("KEPT=kept")) == 2
}

// No process of dowel has a model key in /proc/PID/environ, whichever command it runs, and no
// server inherits one, unless its entry names it.
func TestKeysAreHidden(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	list := func(name, more string) string {
		return fmt.Sprintf(`%q: {"command": "sh", "args": ["-c", "cat /proc/self/environ /proc/$PPID/environ > %s; exec sleep 1000"]%s}`, name, filepath.Join(home, name), more)
	}
	config := `{"mcpServers": {` + list("plain", "") + `, ` + list("given", `, "env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}"}`) + `}}`
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // a model that does not answer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	insert := strings.NewReplacer("CONFIG", filepath.Join(home, "config.json"), "MODEL", "m --base-url http://"+silent.Addr().String()+"/v1")
	for _, words := range []string{"up --http 0 --config CONFIG", "up --stdio --config CONFIG", "run task --model MODEL --config CONFIG",
		"chat --model MODEL --config CONFIG", "serve shell"} {
		t.Run(words, func(t *testing.T) {
			own := t.TempDir()
			cmd := exec.CommandContext(t.Context(), self, strings.Fields(insert.Replace(words))...)
			cmd.Env = append(os.Environ(), asDowel+"=1", "OPENAI_API_KEY=swordfish-1", "ANTHROPIC_API_KEY=swordfish-2", "KEPT=kept",
				"HOME="+own, "XDG_CONFIG_HOME="+own, "XDG_STATE_HOME="+own, "XDG_RUNTIME_DIR="+own, "XDG_CACHE_HOME="+own)
			cmd.Dir = own
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // killed
			}()
			polltest.Until(t, "the keys are hidden", func() bool {
				text := readEnviron(t, cmd.Process.Pid)
				return strings.Contains(text, "KEPT=kept") && !strings.Contains(text, "swordfish")
			})
			if strings.HasPrefix(words, "up --http") {
				polltest.Until(t, "the servers have started", func() bool { return hasKept(home, "plain") && hasKept(home, "given") })
			}
		})
	}
	t.Run("servers", func(t *testing.T) {
		for name, want := range map[string]int{"plain": 0, "given": 1} {
			text, err := os.ReadFile(filepath.Join(home, name))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(text, []byte("swordfish")); n != want {
				t.Errorf("%s finds %d keys, want %d", name, n, want)
			}
		}
	})
}
