package stdio

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/transport"
)

// fakeRunner is a package runner as a script. It installs until the file at $GO exists, and then
// runs a legacy server as its child. SIGTERM makes it undo the install, which it notes in $LOG with
// the signals that it got.
const fakeRunner = `#!/bin/sh
signals=
trap 'signals="$signals term"' TERM
echo > "$LOG.ready"
while [ ! -e "$GO" ]; do
  sleep 0.05 </dev/null
  case $signals in '') ;; *) sleep 1 </dev/null; echo "undone after$signals" > "$LOG"; exit 143 ;; esac
done
sh -c "$SERVER"
`

// phases collects the phases of a dial.
type phases struct {
	mu  sync.Mutex
	all []startphase.Phase
}

func (p *phases) add(phase startphase.Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, phase)
}

func (p *phases) has(match func(startphase.Phase) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.all, match)
}

func isInstalling(p startphase.Phase) bool { return p.Runner == "npx" }

// fakeNpx returns the command of a runner, and the files that it uses.
func fakeNpx(t *testing.T) (c Command, goFile, log string) {
	t.Helper()
	dir := t.TempDir()
	npx := filepath.Join(dir, "npx")
	if err := os.WriteFile(npx, []byte(fakeRunner), 0o700); err != nil {
		t.Fatal(err)
	}
	goFile, log = filepath.Join(dir, "go"), filepath.Join(dir, "log")
	env := map[string]string{"GO": goFile, "LOG": log, "STARTS": filepath.Join(dir, "starts"), "SERVER": legacy(""), "npm_config_cache": dir}
	return Command{Path: npx, Args: []string{"-y", "pkg"}, Env: env}, goFile, log
}

// Nothing is sent before the server's own process runs, and the phases say what happens.
func TestInstallPhase(t *testing.T) {
	polltest.NoLeaks(t)
	c, goFile, _ := fakeNpx(t)
	var seen phases
	ctx := startphase.WithObserver(t.Context(), func(p startphase.Phase) {
		if seen.add(p); isInstalling(p) {
			if err := os.WriteFile(goFile, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	tr, err := c.Dial(ctx, &inbound{}, transport.ClientOptions{Logger: discard, Verdicts: &transport.Verdicts{}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if !seen.has(isInstalling) || seen.all[len(seen.all)-1] != (startphase.Phase{}) {
		t.Errorf("the phases are %+v", seen.all)
	}
}

// A dial that ends during an install returns at once. The runner gets one SIGTERM, and time to
// undo.
func TestInterruptedInstall(t *testing.T) {
	polltest.NoLeaks(t)
	c, _, log := fakeNpx(t)
	ended := errors.New("the user ended it")
	ctx, cancel := context.WithCancelCause(t.Context())
	dialed := make(chan error, 1)
	go func() {
		_, err := c.Dial(ctx, &inbound{}, transport.ClientOptions{Logger: discard, Verdicts: &transport.Verdicts{}})
		dialed <- err
	}()
	polltest.Until(t, "the install has begun", func() bool { _, err := os.Stat(log + ".ready"); return err == nil })
	cancel(ended)
	err := <-dialed
	if !errors.Is(err, ended) || !strings.Contains(err.Error(), "npx is installing the server") || !process.IsRollback(err) {
		t.Errorf("the error is %v", err)
	}
	if _, undone := os.Stat(log); undone == nil {
		t.Error("the dial has waited until the install was undone")
	}
	process.AwaitEnd(err)
	if text, _ := os.ReadFile(log); string(text) != "undone after term\n" {
		t.Errorf("the runner noted %q", text)
	}
}

// A server that waits for a login says so.
func TestLoginPhase(t *testing.T) {
	polltest.NoLeaks(t)
	goFile := filepath.Join(t.TempDir(), "go")
	c := sh(`printf '[7] \nPlease authorize this client by visiting:\nhttps://login.example/authorize?x=1\n\n' >&2
while [ ! -e "` + goFile + `" ]; do sleep 0.05; done; echo "Auth code received, resolving promise" >&2
` + legacy(""))
	c.Env = map[string]string{"STARTS": "/dev/null"}
	var seen phases
	needsLogin := func(p startphase.Phase) bool { return p.LoginURL == "https://login.example/authorize?x=1" }
	ctx := startphase.WithObserver(t.Context(), func(p startphase.Phase) {
		if seen.add(p); needsLogin(p) {
			if err := os.WriteFile(goFile, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	tr, err := c.Dial(ctx, &inbound{}, transport.ClientOptions{Logger: discard, Verdicts: &transport.Verdicts{}})
	if err != nil {
		t.Fatal(err)
	}
	tr.Close()
	if !seen.has(needsLogin) {
		t.Errorf("the phases are %+v", seen.all)
	}
}
