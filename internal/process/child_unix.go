//go:build unix

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tree is a process and its descendants: a process group in a session of its own, and the processes
// that have left it but carry its mark.
//
// It needs the session for two reasons. A program with a controlling terminal that is not in the
// foreground group is stopped when it uses the terminal ("bash -ic", or ssh and sudo when they
// ask for a password), and then hangs silently; without a terminal it fails with a message. And a
// session leader cannot move to another group.
type tree struct {
	pid       int              // of the direct child; also the id of the group
	mark      string           // "" if processes that leave the group are kept
	isRunner  bool             // the direct child is a package runner, or starts one
	stdinLink string           // by which /proc names the pipe that is its stdin; "" if unknown
	exited    chan struct{}    // closed when the direct child has been reaped
	state     *os.ProcessState // set before exited is closed; nil if other code of this program reaped the child
	empty     bool             // no descendant outlived the direct child; set before exited is closed
}

func startTree(cmd *exec.Cmd, mark string, isRunner bool) (*tree, error) {
	orphanWatcher.addTree(mark, isRunner)
	t := &tree{mark: mark, isRunner: isRunner, exited: make(chan struct{})}
	started := make(chan error, 1)
	go t.startAndReap(cmd, started)
	if err := <-started; err != nil {
		<-t.exited
		orphanWatcher.removeUnstarted(mark, isRunner)
		return nil, err
	}
	return t, nil
}

// startAndReap starts the child and reaps it on one locked thread. The parent-death signal is
// bound to the thread that started the child, and would end the child if the runtime retired that
// thread.
func (t *tree) startAndReap(cmd *exec.Cmd, started chan<- error) {
	defer close(t.exited)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !t.isRunner { // npm takes a second SIGTERM, which the watcher sends, as the order to exit without cleanup
		dieWithParent(cmd.SysProcAttr)
	}
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	t.pid = cmd.Process.Pid
	orphanWatcher.addGroup(t.pid, t.isRunner)
	started <- nil
	t.state, _ = cmd.Process.Wait()
	t.empty = syscall.Kill(-t.pid, 0) == syscall.ESRCH
}

// endAll ends the remaining processes of the tree: first the group, then the processes that have
// left it. So a server that ends its own helpers can do so in its own way.
func (t *tree) endAll(killAfter time.Duration) {
	defer orphanWatcher.removeTree(t.pid, t.mark)
	if !isClosed(t.exited) || !t.empty {
		t.endGroup(killAfter)
	}
	endDetached(t.mark, killAfter)
}

// endGroup ends the remaining processes of the group. The group id cannot be reused while a
// member lives or is not reaped, and endGroup sends nothing after it has seen the group empty.
// Each process gets SIGTERM only once, because many take a second one as the order to exit
// without cleanup.
func (t *tree) endGroup(killAfter time.Duration) {
	orphanWatcher.noteTerm(t.pid)
	t.signalGroup(syscall.SIGTERM)
	t.signalGroup(syscall.SIGCONT) // a stopped process would not see SIGTERM
	if !t.waitUntilEmpty(killAfter) {
		t.signalGroup(syscall.SIGKILL)
		t.waitUntilEmpty(killBound)
	}
}

// setPatience tells the watcher whether the group gets rollbackTime after SIGTERM.
func (t *tree) setPatience(patient bool) { orphanWatcher.setPatience(t.pid, patient) }

func (t *tree) signalGroup(s syscall.Signal) { syscall.Kill(-t.pid, s) }

// waitUntilEmpty waits at most d and reports whether the group is empty.
func (t *tree) waitUntilEmpty(d time.Duration) bool {
	end := time.Now().Add(d)
	for nap := time.Millisecond; ; nap = min(2*nap, 50*time.Millisecond) {
		if !t.hasMembers() {
			return true
		}
		rest := time.Until(end)
		if rest <= 0 {
			return false
		}
		time.Sleep(min(nap, rest))
	}
}

// hasMembers reports whether a process of the group can still be signalled. EPERM means that it
// cannot: the remaining processes are zombies (on some systems) or run as another user.
func (t *tree) hasMembers() bool {
	return syscall.Kill(-t.pid, 0) == nil && groupRuns(t.pid)
}

// readAvailable reads the bytes that are in the pipe now. It returns io.EOF if the pipe is empty.
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

// hasWriter reports whether a process may hold the writing end of the pipe.
func hasWriter(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return true
	}
	hungUp := false
	control := raw.Control(func(fd uintptr) {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, 0)
		hungUp = err == nil && n == 1 && polled[0].Revents&unix.POLLHUP != 0
	})
	return control != nil || !hungUp
}

// startError replaces errors of exec that name the wrong cause.
func startError(p resolvedProgram, err error) error {
	line := readShebang(p.file)
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
