package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/transport/stdio"
)

const (
	noTime       = -1                     // for stdio.Command: the shell is not waited for at all
	killAfter    = 500 * time.Millisecond // the time of a shell's processes to clean up
	startBound   = 10 * time.Second
	maxReminders = 100 // for each command; few enough to fit a pipe that the shell does not read
)

// shell is one process of a shell, from its start to its end. A goroutine reads its output.
type shell struct {
	handle     string
	principal  string
	token      string
	child      *stdio.Child
	group      int         // the process group of the shell itself
	idle       *time.Timer // guarded by Server.mu, as are calls and restarting
	calls      int         // in flight
	restarting bool
	ready      chan struct{} // closed with the mark of the startLine
	exited     chan struct{} // closed once everything has ended

	input sync.Mutex // held while writing to the shell, from the decision to write; taken before mu

	mu      sync.Mutex
	splits  *splitter
	unread  output
	printed int      // characters, ever
	number  int      // of the latest command
	running *command // nil: none
	// finished is a command whose end has not been in a result yet.
	finished *command
	status   int // of the latest command
	folder   string
	note     string  // a note for the next result
	ended    *ending // nil: not yet
	reason   string  // why the server ends it
	// unsettled: it was interrupted, and has done nothing since that shows that it knows.
	unsettled bool
}

// command is one that runs or has run.
type command struct {
	number     int
	began      time.Time
	earlier    int      // the status of the command before
	printed    int      // characters, by the shell, before it
	hasBegun   bool     // the shell has read all of it
	interrupt  bool     // as soon as it has begun
	children   []string // of the shell, when that was last interrupted
	reminders  int
	isSettling bool          // not a command of the client, see settleInterrupt
	before     *command      // nil, or one that had ended since a call waited for it
	status     int           // set before done is closed
	done       chan struct{} // closed when the shell has said that it has ended
}

// ending says how a shell ended.
type ending struct {
	how    string
	status *int // nil where it is unknown
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
	// The reader notices a failure.
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
		return nil, fmt.Errorf("the shell ended at its start: %w", child.ExitError())
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
	_ = sh.child.Close() // an unkillable process is not waited for
	endSession(sh.child.PID())
	sh.noteExit()
}

// feedOutput takes a part of the stream. It reports whether more has come than anybody will read.
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
	if begun != nil { // so the pipe is empty, and this does not wait
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

// noteReady notes that the shell is ready.
func (sh *shell) noteReady(m mark) {
	select {
	case <-sh.ready:
	default:
		sh.folder = m.folder
		sh.unread = output{half: sh.unread.half} // output of startup files belongs to no command
		close(sh.ready)
	}
}

// noteExit notes how the shell ended.
func (sh *shell) noteExit() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if held := sh.splits.held; len(held) > 0 {
		sh.printOutput(held)
	}
	e := &ending{how: "its exit status is unknown"}
	exit, ok := errors.AsType[*stdio.ExitError](sh.child.ExitError())
	switch {
	case sh.reason != "":
		e.how = sh.reason
	case ok && exit.State != nil:
		e.how = exit.State.String()
		e.status = new(exitStatus(exit.State))
	}
	sh.ended, sh.running = e, nil
}

// endShell ends the shell with all processes in it, and waits for them. Only the first reason is
// reported.
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

// noteRestart has the first result say that the shell is not the one before.
func (sh *shell) noteRestart() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.note != "" {
		sh.note = "; " + sh.note
	}
	sh.note = "the shell was restarted, in the folder where shells begin" + sh.note
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
