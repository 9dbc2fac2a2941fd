package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// buildFixtures builds the server and the client that the suite tests.
func buildFixtures(ctx context.Context, folder, into string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", into+string(filepath.Separator), "./client", "./server")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the fixtures cannot be built: %w\n%s", err, out)
	}
	return nil
}

// serverFixture is the process of the server that the suite tests.
type serverFixture struct {
	url    string
	stop   context.CancelFunc
	ended  chan struct{}
	err    error  // set before ended is closed
	output string // path of the file with everything that it printed
}

// startServer starts the server fixture and waits until it prints its address. Its output goes to
// the file output.
func startServer(ctx context.Context, program, output string) (*serverFixture, error) {
	file, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(ctx)
	f := &serverFixture{stop: stop, ended: make(chan struct{}), output: output}
	first := &firstLine{also: file, found: make(chan string, 1)}
	cmd := exec.CommandContext(life, program, "-http", "127.0.0.1:0")
	cmd.Stderr = first
	ownGroup(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	go func() {
		defer close(f.ended)
		defer file.Close()
		f.err = cmd.Run()
	}()
	select {
	case f.url = <-first.found:
	case <-f.ended:
	}
	if strings.HasPrefix(f.url, "http://") {
		return f, nil
	}
	select { // the first line was an error, and the server should end by itself
	case <-f.ended:
	case <-time.After(5 * time.Second):
	}
	stop()
	<-f.ended
	return nil, f.exitError()
}

// checkAlive returns an error if the server has ended.
func (f *serverFixture) checkAlive() error {
	select {
	case <-f.ended:
		return f.exitError()
	default:
		return nil
	}
}

// stopServer ends the server as Ctrl-C does. It returns an error if the server had ended before, or
// if its exit status is not 0.
func (f *serverFixture) stopServer() error {
	f.stop()
	<-f.ended
	if errors.Is(f.err, context.Canceled) { // the server was interrupted, and its exit status is 0
		return nil
	}
	return f.exitError()
}

func (f *serverFixture) exitError() error {
	said, _ := os.ReadFile(f.output)
	return fmt.Errorf("the server fixture ended: %v\n%s", f.err, said)
}

// firstLine is a writer that forwards everything and reports the first line.
type firstLine struct {
	also       io.Writer
	text       []byte
	isReported bool
	found      chan string // has capacity for one line
}

func (w *firstLine) Write(p []byte) (int, error) {
	if !w.isReported {
		w.text = append(w.text, p...)
		if line, _, whole := bytes.Cut(w.text, []byte("\n")); whole {
			w.found <- strings.TrimSpace(string(line))
			w.isReported = true
		}
	}
	return w.also.Write(p)
}
