//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

func standInProcess(as string) int {
	switch as {
	case "hang":
		return standInHang()
	case "server":
		return standInServer()
	case "server that fails":
		fmt.Fprintln(os.Stderr, "address in use")
		return 1
	}
	return 2
}

// standInHang starts a child, as the suite starts clients, writes its process id to a file and
// hangs.
func standInHang() int {
	child := exec.Command("sleep", "600")
	if child.Start() != nil {
		return 2
	}
	path := os.Getenv("CONFORMANCE_STAND_IN_PIDS")
	if os.WriteFile(path+".new", []byte(strconv.Itoa(child.Process.Pid)), 0o600) != nil || os.Rename(path+".new", path) != nil {
		return 2
	}
	_ = child.Wait()
	return 0
}

// standInServer prints its address, then more than a pipe holds, and exits with status 0 when it is
// interrupted.
func standInServer() int {
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt)
	fmt.Fprintln(os.Stderr, "http://127.0.0.1:1/mcp")
	fmt.Fprintln(os.Stderr, strings.Repeat("more than a pipe holds ", 10_000))
	select {
	case <-told:
		return 0
	case <-time.After(time.Minute):
		return 2
	}
}

func awaitPid(t *testing.T, path string) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if raw, err := os.ReadFile(path); err == nil {
			pid, err := strconv.Atoi(string(raw))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the stand-in did not start")
	return 0
}

// running reports whether a process runs. A zombie does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func TestServerFixture(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "server.log")
	t.Setenv("CONFORMANCE_STAND_IN", "server")
	f, err := startServer(t.Context(), program, output)
	if err != nil || f.url != "http://127.0.0.1:1/mcp" || f.checkAlive() != nil {
		t.Fatalf("%v, %v", f, err)
	}
	if err := f.stopServer(); err != nil {
		t.Error(err)
	}
	if said, err := os.ReadFile(output); err != nil || len(said) < 200_000 {
		t.Errorf("the log has %d bytes, %v; want everything that the server printed", len(said), err)
	}

	t.Setenv("CONFORMANCE_STAND_IN", "server that fails")
	if f, err := startServer(t.Context(), program, output); err == nil || !strings.Contains(err.Error(), "exit status 1\naddress in use") {
		t.Errorf("%v, %v", f, err)
	}
}

func TestInterrupted(t *testing.T) {
	r := standInRunner(t, "hang", "")
	pids := filepath.Join(t.TempDir(), "pids")
	t.Setenv("CONFORMANCE_STAND_IN_PIDS", pids)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.judgePlan(ctx, r.newPlan("client", "2026-07-28", ""))
		ended <- err
	}()
	child := awaitPid(t, pids)
	interrupt()
	if err := <-ended; !errors.Is(err, errInterrupted) {
		t.Error(err)
	}
	polltest.Until(t, fmt.Sprintf("the end of the suite's process %d", child), func() bool { return !running(child) })
}
