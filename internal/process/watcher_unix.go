//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// orphanWatcher is the watcher of this process. All children share it.
var orphanWatcher watcher

// watcher keeps a small shell that outlives this process and then ends the process groups of its
// children. This process cannot do so itself if it is killed.
//
// The shell reads a pipe that only this process writes to, so the pipe ends with this process.
// The pipe carries the ids of the groups: one line when a group starts and one when it is empty.
// So the shell never signals an id that another group has got since. The shell runs while
// children run, and is replaced if it dies early. Without /bin/sh, an orphan only sees the end of
// its stdin, and on Linux the direct child gets SIGTERM.
type watcher struct {
	mu       sync.Mutex
	children int // number of children that are starting or running
	groups   map[int]bool
	shell    *watchShell // nil if none runs
}

type watchShell struct {
	pipe  *os.File
	proc  *os.Process
	began time.Time
	gone  chan struct{}
}

// watchScript is POSIX sh and needs no program but sleep; without sleep it skips the grace
// period. It ignores the signals of a terminal and of a user's careless kill, and closes
// inherited descriptors. When its input ends, it sends SIGTERM, polls for almost half a second,
// and sends SIGKILL.
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

// retain starts the shell if necessary. Call it before a child is forked.
func (w *watcher) retain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.children++
	if w.shell == nil {
		w.startShell()
	}
}

func (w *watcher) register(pgid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		w.groups = make(map[int]bool)
	}
	w.groups[pgid] = true
	w.sendLine('+', pgid)
}

// release undoes retain. pgid is 0 if the child did not start. After the last child, release ends
// the shell and waits for its end.
func (w *watcher) release(pgid int) {
	w.mu.Lock()
	w.children--
	if w.groups[pgid] {
		delete(w.groups, pgid)
		w.sendLine('-', pgid)
	}
	idle := w.shell
	if w.children > 0 {
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

// sendLine has a deadline only because the shell may be stopped: the pipe holds thousands of
// lines.
func (w *watcher) sendLine(op byte, pgid int) {
	if w.shell == nil {
		return
	}
	_ = w.shell.pipe.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := fmt.Fprintf(w.shell.pipe, "%c %d\n", op, pgid); err != nil {
		w.shell.proc.Kill() // superviseShell replaces it
	}
}

// startShell starts a shell and sends it the ids of all groups. The caller holds w.mu.
func (w *watcher) startShell() {
	r, pipe, err := os.Pipe()
	if err != nil {
		return
	}
	defer r.Close()
	// A session of its own protects it from signals to this process's group and terminal. It gets
	// no stream, environment or working directory of this process, so that it keeps nothing open.
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
		w.sendLine('+', pgid)
	}
	go w.superviseShell(w.shell)
}

// superviseShell reaps a shell and replaces it if it died while children run. A shell that lived
// for less than a second is not replaced, because the next one would die too.
func (w *watcher) superviseShell(s *watchShell) {
	defer close(s.gone)
	s.proc.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shell != s {
		return
	}
	s.pipe.Close()
	w.shell = nil
	if w.children > 0 && time.Since(s.began) > time.Second {
		w.startShell()
	}
}
