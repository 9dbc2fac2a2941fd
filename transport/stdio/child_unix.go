//go:build unix

package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// tree is a process and its descendants: a process group in a session of its own.
//
// A session and not only a group, for two reasons. A program that has a controlling terminal but is not in its
// foreground group is stopped when it touches it ("bash -ic", ssh or sudo asking for a password), and then hangs in
// silence; without a terminal it fails with a message. And a session leader can move to no other group.
type tree struct {
	pid   int              // of the direct child, which is also the group's id
	left  chan struct{}    // closed once the direct child has been reaped
	state *os.ProcessState // set before left is closed; nil: somebody else in this program reaped the child
	empty bool             // nobody outlived the direct child; set before left is closed
}

func startTree(cmd *exec.Cmd) (*tree, error) {
	orphans.hold()
	t := &tree{left: make(chan struct{})}
	started := make(chan error, 1)
	go t.run(cmd, started)
	if err := <-started; err != nil {
		<-t.left
		orphans.release(0)
		return nil, err
	}
	return t, nil
}

// run starts the child and reaps it, on one thread: the child's parent-death signal, where the system has it, is bound
// to the thread that started it, and would end the child in mid-life if the runtime retired that thread.
func (t *tree) run(cmd *exec.Cmd, started chan<- error) {
	defer close(t.left)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	t.pid = cmd.Process.Pid
	orphans.register(t.pid)
	started <- nil
	t.state, _ = cmd.Process.Wait()
	t.empty = syscall.Kill(-t.pid, 0) == syscall.ESRCH
}

// end ends what is left of the group. The group's id cannot become somebody else's while a member lives or is not
// reaped, and nothing is sent once the group was seen to be empty. Each process gets one SIGTERM: many take a second
// one as an order to drop everything.
func (t *tree) end(killAfter time.Duration) {
	defer orphans.release(t.pid)
	if isClosed(t.left) && t.empty {
		return
	}
	t.signal(syscall.SIGTERM)
	t.signal(syscall.SIGCONT) // a stopped process would not notice
	if !t.gone(killAfter) {
		t.signal(syscall.SIGKILL)
		t.gone(killBound)
	}
}

func (t *tree) signal(s syscall.Signal) { syscall.Kill(-t.pid, s) }

// gone waits at most d for the group to be empty.
func (t *tree) gone(d time.Duration) bool {
	end := time.Now().Add(d)
	for nap := time.Millisecond; ; nap = min(2*nap, 50*time.Millisecond) {
		if !t.alive() {
			return true
		}
		rest := time.Until(end)
		if rest <= 0 {
			return false
		}
		time.Sleep(min(nap, rest))
	}
}

// alive reports whether somebody in the group can still be signalled. EPERM also means no: those that remain are
// zombies (on some systems) or have taken another user's identity.
func (t *tree) alive() bool {
	return syscall.Kill(-t.pid, 0) == nil && groupRuns(t.pid)
}

// readAvailable reads what is in the pipe now, and io.EOF if that is nothing.
func readAvailable(f *os.File, p []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, io.EOF
	}
	n = -1
	control := raw.Control(func(fd uintptr) {
		for n, err = syscall.Read(int(fd), p); err == syscall.EINTR; {
			n, err = syscall.Read(int(fd), p)
		}
	})
	if control != nil || err != nil || n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}

// startError explains the errors of exec that name the wrong thing.
func startError(p program, err error) error {
	line := shebang(p.file)
	switch {
	case errors.Is(err, syscall.ENOENT) && line != "":
		return fmt.Errorf("%q exists, but the interpreter in its first line (#!%s) does not: %w", p.file, line, err)
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%q cannot be loaded; it was removed just now, or its dynamic loader is missing: %w", p.file, err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%q is neither a program for this system nor a script that begins with #!: %w", p.file, err)
	}
	return err
}
