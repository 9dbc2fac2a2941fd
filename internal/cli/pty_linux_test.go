package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"golang.org/x/sys/unix"
)

// pty is a process on its own pseudo-terminal.
type pty struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu    sync.Mutex
	said  strings.Builder
	reads []int // length of the output after each read
	seen  int   // length of the output that expect has passed
	more  chan struct{}
	ended chan struct{} // closed when the last process has left the terminal
}

// onTerminal starts dowel on a terminal that is 80 columns wide.
func onTerminal(t *testing.T, words ...string) *pty {
	t.Helper()
	cmd := newCommand(t, words...)
	cmd.Env = os.Environ()
	return startOnTerminal(t, cmd, 80, 24)
}

// startOnTerminal starts a command on a terminal of the given size.
func startOnTerminal(t *testing.T, cmd *exec.Cmd, columns, rows uint16) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, master: master, cmd: cmd, more: make(chan struct{}, 1), ended: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = terminal, terminal, terminal
	p.cmd.Env = append(p.cmd.Env, "TERM=xterm", "NO_COLOR=")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	go p.readOutput()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails if it has ended
		<-p.ended
		master.Close()
	})
	return p
}

// readOutput collects the output until the last process has left the terminal.
func (p *pty) readOutput() {
	defer close(p.ended)
	buffer := make([]byte, 4096)
	for {
		n, err := p.master.Read(buffer)
		p.mu.Lock()
		p.said.Write(buffer[:n])
		p.reads = append(p.reads, p.said.Len())
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// expect waits for text after the end of the last expected text.
func (p *pty) expect(text string) {
	p.t.Helper()
	if !p.expectOrEnd(text) {
		out := p.output()
		p.t.Fatalf("%q did not come; behind %q came %q", text, out[:p.seen], out[p.seen:])
	}
}

// expectOrEnd is expect for a text that may not come, and reports whether it came. It returns at
// the end of the output, and fails the test after [polltest.Limit].
func (p *pty) expectOrEnd(text string) bool {
	p.t.Helper()
	deadline := time.NewTimer(polltest.Limit)
	defer deadline.Stop()
	for over := false; ; {
		p.mu.Lock()
		said, from := p.said.String(), p.seen
		i := strings.Index(said[from:], text)
		if i >= 0 {
			p.seen += i + len(text)
		}
		p.mu.Unlock()
		if i >= 0 || over {
			return i >= 0
		}
		select {
		case <-p.more:
		case <-p.ended:
			over = true
		case <-deadline.C:
			p.t.Fatalf("after %v, %q has not come; behind %q came %q", polltest.Limit, text, said[:from], said[from:])
		}
	}
}

func (p *pty) typeText(text string) {
	p.t.Helper()
	if _, err := p.master.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// expectExit waits for the process to end and checks its exit code.
func (p *pty) expectExit(code int) {
	p.t.Helper()
	_ = p.cmd.Wait() // ProcessState has the result
	select {
	case <-p.ended: // the output is complete
	case <-time.After(polltest.Limit):
		p.t.Errorf("a process still has the terminal after %v", polltest.Limit)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Errorf("exit code %d, want %d, after %q", got, code, p.said.String())
	}
}

// output returns the output so far.
func (p *pty) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}
