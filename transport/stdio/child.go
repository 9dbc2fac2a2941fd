package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	defaultGrace = 2 * time.Second
	killBound    = 2 * time.Second        // what the kernel gets to carry out a kill
	lastWords    = 100 * time.Millisecond // what the pipes get to reach their end once the process is gone
	tailLines    = 10
	tailBytes    = 2 << 10
)

// Child is a running server process: Read is its stdout, Write its stdin. Its methods can be called concurrently.
//
// The process and everything that it starts are one tree, which ends as a whole: with Close, when the process itself
// exits (what it leaves running is then ended as well), and when this process dies, however it dies. On POSIX the tree
// is a session of its own, whose process group is signalled, so a Ctrl-C in the terminal does not reach it, and it has
// no terminal on which to ask for a password; on Windows it is a Job Object (that half compiles and is vetted, but has
// never been run). The limit: a descendant that makes a session or process group of its own (setsid, a daemon) has
// left the tree. Such a process is not ended, but cannot hold up Read or Close by keeping the pipes open either.
//
// Close must be called in the end, also after the process has exited: it frees the pipes.
type Child struct {
	name             string
	grace, killAfter time.Duration

	tree   *tree
	stdin  *os.File
	stdout *outlet
	stderr *stderrLog

	reading sync.Mutex // held by whoever reads stdout

	closeOnce sync.Once
	closing   chan struct{} // closed by the first Close
	exited    chan struct{} // closed once exit is set
	exit      *ExitError
	ended     chan struct{} // closed when the tree and every goroutine are gone
}

// start starts p with c's streams and patience.
func (c Command) start(p program) (*Child, error) {
	var pipes pipes
	if err := pipes.open(); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: p.file, Args: p.argv, Env: p.env, Dir: p.dir,
		Stdin: pipes.stdinR, Stdout: pipes.stdoutW, Stderr: pipes.stderrW,
	}
	t, err := startTree(cmd)
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return nil, startError(p, err)
	}
	child := &Child{
		name:  c.Path,
		grace: patience(c.Grace), killAfter: patience(c.KillAfter),
		tree:    t,
		stdin:   pipes.stdinW,
		stdout:  &outlet{File: pipes.stdoutR},
		stderr:  newStderrLog(c.StderrRing, c.Stderr),
		closing: make(chan struct{}),
		exited:  make(chan struct{}),
		ended:   make(chan struct{}),
	}
	go child.live(&outlet{File: pipes.stderrR})
	return child, nil
}

func patience(d time.Duration) time.Duration {
	if d == 0 {
		return defaultGrace
	}
	return max(d, 0)
}

// Read reads what the process wrote to stdout. What it wrote before it exited can still be read afterwards; then comes
// io.EOF, at the latest when KillAfter has passed and the tree is dead. A process may also close stdout and live on:
// whoever gets io.EOF calls Close, which is bounded, and then asks ExitError how it ended.
//
// Close interrupts a Read; from then on Read returns [os.ErrClosed].
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

// Write writes to the process's stdin. It blocks while the process does not read and the pipe is full, until Close.
// Once the process has exited, the error wraps its [*ExitError]; after Close or CloseWrite it is [os.ErrClosed].
func (c *Child) Write(p []byte) (int, error) {
	n, err := c.stdin.Write(p)
	if err == nil {
		return n, nil
	}
	if isClosed(c.closing) {
		return n, os.ErrClosed
	}
	if !errors.Is(err, os.ErrClosed) {
		within(c.exited, lastWords) // a broken pipe is seen before the exit that broke it
	}
	if isClosed(c.exited) {
		return n, fmt.Errorf("write to its stdin: %w", c.exit)
	}
	return n, err
}

// CloseWrite closes the process's stdin, which asks it to finish and exit, and leaves stdout readable.
func (c *Child) CloseWrite() error {
	if err := c.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Close ends the process tree: it closes stdin, waits Grace for the process to exit, sends SIGTERM to the tree, waits
// KillAfter, and kills it. Meanwhile stdout is read and thrown away, so that a full pipe keeps nobody from exiting.
// Close returns when all of it is gone, including this package's goroutines; every further or concurrent call waits for
// the same end and returns the same. It takes at most Grace + KillAfter + about 5 s; the last part is spent only on
// a kernel that does not carry out a kill and a Stderr writer that is stuck. The error is nil unless the
// process could not be killed; how it exited is ExitError's to say.
func (c *Child) Close() error {
	c.closeOnce.Do(func() { close(c.closing) })
	<-c.ended
	c.stdout.Close()
	if !isClosed(c.tree.left) {
		return fmt.Errorf("close %s: process %d did not die within %v of being killed", c.name, c.tree.pid, killBound)
	}
	return nil
}

// Wait waits for the process to exit, by itself or with Close. It returns nil for status 0 and for an exit that
// followed Close, else the [*ExitError]. What the process left running may still be on its way out.
func (c *Child) Wait() error {
	<-c.exited
	if c.exit.Closed || c.exit.State != nil && c.exit.State.Success() {
		return nil
	}
	return c.exit
}

// Exited is closed once the process has exited.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// ExitError is nil while the process runs, and then an [*ExitError], also for status 0.
func (c *Child) ExitError() error {
	if !isClosed(c.exited) {
		return nil
	}
	return c.exit
}

// PID is the process id of the process that was started; on POSIX also the id of its process group and session.
func (c *Child) PID() int { return c.tree.pid }

// Stderr is a copy of the last bytes (Command.StderrRing) that the process wrote to stderr.
func (c *Child) Stderr() []byte { return c.stderr.bytes() }

// StderrTail is the last lines that the process wrote to stderr, made valid UTF-8 and without control characters and
// terminal escape sequences.
func (c *Child) StderrTail(lines int) string { return printable(c.stderr.tail(lines)) }

// live is the child's life from start to end, and the only place where its state changes.
func (c *Child) live(stderr *outlet) {
	var tasks sync.WaitGroup
	quiet := make(chan struct{}) // stderr has reached its end
	tasks.Go(func() {
		io.Copy(c.stderr, stderr)
		close(quiet)
	})

	closed := false
	select {
	case <-c.tree.left:
	case <-c.closing:
		closed = !isClosed(c.tree.left)
		c.stdin.Close()
		c.stdout.interrupt()
		tasks.Go(c.discard)
		within(c.tree.left, c.grace)
	}
	if isClosed(c.tree.left) {
		c.publish(quiet, closed) // at once: calls that wait for an answer need not wait for grandchildren to go
	}
	c.tree.end(c.killAfter)
	if !isClosed(c.exited) {
		within(c.tree.left, killBound)
		c.publish(quiet, closed)
	}

	c.stdin.Close()
	c.stdout.expire()
	stderr.expire()
	tasks.Wait()
	stderr.Close()
	c.stderr.close()
	close(c.ended)
}

// publish makes the exit known, with the last words that are still in the pipe.
func (c *Child) publish(quiet <-chan struct{}, closed bool) {
	within(quiet, lastWords)
	exit := &ExitError{Command: c.name, Closed: closed}
	if isClosed(c.tree.left) {
		exit.State = c.tree.state
	}
	exit.Stderr = c.StderrTail(tailLines)
	if cut := len(exit.Stderr) - tailBytes; cut > 0 {
		exit.Stderr = "…" + printable(exit.Stderr[cut:])
	}
	c.exit = exit
	close(c.exited)
}

// discard reads stdout to its end after Close.
func (c *Child) discard() {
	c.reading.Lock() // the Read that interrupt woke has returned
	defer c.reading.Unlock()
	c.stdout.resume()
	io.Copy(io.Discard, c.stdout)
}

// outlet is the end of a pipe that a child writes to. Once it has expired, Read gives what is still in the pipe and
// then io.EOF, even if some process that left the tree keeps the other end open.
type outlet struct {
	*os.File
	mu      sync.Mutex
	expired bool
}

func (o *outlet) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return readAvailable(o.File, p)
	}
	return n, err
}

// WriteTo hides the one of os.File, which would go around Read.
func (o *outlet) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{o})
}

func (o *outlet) interrupt() { o.deadline(time.Unix(1, 0)) }
func (o *outlet) resume()    { o.deadline(time.Time{}) }

func (o *outlet) deadline(t time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.expired {
		o.SetReadDeadline(t)
	}
}

func (o *outlet) expire() {
	o.deadline(time.Now().Add(lastWords))
	o.mu.Lock()
	o.expired = true
	o.mu.Unlock()
}

// pipes are both ends of the three streams.
type pipes struct {
	stdinR, stdinW, stdoutR, stdoutW, stderrR, stderrW *os.File
}

func (p *pipes) open() (err error) {
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

// Closing a nil *os.File is an error and nothing more.
func (p *pipes) closeTheirs() { p.stdinR.Close(); p.stdoutW.Close(); p.stderrW.Close() }
func (p *pipes) closeOurs()   { p.stdinW.Close(); p.stdoutR.Close(); p.stderrR.Close() }

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
