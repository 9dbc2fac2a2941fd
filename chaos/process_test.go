//go:build linux

package chaos

import (
	"bufio"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// A process is a child process that is killed, stopped and started again.
type process struct {
	t       *testing.T
	name    string
	command func() *exec.Cmd
	ready   *regexp.Regexp // of the line that says that it is ready

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{} // closed at the end of cmd
	printed strings.Builder
}

// start starts the process and waits until it is ready. If it ends before, as a replica does
// without a cluster, it is started again.
func (p *process) start() {
	p.t.Helper()
	limit := time.After(polltest.Limit)
	for {
		found, ended := p.startOnce()
		select {
		case <-found:
			return
		case <-limit:
			p.t.Errorf("%s is not ready:\n%s", p.name, p.output())
			return
		case <-ended:
		}
	}
}

func (p *process) startOnce() (found chan string, ended chan struct{}) {
	p.t.Helper()
	cmd := p.command()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	found, ended = make(chan string, 1), make(chan struct{})
	p.mu.Lock()
	p.cmd, p.ended = cmd, ended
	p.mu.Unlock()
	go func() { _ = cmd.Wait(); in.Close(); close(ended) }()
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.printed.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if match := p.ready.FindString(lines.Text()); match != "" && len(found) == 0 {
				found <- match
			}
		}
		_, _ = io.Copy(io.Discard, out) // a line was too long
	}()
	return found, ended
}

// output returns the last lines that the process printed.
func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.printed.String()
	return text[max(0, len(text)-4000):]
}

// signal sends a signal to the process, which must not have ended by itself.
func (p *process) signal(s syscall.Signal) (ended chan struct{}) {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	select {
	case <-ended:
		p.t.Errorf("%s has ended by itself:\n%s", p.name, p.output())
	default:
		if err := cmd.Process.Signal(s); err != nil {
			p.t.Errorf("%s: %v", p.name, err)
		}
	}
	return ended
}

// kill ends the process as a crash does.
func (p *process) kill() { <-p.signal(syscall.SIGKILL) }
