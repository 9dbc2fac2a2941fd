//go:build unix

package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// orphans is this process's watcher: one for all children, since it stands for the process and not for any of them.
var orphans watcher

// watcher keeps a small shell process that outlives this one and then ends the children's process groups. This
// process cannot do that itself when it is killed, and on a SIGKILL nobody else would.
//
// The shell holds the reading end of a pipe whose writing end only this process has, so the pipe ends with this
// process. The ids of the groups go through the pipe, one line when a group begins and one when it was seen to be
// empty: the shell never signals an id that could have become somebody else's. The shell runs while there are
// children, and is ended with the last one. It is replaced when it dies early. Without a /bin/sh there is no watcher,
// and an orphan is only told by the end of its stdin (and on Linux by SIGTERM to the direct child).
type watcher struct {
	mu     sync.Mutex
	held   int // children that are starting or alive
	groups map[int]bool
	shell  *watchShell // nil: none runs
}

type watchShell struct {
	pipe  *os.File
	proc  *os.Process
	began time.Time
	gone  chan struct{}
}

// watchScript is POSIX sh with no program but sleep, without which it skips the grace. It ignores what a terminal or a
// user's stray kill sends, and lets go of descriptors that this process had inherited open. On the end of its input
// come SIGTERM, almost half a second of polling, and SIGKILL.
const watchScript = `# ends the child processes of a dowel program that died
trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM PIPE
exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
groups=' '
while read -r op id; do
	case $op$groups in
	+*) groups="$groups$id " ;;
	-*" $id "*) groups="${groups%% $id *} ${groups#* $id }" ;;
	esac
done
each() { for id in $groups; do kill -s "$1" -- "-$id"; done; }
each TERM
each CONT
for turn in 1 2 3 4; do
	rest=' '
	for id in $groups; do kill -s 0 -- "-$id" && rest="$rest$id "; done
	groups=$rest
	case $groups in ' ') exit 0 ;; esac
	sleep 0.1 || { sleep 1; break; }
done
each KILL
`

// hold makes sure of a watcher before a child is forked.
func (w *watcher) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held++
	if w.shell == nil {
		w.begin()
	}
}

func (w *watcher) register(pgid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		w.groups = make(map[int]bool)
	}
	w.groups[pgid] = true
	w.tell('+', pgid)
}

// release ends a hold; pgid is 0 where the child did not start. It returns when a watcher that has nothing left to
// watch is gone.
func (w *watcher) release(pgid int) {
	w.mu.Lock()
	w.held--
	if w.groups[pgid] {
		delete(w.groups, pgid)
		w.tell('-', pgid)
	}
	idle := w.shell
	if w.held > 0 {
		idle = nil
	}
	if idle != nil {
		w.shell = nil
		idle.pipe.Close()
		idle.proc.Kill()
	}
	w.mu.Unlock()
	if idle != nil {
		<-idle.gone
	}
}

// tell has a deadline only for a shell that somebody stopped: the pipe holds thousands of lines.
func (w *watcher) tell(op byte, pgid int) {
	if w.shell == nil {
		return
	}
	w.shell.pipe.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := fmt.Fprintf(w.shell.pipe, "%c %d\n", op, pgid); err != nil {
		w.shell.proc.Kill() // attend replaces it
	}
}

// begin starts a shell and tells it every group. The caller holds w.mu.
func (w *watcher) begin() {
	r, pipe, err := os.Pipe()
	if err != nil {
		return
	}
	defer r.Close()
	// Its own session, so that no signal to this process's group or terminal ends it; and nothing of this process's
	// streams, environment or working directory, so that it holds nothing open.
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", watchScript},
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Stdin: r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		pipe.Close()
		return
	}
	w.shell = &watchShell{pipe: pipe, proc: cmd.Process, began: time.Now(), gone: make(chan struct{})}
	for pgid := range w.groups {
		w.tell('+', pgid)
	}
	go w.attend(w.shell)
}

// attend reaps a shell and replaces one that died while it was needed; one that died at once would do so again.
func (w *watcher) attend(s *watchShell) {
	defer close(s.gone)
	s.proc.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shell != s {
		return
	}
	s.pipe.Close()
	w.shell = nil
	if w.held > 0 && time.Since(s.began) > time.Second {
		w.begin()
	}
}
