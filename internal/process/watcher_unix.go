//go:build unix

package process

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
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
// So the shell never signals an id that another group has got since. It also carries the marks of
// the trees, each before its child is forked. The shell runs while children run, and is replaced if
// it dies early. Without /bin/sh, an orphan only sees the end of its stdin, and on Linux the direct
// child gets SIGTERM.
type watcher struct {
	mu       sync.Mutex
	children int // number of children that are starting or running
	starting int // number of package runners that are starting
	groups   map[int]*watchedGroup
	marks    map[string]bool
	shell    *watchShell // nil if none runs
}

// watchedGroup is the state of a process group, as the shell has been told.
type watchedGroup struct {
	isPatient bool // it may take rollbackTime to end
	hasTerm   bool // it has been sent SIGTERM
}

type watchShell struct {
	pipe  *os.File
	proc  *os.Process
	began time.Time
	gone  chan struct{}
}

// watchScript is POSIX sh and needs no programs but sleep and grep; without sleep it skips the
// grace period, and without grep it ends the groups only. It ignores the signals of a terminal and
// of a user's careless kill, and closes inherited descriptors. When its input ends, it sends
// SIGTERM to the groups that have not had it, polls for almost half a second, and sends SIGKILL.
// Groups of package runners that are installing have 10 seconds instead, and processes outside the
// groups are killed after these. A runner whose group is not known yet, because the program died
// between its fork and the message, is found by its mark and has 10 seconds too.
//
// Processes that carry a mark are written as ID:START, with the time of their start. The script
// signals a process only if two looks have found it and it still has that time, so that it never
// signals a reused id. The marks reach grep over a pipe, because command lines are public.
const watchScript = `# ends the child processes of a dowel program that died
trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM PIPE
exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
groups=' ' marks=' ' found=' ' before=' ' patient=' ' termed=' ' starting=
while read -r op id; do
	case $op$groups$marks in
	+*)
		groups="$groups$id "
		case $termed in *" $id "*) termed="${termed%% $id *} ${termed#* $id }" ;; esac ;;
	m*) marks="$marks$id " ;;
	p*) patient="$patient$id " ;;
	n*) case $patient in *" $id "*) patient="${patient%% $id *} ${patient#* $id }" ;; esac ;;
	t*) termed="$termed$id " ;;
	r*) starting=x$starting ;;
	s*) starting=${starting#x} ;;
	-*" $id "*) groups="${groups%% $id *} ${groups#* $id }" ;;
	u*" $id "*) marks="${marks%% $id *} ${marks#* $id }" ;;
	esac
done
each() { for id in $groups; do case $2 in *" $id "*) ;; *) kill -s "$1" -- "-$id" ;; esac; done; }
began() { { read -r stat <"/proc/$1/stat"; } 2>/dev/null && set -- ${stat##*) } && group=$3 start=${20}; }
look() {
	before=$found found=' '
	case $marks in ' ') return ;; esac
	for file in $(for mark in $marks; do echo "$mark"; done | grep -lsFf - /proc/[0-9]*/environ 2>/dev/null); do
		id=${file#/proc/} id=${id%/*}
		[ -O "/proc/$id" ] && began "$id" || continue
		case $patient in *" $group "*) ;; *) found="$found$id:$start " ;; esac
	done
}
detached() {
	look
	for one in $found; do
		case $before in *" $one "*) began "${one%:*}" && [ "$one" = "${one%:*}:$start" ] && kill -s "$1" "${one%:*}" ;; esac
	done
}
each TERM "$termed"
each CONT ' '
look
detached TERM
detached CONT
turn=0 killed=
while [ $turn -lt 100 ]; do
	turn=$((turn + 1)) rest=' ' installing=
	for id in $groups; do
		kill -s 0 -- "-$id" && rest="$rest$id " && case $patient in *" $id "*) installing=y ;; esac
	done
	groups=$rest
	look
	[ -z "$starting" ] || [ "$found" = ' ' ] || installing=y
	case $groups$found$before in '   ') exit 0 ;; esac
	[ $turn -le 4 ] || [ "$installing" ] || break
	[ $turn -le 4 ] || [ "$killed" ] || { each KILL "$patient"; killed=y; }
	sleep 0.1 || { sleep 1; turn=$((turn + 9)); }
done
each KILL ' '
for turn in 1 2 3 4 5 6 7 8 9; do
	detached KILL
	case $found$before in '  ') exit 0 ;; esac
	sleep 0.1 || sleep 1
done
`

// addTree starts the shell if necessary and registers the mark of a new tree, if it has one. Call
// it before a child is forked. isRunner means that the child is a package runner, which may first
// install the server.
func (w *watcher) addTree(mark string, isRunner bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.children++
	if w.shell == nil {
		w.startShell()
	}
	if isRunner {
		w.starting++
		w.sendLines("r 0")
	}
	if mark == "" {
		return
	}
	if w.marks == nil {
		w.marks = make(map[string]bool)
	}
	w.marks[mark] = true
	w.sendLines("m " + mark)
}

// addGroup records the process group of a new child. Call it directly after the fork. isRunner is
// as in addTree.
func (w *watcher) addGroup(pgid int, isRunner bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		w.groups = make(map[int]*watchedGroup)
	}
	w.groups[pgid] = &watchedGroup{isPatient: isRunner}
	if !isRunner {
		w.sendLines(lineOf("+", pgid))
		return
	}
	w.starting--
	w.sendLines(lineOf("+", pgid), lineOf("p", pgid), "s 0")
}

// setPatience records whether a group may take rollbackTime to end.
func (w *watcher) setPatience(pgid int, patient bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.groups[pgid]; g != nil {
		g.isPatient = patient
		w.sendLines(lineOf(map[bool]string{true: "p", false: "n"}[patient], pgid))
	}
}

// noteTerm records that a group is being sent SIGTERM.
func (w *watcher) noteTerm(pgid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.groups[pgid]; g != nil {
		g.hasTerm = true
		w.sendLines(lineOf("t", pgid))
	}
}

// removeUnstarted undoes addTree for a child that did not start.
func (w *watcher) removeUnstarted(mark string, isRunner bool) {
	w.mu.Lock()
	if isRunner {
		w.starting--
		w.sendLines("s 0")
	}
	w.mu.Unlock()
	w.removeTree(0, mark)
}

// removeTree undoes addTree and addGroup. After the last child, it ends the shell and waits for its
// end.
func (w *watcher) removeTree(pgid int, mark string) {
	w.mu.Lock()
	w.children--
	if g := w.groups[pgid]; g != nil {
		delete(w.groups, pgid)
		w.sendLines(lineOf("-", pgid))
		if g.isPatient {
			w.sendLines(lineOf("n", pgid))
		}
	}
	if w.marks[mark] {
		delete(w.marks, mark)
		w.sendLines("u " + mark)
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

// lineOf returns a line of the pipe: an operation of watchScript and the id of its group.
func lineOf(op string, pgid int) string { return op + " " + strconv.Itoa(pgid) }

// sendLines sends lines in one write: if this process is killed, the shell gets all of them or
// none. The pipe holds thousands of lines, so a write blocks only if the shell is stopped; the
// deadline ends such a write.
func (w *watcher) sendLines(lines ...string) {
	if w.shell == nil {
		return
	}
	_ = w.shell.pipe.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(w.shell.pipe, strings.Join(lines, "\n")+"\n"); err != nil {
		w.shell.proc.Kill() // superviseShell replaces it
	}
}

// startShell starts a shell and sends it the ids of all groups and the marks. The caller holds
// w.mu.
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
		Env: []string{"PATH=/usr/bin:/bin:/run/current-system/sw/bin"}, Dir: "/", Stdin: r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		pipe.Close()
		return
	}
	w.shell = &watchShell{pipe: pipe, proc: cmd.Process, began: time.Now(), gone: make(chan struct{})}
	for range w.starting {
		w.sendLines("r 0")
	}
	for pgid, g := range w.groups {
		w.sendLines(lineOf("+", pgid))
		if g.isPatient {
			w.sendLines(lineOf("p", pgid))
		}
		if g.hasTerm {
			w.sendLines(lineOf("t", pgid))
		}
	}
	for mark := range w.marks {
		w.sendLines("m " + mark)
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
