package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/process"
)

const (
	noGrace      = -1                     // Grace of process.Command: Close does not wait for the shell to end by itself
	killAfter    = 500 * time.Millisecond // from the signal to end until the processes are killed
	startBound   = 10 * time.Second
	maxReminders = 100 // again lines for one command; they fit into the pipe even if the shell reads nothing
)

// shell is one process of a shell, from its start to its end. The goroutine readOutput reads its
// output.
type shell struct {
	handle     string
	principal  string
	token      string
	child      *process.Child
	group      int         // the process group of the shell itself
	idle       *time.Timer // ends the unused shell; guarded by Server.mu, as are calls and restarting
	calls      int         // the number of calls that use the shell
	restarting bool
	ready      chan struct{} // closed when the shell has run the start line
	exited     chan struct{} // closed when all processes of the shell have ended

	// input is held from the decision to write to the shell until the write is done. It is locked
	// before mu.
	input sync.Mutex

	mu        sync.Mutex
	splits    *splitter
	unread    output   // output that no result has returned yet
	printed   int      // the number of characters that the shell has printed since its start
	number    int      // of the latest command
	running   *command // nil if no command runs
	finished  *command // a command that has ended, but no result has reported it yet; nil if none
	status    int      // exit status of the latest command
	folder    string
	note      string  // for the next result
	ended     *ending // nil until the shell has ended
	reason    string  // why the server ends the shell; empty if it does not
	unsettled bool    // the shell was interrupted; see settleInterrupt
}

// command is a command that runs or has run.
type command struct {
	number     int
	began      time.Time
	earlier    int           // exit status of the previous command, for $?
	printed    int           // value of shell.printed when the command began
	hasBegun   bool          // the shell has read all of the command
	interrupt  bool          // interrupt the command when it has begun; stays true
	children   []string      // children of the shell at its last interrupt, as groupChildren lists them
	reminders  int           // the number of again lines sent
	isSettling bool          // not a command of the client; see settleInterrupt
	before     *command      // a previous command that ended unreported; nil if none
	status     int           // set before done is closed
	done       chan struct{} // closed when the shell has reported the end of the command
}

// ending is the end of a shell.
type ending struct {
	how    string
	status *int // nil if unknown
}

// startShell starts a shell and returns when it is ready for a command.
func startShell(ctx context.Context, p program, half int) (*shell, error) {
	child, err := p.command.Start(ctx)
	if err != nil {
		return nil, err
	}
	token := newToken()
	sh := &shell{
		token: token, note: p.note, child: child, splits: newSplitter(token), unread: output{half: half},
		ready: make(chan struct{}), exited: make(chan struct{}),
	}
	go sh.readOutput()
	// If the write fails, readOutput notices that the shell has ended.
	_, _ = child.Write([]byte(startLine(p.bash) + endLine(token, 0)))
	bound := time.NewTimer(startBound)
	defer bound.Stop()
	select {
	case <-sh.ready:
		if sh.group = child.PID(); p.sandboxed {
			sh.group = leaderWithin(child.PID())
		}
		return sh, nil
	case <-sh.exited:
		return nil, fmt.Errorf("the shell ended while it started: %w", child.ExitError())
	case <-ctx.Done():
		err = ctx.Err()
	case <-bound.C:
		err = fmt.Errorf("the shell was not ready within %v; its stderr: %s", startBound, strings.TrimSpace(child.StderrTail(5)))
	}
	sh.endShell("it did not start")
	return nil, err
}

// readOutput reads the shell's output until all of it has ended.
func (sh *shell) readOutput() {
	defer close(sh.exited)
	buf := make([]byte, 64<<10)
	for {
		n, err := sh.child.Read(buf)
		flood := sh.feedOutput(buf[:n])
		if err != nil {
			break
		}
		if flood {
			time.Sleep(time.Millisecond) // slows down endless output, which would keep two processors busy
		}
	}
	_ = sh.child.Close() // fails if a process cannot be killed; nothing else can be done about it
	endSession(sh.child.PID())
	sh.noteExit()
}

// feedOutput processes a part of the stream. flood is true if the shell prints much more than a
// result can hold.
func (sh *shell) feedOutput(p []byte) (flood bool) {
	var begun *command
	interrupt := false
	sh.mu.Lock()
	sh.splits.splitMarks(p, sh.printOutput, func(m mark) {
		if sh.noteMark(m); m.begin && sh.running != nil && sh.running.number == m.number {
			begun, interrupt = sh.running, sh.running.interrupt
		}
	})
	flood = sh.unread.total > 1<<20 && len(p) > 32<<10
	sh.mu.Unlock()
	if begun != nil { // the shell has read everything before, so the pipe has room and Write does not block
		sh.input.Lock()
		_, _ = sh.child.Write([]byte(endLine(sh.token, begun.number)))
		sh.input.Unlock()
	}
	if interrupt {
		sh.signalCommand(begun)
	}
	return flood
}

func (sh *shell) printOutput(p []byte) {
	before := sh.unread.total
	sh.unread.addBytes(p)
	sh.printed += sh.unread.total - before
}

// noteMark records that a command begins or has ended. Marks of other commands come from repeated
// endLines.
func (sh *shell) noteMark(m mark) {
	if m.number == 0 {
		sh.noteReady(m)
		return
	}
	c := sh.running
	if c == nil || c.number != m.number {
		return
	}
	if m.begin {
		c.hasBegun = true
		return
	}
	c.status, sh.folder, sh.running = m.status, m.folder, nil
	if !c.isSettling {
		sh.status, sh.finished = c.status, c
	}
	close(c.done)
}

// noteReady records that the shell is ready.
func (sh *shell) noteReady(m mark) {
	select {
	case <-sh.ready:
	default:
		sh.folder = m.folder
		sh.unread = output{half: sh.unread.half} // output of startup files belongs to no command
		close(sh.ready)
	}
}

// noteExit records how the shell ended.
func (sh *shell) noteExit() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if held := sh.splits.held; len(held) > 0 {
		sh.printOutput(held)
	}
	e := &ending{how: "its exit status is unknown"}
	exit, ok := errors.AsType[*process.ExitError](sh.child.ExitError())
	switch {
	case sh.reason != "":
		e.how = sh.reason
	case ok && exit.State != nil:
		e.how = exit.State.String()
		e.status = new(exitStatus(exit.State))
	}
	sh.ended, sh.running = e, nil
}

// endShell ends the shell and all of its processes, and waits for them. If it is called more than
// once, the first reason is reported.
func (sh *shell) endShell(reason string) {
	sh.mu.Lock()
	select {
	case <-sh.child.Exited():
	default:
		if sh.reason == "" {
			sh.reason = reason
		}
	}
	sh.mu.Unlock()
	_ = sh.child.Close()
	<-sh.exited
}

// noteRestart adds a note to the first result: the shell is a new one under an old handle.
func (sh *shell) noteRestart() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.note != "" {
		sh.note = "; " + sh.note
	}
	sh.note = "the shell was restarted in its initial folder" + sh.note
}

// isGone reports whether the shell has ended.
func (sh *shell) isGone() bool {
	select {
	case <-sh.exited:
		return true
	default:
		return false
	}
}
