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
	killAfter    = 500 * time.Millisecond // what a shell's processes have to clean up
	startBound   = 10 * time.Second
	maxReminders = 100 // of a command; what a shell may leave unread, few enough for a pipe
)

// shell is one process of a shell, from its start to its end. A goroutine of its own reads what comes from it.
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
	gone       chan struct{} // closed once everything has ended

	input sync.Mutex // held by whoever writes to the shell, from the decision to write on; taken before mu

	mu      sync.Mutex
	splits  *splitter
	unread  output
	printed int      // characters, ever
	number  int      // of the latest command
	running *command // nil: none
	// finished is a command whose end no result has told yet.
	finished *command
	status   int // of the latest command
	folder   string
	note     string  // what has to be told once
	ended    *ending // nil: not yet
	reason   string  // why the server ends it
	// unsettled: it was interrupted, and has done nothing since that shows that it knows.
	unsettled bool
}

// command is one that runs or has run.
type command struct {
	number    int
	began     time.Time
	earlier   int      // the status of the command before
	printed   int      // characters, by the shell, before it
	begun     bool     // the shell has read all of it
	interrupt bool     // as soon as it has begun
	children  []string // of the shell, when that was last interrupted
	reminders int
	settles   bool          // it is none, but see settle
	before    *command      // nil, or one that had ended since a call waited for it
	status    int           // set before done is closed
	done      chan struct{} // closed when the shell has said that it has ended
}

// ending says how a shell ended.
type ending struct {
	how    string
	status *int // nil where it is unknown
}

// start starts a shell and returns when it is ready for a command.
func start(ctx context.Context, p program, half int) (*shell, error) {
	child, err := p.command.Start(ctx)
	if err != nil {
		return nil, err
	}
	token := newToken()
	sh := &shell{
		token: token, note: p.note, child: child, splits: newSplitter(token), unread: output{half: half},
		ready: make(chan struct{}), gone: make(chan struct{}),
	}
	go sh.read()
	// What fails here is seen by the reader.
	_, _ = child.Write([]byte(startLine(p.bash) + endLine(token, 0)))
	bound := time.NewTimer(startBound)
	defer bound.Stop()
	select {
	case <-sh.ready:
		if sh.group = child.PID(); p.sandboxed {
			sh.group = leaderWithin(child.PID())
		}
		return sh, nil
	case <-sh.gone:
		return nil, fmt.Errorf("the shell ended at its start: %w", child.ExitError())
	case <-ctx.Done():
		err = ctx.Err()
	case <-bound.C:
		err = fmt.Errorf("the shell was not ready within %v; its stderr: %s", startBound, strings.TrimSpace(child.StderrTail(5)))
	}
	sh.end("it did not start")
	return nil, err
}

// read takes what comes from the shell until all of it has ended.
func (sh *shell) read() {
	defer close(sh.gone)
	buf := make([]byte, 64<<10)
	for {
		n, err := sh.child.Read(buf)
		flood := sh.feed(buf[:n])
		if err != nil {
			break
		}
		if flood {
			time.Sleep(time.Millisecond) // whoever prints without end is slowed down, or would keep two processors busy
		}
	}
	_ = sh.child.Close() // what cannot be killed is not waited for
	endSession(sh.child.PID())
	sh.finish()
}

// feed takes a part of the stream. It reports whether more has come than anybody will read.
func (sh *shell) feed(p []byte) (flood bool) {
	var begun *command
	interrupt := false
	sh.mu.Lock()
	sh.splits.split(p, sh.print, func(m mark) {
		if sh.mark(m); m.begin && sh.running != nil && sh.running.number == m.number {
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
		sh.signal(begun)
	}
	return flood
}

func (sh *shell) print(p []byte) {
	before := sh.unread.total
	sh.unread.add(p)
	sh.printed += sh.unread.total - before
}

// mark notes where a command begins or has ended. Marks of other commands are those of endLines that were sent once too
// often.
func (sh *shell) mark(m mark) {
	if m.number == 0 {
		sh.begin(m)
		return
	}
	c := sh.running
	if c == nil || c.number != m.number {
		return
	}
	if m.begin {
		c.begun = true
		return
	}
	c.status, sh.folder, sh.running = m.status, m.folder, nil
	if !c.settles {
		sh.status, sh.finished = c.status, c
	}
	close(c.done)
}

// begin notes that the shell is ready.
func (sh *shell) begin(m mark) {
	select {
	case <-sh.ready:
	default:
		sh.folder = m.folder
		sh.unread = output{half: sh.unread.half} // what startup files print is no command's
		close(sh.ready)
	}
}

// finish notes how the shell ended.
func (sh *shell) finish() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if held := sh.splits.held; len(held) > 0 {
		sh.print(held)
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

// end ends the shell with everything that runs in it, and waits for that. The first reason is the one that is told.
func (sh *shell) end(reason string) {
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
	<-sh.gone
}

// restarted has the first result say that the shell is not the one before.
func (sh *shell) restarted() {
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
	case <-sh.gone:
		return true
	default:
		return false
	}
}
