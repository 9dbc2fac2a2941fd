package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/internal/stacktrace"
)

const (
	defaultGrace = 2 * time.Second
	killBound    = 5 * time.Second        // limit for the kernel to carry out a kill
	drainTime    = 100 * time.Millisecond // limit for reading the pipes to their end after the process has exited
	reapTime     = time.Second            // limit from the end of a process's pipes to the knowledge of its exit
	tailLines    = 10
	tailBytes    = 2 << 10
)

// Child is a running child process. Read reads its stdout and Write writes to its stdin. All
// methods may be called concurrently.
//
// The process and everything that it starts form one tree, which ends as a whole: when Close is
// called, when the process itself exits, or when this process dies, even by SIGKILL. On POSIX,
// the tree is a session with a process group of its own. Ctrl-C in the terminal does not reach
// it, and it has no terminal to ask for a password on. On Windows it is a Job Object; that code
// has been compiled but never run.
//
// On Linux, the tree includes descendants that have created a session or process group of their own
// (setsid, a daemon), unless Command.KeepDetached is set: they are found by a random mark in their
// environment. A process escapes if it clears or overwrites its environment or runs as another user
// and has left the group. On other systems, each process that leaves the group is kept. It cannot
// block Read or Close by keeping the pipes open.
//
// Call Close in any case, even after the process has exited: it frees the pipes.
type Child struct {
	name             string
	grace, killAfter time.Duration

	tree    *tree
	install installState
	env     []string // of the process
	stdin   *os.File
	stdout  *childOutput
	stderr  *stderrLog

	reading sync.Mutex // held while stdout is read

	closeOnce sync.Once
	closing   chan struct{} // closed by the first Close
	exited    chan struct{} // closed once exit is set
	exit      *ExitError
	ended     chan struct{} // closed when the tree and all goroutines have ended
}

// startProgram starts p with the streams and time limits of c.
func (c Command) startProgram(p resolvedProgram) (*Child, error) {
	var pipes childPipes
	if err := pipes.openAll(); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: p.file, Args: p.argv, Env: p.env, Dir: p.dir,
		Stdin: pipes.stdinR, Stdout: pipes.stdoutW, Stderr: pipes.stderrW,
	}
	_, line := findRunner(append([]string{c.Path}, c.Args...))
	t, err := startTree(cmd, p.mark, line != nil)
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return nil, startError(p, err)
	}
	child := &Child{
		name:  c.Path,
		grace: waitOrDefault(c.Grace), killAfter: waitOrDefault(c.KillAfter),
		tree:    t,
		install: installState{line: line},
		env:     p.env,
		stdin:   pipes.stdinW,
		stdout:  &childOutput{File: pipes.stdoutR},
		stderr:  newStderrLog(defaultRing, c.Stderr),
		closing: make(chan struct{}),
		exited:  make(chan struct{}),
		ended:   make(chan struct{}),
	}
	t.stdinLink = pipeLink(pipes.stdinW)
	child.install.isPatient.Store(line != nil) // as the watcher knows it
	go child.runLifecycle(&childOutput{File: pipes.stderrR})
	return child, nil
}

func waitOrDefault(d time.Duration) time.Duration {
	if d == 0 {
		return defaultGrace
	}
	return max(d, 0)
}

// Read reads the stdout of the process. Output from before the exit can be read after it. Read
// then returns io.EOF, at the latest when KillAfter has passed and the tree is dead. A process
// may close its stdout and keep running: call Close after io.EOF, and then ExitError for the exit
// status.
//
// Close interrupts Read, which returns [os.ErrClosed] from then on.
func (c *Child) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if isClosed(c.closing) {
		return 0, os.ErrClosed
	}
	n, err := c.stdout.Read(p)
	if isClosed(c.closing) {
		return 0, os.ErrClosed
	}
	return n, err
}

// Write writes to the stdin of the process. It blocks while the pipe is full, until Close. After
// the process has exited, the error wraps its [*ExitError]. After Close or CloseWrite, the error
// is [os.ErrClosed].
func (c *Child) Write(p []byte) (int, error) {
	n, err := c.stdin.Write(p)
	if err == nil {
		return n, nil
	}
	if isClosed(c.closing) {
		return n, os.ErrClosed
	}
	if !errors.Is(err, os.ErrClosed) {
		c.awaitExit()
	}
	switch {
	case isClosed(c.exited):
		return n, fmt.Errorf("write to its stdin: %w", c.exit)
	case isClosed(c.closing):
		return n, os.ErrClosed
	}
	if errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("the process runs, but has closed its stdin: %w", err)
	}
	return n, err
}

// awaitExit waits until exit is set, after a pipe of the process has broken, which happens shortly
// before its exit. It returns earlier at Close, or if the process goes on for reapTime.
func (c *Child) awaitExit() {
	limit := time.NewTimer(reapTime)
	defer limit.Stop()
	select {
	case <-c.tree.exited:
	case <-c.closing:
	case <-limit.C:
		return
	}
	select {
	case <-c.exited: // soon after the end of the tree's first process
	case <-c.closing:
	}
}

// CloseWrite closes the stdin of the process, which asks it to finish and exit. Its stdout stays
// readable.
func (c *Child) CloseWrite() error {
	if err := c.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Close ends the process tree. It closes stdin, waits Grace for the exit, sends SIGTERM to the
// process group, waits KillAfter and sends SIGKILL. Then it ends the processes that have left the
// group, with SIGTERM and after KillAfter with SIGKILL. Meanwhile it discards stdout, so that a
// full pipe cannot keep the process from exiting.
//
// A package runner that is installing is not given Grace, because it does not read stdin, and has
// at least rollbackTime between SIGTERM and SIGKILL, because an install that is killed can break
// the runner's cache. Close then removes a folder that npx has left incomplete.
//
// Close returns when the tree and the goroutines of this package have ended, after at most Grace +
// 2 KillAfter + about 16 s. The 16 s are needed only if the kernel does not carry out the kill or a
// Stderr writer blocks. An install that npx has left incomplete takes 5 s more if there is a lock,
// which another npm may hold. Further and concurrent calls wait for the same end and return the
// same error. The error is nil unless the process could not be killed; ExitError returns the exit
// status.
func (c *Child) Close() error {
	c.closeOnce.Do(func() { close(c.closing) })
	<-c.ended
	c.stdout.Close()
	if !isClosed(c.tree.exited) {
		return fmt.Errorf("close %s: process %d did not die within %v of being killed", c.name, c.tree.pid, killBound)
	}
	return nil
}

// Wait waits until the process has exited. It returns nil if the exit status is 0 or the exit
// followed Close, otherwise the [*ExitError]. Descendants may still be running.
func (c *Child) Wait() error {
	<-c.exited
	if c.exit.Closed || c.exit.State != nil && c.exit.State.Success() {
		return nil
	}
	return c.exit
}

// Exited returns a channel that is closed when the process has exited.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// ExitError returns nil while the process runs, and its [*ExitError] afterwards, even if the exit
// status is 0.
func (c *Child) ExitError() error {
	if !isClosed(c.exited) {
		return nil
	}
	return c.exit
}

// PID returns the process id. On POSIX it is also the id of the process group and session.
func (c *Child) PID() int { return c.tree.pid }

// StderrTail returns the last lines of stderr as valid UTF-8, without the frames of stack traces,
// control characters and terminal escape sequences.
func (c *Child) StderrTail(lines int) string {
	return lastLines(stacktrace.Condense(StripControls(string(c.stderr.snapshot()))), lines)
}

// runLifecycle runs from the start of the child to its end. Only this goroutine changes its
// state.
func (c *Child) runLifecycle(stderr *childOutput) {
	var tasks sync.WaitGroup
	quiet := make(chan struct{}) // closed at the end of stderr
	tasks.Go(func() {
		_, _ = io.Copy(c.stderr, stderr)
		close(quiet)
	})

	closed, installs, killAfter := false, false, c.killAfter
	select {
	case <-c.tree.exited:
	case <-c.closing:
		closed = !isClosed(c.tree.exited)
		if _, installs = c.Installing(); installs {
			killAfter = max(killAfter, rollbackTime)
		}
		c.stdin.Close()
		c.stdout.interruptRead()
		tasks.Go(c.discardStdout)
		if !installs {
			waitWithin(c.tree.exited, c.grace)
		}
	}
	if isClosed(c.tree.exited) {
		c.publishExit(stderr.File, quiet, closed) // do not wait for descendants: calls in flight need the error now
	}
	c.tree.endAll(killAfter)
	if installs {
		c.mendCache()
	}
	if !isClosed(c.exited) {
		waitWithin(c.tree.exited, killBound)
		c.publishExit(stderr.File, quiet, closed)
	}

	c.stdin.Close()
	c.stdout.expireSoon()
	stderr.expireSoon()
	tasks.Wait()
	stderr.Close()
	c.stderr.awaitCopy()
	close(c.ended)
}

// publishExit sets the exit and closes exited. It first waits until stderr has been read to its
// end, which closes quiet: up to drainTime if another process may hold the pipe, else up to
// killBound.
func (c *Child) publishExit(stderr *os.File, quiet <-chan struct{}, closed bool) {
	if !waitWithin(quiet, drainTime) && !hasWriter(stderr) {
		waitWithin(quiet, killBound)
	}
	exit := &ExitError{Command: c.name, Closed: closed}
	if isClosed(c.tree.exited) {
		exit.State = c.tree.state
	}
	condensed, crash := stacktrace.Read(StripControls(string(c.stderr.snapshot())))
	exit.crash, exit.Stderr = crash, lastLines(condensed, tailLines)
	if cut := len(exit.Stderr) - tailBytes; cut > 0 {
		exit.Stderr = "…" + StripControls(exit.Stderr[cut:])
	}
	c.exit = exit
	close(c.exited)
}

// discardStdout reads stdout to its end after Close. After a few megabytes it reads slowly, because
// a process that prints without end would keep a processor busy until it is killed.
func (c *Child) discardStdout() {
	const (
		full  = 8 << 20 // bytes that are read at full speed
		pause = 20 * time.Millisecond
	)
	c.reading.Lock() // wait until the interrupted Read has returned
	defer c.reading.Unlock()
	c.stdout.allowRead()
	buf := make([]byte, 64<<10)
	for total := 0; ; {
		n, err := c.stdout.Read(buf)
		if err != nil {
			return
		}
		if total += n; total > full {
			waitWithin(c.tree.exited, pause)
		}
	}
}

// childOutput is the reading end of a pipe from the child. After expireSoon, Read returns the
// bytes that are in the pipe and then io.EOF, even if a process outside the tree keeps the
// writing end open.
type childOutput struct {
	*os.File
	mu      sync.Mutex
	expired bool
}

func (o *childOutput) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return readAvailable(o.File, p)
	}
	return n, err
}

// WriteTo hides the method of os.File, which would bypass Read.
func (o *childOutput) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{o})
}

func (o *childOutput) interruptRead() { o.setDeadline(time.Unix(1, 0)) }
func (o *childOutput) allowRead()     { o.setDeadline(time.Time{}) }

func (o *childOutput) setDeadline(t time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.expired {
		_ = o.SetReadDeadline(t)
	}
}

func (o *childOutput) expireSoon() {
	o.setDeadline(time.Now().Add(drainTime))
	o.mu.Lock()
	o.expired = true
	o.mu.Unlock()
}

// childPipes holds both ends of the three standard streams.
type childPipes struct {
	stdinR, stdinW, stdoutR, stdoutW, stderrR, stderrW *os.File
}

func (p *childPipes) openAll() (err error) {
	if p.stdinR, p.stdinW, err = os.Pipe(); err == nil {
		if p.stdoutR, p.stdoutW, err = os.Pipe(); err == nil {
			p.stderrR, p.stderrW, err = os.Pipe()
		}
	}
	if err != nil {
		p.closeTheirs()
		p.closeOurs()
	}
	return err
}

// Close on a nil *os.File returns an error and does nothing else.
func (p *childPipes) closeTheirs() { p.stdinR.Close(); p.stdoutW.Close(); p.stderrW.Close() }
func (p *childPipes) closeOurs()   { p.stdinW.Close(); p.stdoutR.Close(); p.stderrR.Close() }

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
