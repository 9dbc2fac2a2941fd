package process

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxHeld    = 200         // limit of detached processes that are ended at a time; each takes a descriptor
	maxPasses  = 5           // limit of looks at processes that came or went
	startBound = time.Second // limit for a process to start a program
	maxKills   = 20          // limit of rounds of SIGKILL
)

// endDetached ends the processes that carry a mark, once the process group of their tree has ended.
// It sends SIGTERM to each, waits killAfter, and sends SIGKILL, also to the processes that
// they have started meanwhile.
func endDetached(mark string, killAfter time.Duration) {
	if mark == "" {
		return
	}
	for end := time.Now().Add(killAfter); time.Now().Before(end); {
		found := findMarked(mark)
		if len(found) == 0 {
			return
		}
		found.signal(syscall.SIGTERM)
		found.signal(syscall.SIGCONT)
		found.waitUntil(end)
		found.release()
	}
	end := time.Now().Add(killBound)
	for range maxKills {
		found := findMarked(mark)
		if len(found) == 0 {
			return
		}
		found.signal(syscall.SIGKILL)
		found.waitUntil(end)
		found.release()
	}
}

// procFolder is the folder of a process in /proc. The open folder belongs to that process for good:
// if the process ends and another one gets its id, the folder is empty, and a signal that is sent
// through it reaches no process.
type procFolder struct {
	fd  int
	pid int
}

// procFolders are processes that endDetached ends.
type procFolders []procFolder

// findMarked returns the running processes of this user that carry mark. The caller releases them.
//
// A process that is starting another program has no environment at that moment, and a process that
// ended during a pass may have started another one before. findMarked then looks again, at these
// and at new processes only: up to maxPasses times after an end, and up to startBound while a
// program starts, which can take long on a busy machine.
func findMarked(mark string) (found procFolders) {
	return findMarkedIn("/proc", mark, startBound)
}

func findMarkedIn(folder, mark string, startBound time.Duration) (found procFolders) {
	proc, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer proc.Close()
	scan := procScan{proc: proc, uid: uint32(os.Geteuid()), mark: []byte(mark), others: map[string]bool{strconv.Itoa(os.Getpid()): true}}
	end := time.Now().Add(startBound)
	for n := 1; ; n++ {
		seen := scan.pass()
		isOver := seen == other || seen == vanished && n >= maxPasses || seen == starting && n >= maxPasses && time.Now().After(end)
		if isOver || len(scan.found) > 0 {
			return scan.found
		}
		time.Sleep(min(time.Duration(n)*time.Millisecond, 20*time.Millisecond))
	}
}

// procScan looks at all processes.
type procScan struct {
	proc   *os.File // /proc
	uid    uint32
	mark   []byte
	others map[string]bool // processes that do not carry the mark
	found  procFolders
	buf    []byte
}

// pass looks at the processes that are not among the others. It returns starting if one of them is
// starting a program, else vanished if one has ended, else other.
func (s *procScan) pass() scanResult {
	if _, err := s.proc.Seek(0, io.SeekStart); err != nil {
		return other
	}
	names, err := s.proc.Readdirnames(-1)
	if err != nil {
		return other
	}
	seen := other
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || s.others[name] {
			continue
		}
		p, result := s.look(name, pid)
		switch result {
		case carriesMark:
			s.found = append(s.found, p)
		case other:
			s.others[name] = true
		case vanished, starting:
			seen = max(seen, result)
		}
		if len(s.found) == maxHeld {
			break
		}
	}
	return seen
}

type scanResult int

const (
	other       scanResult = iota // does not carry the mark
	carriesMark                   // the folder stays open
	vanished                      // has ended
	starting                      // is starting a program
)

// look looks at one process. It opens the folder only of a process that seems to carry the mark,
// and looks again through it. Most processes do not, and take half of the time so.
func (s *procScan) look(name string, pid int) (procFolder, scanResult) {
	result := s.lookAt(int(s.proc.Fd()), name+"/")
	if result != carriesMark {
		return procFolder{}, result
	}
	fd, err := unix.Openat(int(s.proc.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return procFolder{}, vanished
	}
	if result = s.lookAt(fd, ""); result != carriesMark {
		unix.Close(fd)
	}
	return procFolder{fd, pid}, result
}

// lookAt looks at the process with the files at prefix, which is relative to the folder at.
func (s *procScan) lookAt(at int, prefix string) scanResult {
	uid, err := readAt(at, prefix+"environ", &s.buf)
	switch {
	case err == unix.EACCES || err == unix.EPERM:
		return other
	case err == unix.ESRCH: // it has no memory (since Linux 6.15)
	case err != nil:
		return vanished
	case uid == s.uid && bytes.Contains(s.buf, s.mark):
		return carriesMark
	case len(s.buf) > 0:
		return other
	}
	if _, err := readAt(at, prefix+"cmdline", &s.buf); err == nil && len(s.buf) > 0 {
		return other // it runs without any variable
	}
	// Zombies and threads of the kernel have neither an environment nor a command line.
	const kernelThread, exiting = 0x00200000, 0x4 // PF_KTHREAD, PF_EXITING
	switch state, flags := statAt(at, prefix, &s.buf); {
	case state == 'Z' || flags&kernelThread != 0:
		return other
	case state == 0 || flags&exiting != 0 || err != nil:
		return vanished
	}
	return starting
}

// readAt reads a file, of which uid is the owner, into buf.
func readAt(at int, path string, buf *[]byte) (uid uint32, err error) {
	*buf = (*buf)[:0]
	fd, err := unix.Openat(at, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return 0, err
	}
	for {
		if len(*buf) == cap(*buf) {
			*buf = append(make([]byte, 0, 2*cap(*buf)+16<<10), *buf...)
		}
		room := (*buf)[len(*buf):cap(*buf)]
		n, err := unix.Read(fd, room)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return info.Uid, err
		}
		*buf = (*buf)[:len(*buf)+n]
		if n < len(room) {
			return info.Uid, nil
		}
	}
}

// statAt returns the state and the flags from the file stat; state is 0 if the process is gone.
func statAt(at int, prefix string, buf *[]byte) (state byte, flags uint64) {
	if _, err := readAt(at, prefix+"stat", buf); err != nil {
		return 0, 0
	}
	fields := bytes.Fields((*buf)[bytes.LastIndexByte(*buf, ')')+1:])
	if len(fields) < 7 {
		return 0, 0
	}
	flags, _ = strconv.ParseUint(string(fields[6]), 10, 64)
	return fields[0][0], flags
}

// runs reports whether the process is more than a zombie.
func (p procFolder) runs() bool {
	var buf []byte
	state, _ := statAt(p.fd, "", &buf)
	return state != 0 && state != 'Z' && state != 'X'
}

// signal sends a signal. Since Linux 5.1 the folder itself names the process to the kernel. On
// older systems the id could be reused only within the microseconds between the look and the
// signal, for which all other ids must have been given out meanwhile.
func (p procFolder) signal(s syscall.Signal) {
	err := unix.PidfdSendSignal(p.fd, s, nil, 0)
	if err != nil && err != unix.ESRCH && p.runs() {
		_ = unix.Kill(p.pid, s)
	}
}

func (all procFolders) signal(s syscall.Signal) {
	for _, p := range all {
		p.signal(s)
	}
}

// waitUntil waits until no process runs, at most until end.
func (all procFolders) waitUntil(end time.Time) {
	for nap := time.Millisecond; time.Now().Before(end); nap = min(2*nap, 50*time.Millisecond) {
		for len(all) > 0 && !all[0].runs() {
			all = all[1:]
		}
		if len(all) == 0 {
			return
		}
		time.Sleep(min(nap, time.Until(end)))
	}
}

func (all procFolders) release() {
	for _, p := range all {
		unix.Close(p.fd)
	}
}
