package interop

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A dowel that is killed cannot end its servers. They must end nevertheless: the shell, npx, the
// shell that npx starts, and the server.
func TestKilledDowelLeavesNothing(t *testing.T) {
	bin := filepath.Dir(npmPath(t, "mcp-server-everything"))
	node := filepath.Dir(filepath.Dir(bin))
	// Because of the second command, the shell does not replace itself by npx.
	npx := []string{"sh", "-c", "cd '" + node + "' && npx --no-install mcp-server-everything; true"}
	folder, err := filepath.Abs("oddservers")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		server    []string
		processes int // with dowel itself
	}{
		"npx":        {npx, 4},
		"immortal":   {[]string{"sh", "-c", "node '" + folder + "/immortal.mjs'; true"}, 3},
		"grandchild": {[]string{"sh", folder + "/grandchild-holds-pipe.sh"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			ctx, cancel := context.WithTimeout(context.Background(), runLimit)
			defer cancel()
			cmd := c.command(ctx, test.server, "watch")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			running := waitForProcesses(t, c.mark, test.processes)
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			if t.Failed() {
				t.Fatalf("%d processes ran, want %d", running, test.processes)
			}
			expectNoneLeft(t, c.mark)
		})
	}
}

// If a signal or the end of its terminal ends dowel, dowel ends its servers.
func TestInterruptedDowelLeavesNothing(t *testing.T) {
	server := []string{"sh", "-c", "'" + npmPath(t, "mcp-server-everything") + "'; true"}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			ctx, cancel := context.WithTimeout(context.Background(), runLimit)
			defer cancel()
			cmd := c.command(ctx, server, "watch")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitForProcesses(t, c.mark, 3)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(runLimit):
				t.Errorf("it still runs after %v", signal)
				cancel()
				<-ended
			}
			expectNoneLeft(t, c.mark)
		})
	}
}

// waitForProcesses waits until at least want marked processes run and their number has not changed
// for a second. It returns the number.
func waitForProcesses(t *testing.T, mark string, want int) int {
	t.Helper()
	running, since := 0, time.Now()
	for end := time.Now().Add(runLimit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if n := len(markedProcesses(t, mark)); n != running {
			running, since = n, time.Now()
		}
		if running >= want && time.Since(since) > time.Second {
			return running
		}
	}
	t.Errorf("%d processes run, want %d", running, want)
	return running
}
