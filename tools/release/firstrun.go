package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/internal/freeport"
)

// firstRunLimit ends a measurement that hangs.
const firstRunLimit = 15 * time.Minute

// timeFirstRun measures how long a new user waits: from "go run ./cmd/dowel up", with empty module
// and build caches and an empty home, to the first answer at the gateway's address.
func timeFirstRun(ctx context.Context, root string, log io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, firstRunLimit)
	defer cancel()
	home, err := os.MkdirTemp("", "dowel-first-run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeCaches(home)) }()
	port, err := freeport.Find()
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	up := exec.Command("go", "run", "./cmd/dowel", "up", "--http", address, "--project", home)
	up.Dir = root
	up.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "XDG_CACHE_HOME=",
		"GOPATH="+filepath.Join(home, "go"), "GOMODCACHE="+filepath.Join(home, "mod"), "GOCACHE="+filepath.Join(home, "cache"))
	up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	up.Stderr = log
	start := time.Now()
	if err := up.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	err = awaitAnswer(ctx, "http://"+address+"/", ended)
	elapsed := time.Since(start)
	// The group holds go run and the program that it started.
	_ = syscall.Kill(-up.Process.Pid, syscall.SIGINT)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = syscall.Kill(-up.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	if err != nil {
		return fmt.Errorf("first run: %w", err)
	}
	fmt.Fprintf(log, "first run: the gateway answered %s after go run ./cmd/dowel up, from empty caches\n", elapsed.Round(time.Second))
	return nil
}

// awaitAnswer polls url until it gets any HTTP answer. If the program ends first, awaitAnswer
// returns an error and leaves the program's result in ended.
func awaitAnswer(ctx context.Context, url string, ended chan error) error {
	for {
		select {
		case err := <-ended:
			ended <- err
			return fmt.Errorf("dowel up ended before it answered: %v", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			return response.Body.Close()
		}
	}
}

// removeCaches removes folder. The module cache is read-only, so modes change first.
func removeCaches(folder string) error {
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(folder))
}
