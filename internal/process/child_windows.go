package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The code in this file runs under Wine in the tests of make windows, and has not been run on
// Windows itself.

// tree is a process and its descendants: a Job Object. Windows kills the job when its last handle
// is closed. Only this process has a handle, so the tree cannot outlive it.
type tree struct {
	pid    int
	job    windows.Handle
	exited chan struct{}    // closed when the direct child has exited
	state  *os.ProcessState // set before exited is closed

	stdinLink string // not used on Windows
}

// setPatience does nothing: the job ends with this process.
func (t *tree) setPatience(bool) {}

func startTree(cmd *exec.Cmd, _ string, _ bool) (*tree, error) {
	job, err := newJob()
	if err != nil {
		return nil, err
	}
	// Start it suspended, so that it joins the job before it can start other processes, and hide
	// the window of a console that it may open.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED,
		HideWindow:    true,
	}
	if err = runBatchFile(cmd); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		windows.CloseHandle(job)
		return nil, err
	}
	t := &tree{pid: cmd.Process.Pid, job: job, exited: make(chan struct{})}
	if err := t.addToJob(); err != nil {
		cmd.Process.Kill()
		cmd.Process.Wait()
		windows.CloseHandle(job)
		return nil, fmt.Errorf("put the process into a job: %w", err)
	}
	go func() {
		defer close(t.exited)
		t.state, _ = cmd.Process.Wait()
	}()
	return t, nil
}

// runBatchFile makes cmd run a batch file with cmd.exe. It uses the full path of cmd.exe, so that
// neither PATH nor ComSpec can choose another program.
func runBatchFile(cmd *exec.Cmd) error {
	if ext := strings.ToLower(filepath.Ext(cmd.Path)); ext != ".cmd" && ext != ".bat" {
		return nil
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return err
	}
	shell := filepath.Join(system, "cmd.exe")
	line, err := batchLine(shell, cmd.Args)
	if err != nil {
		return err
	}
	cmd.Path, cmd.Args, cmd.SysProcAttr.CmdLine = shell, nil, line
	return nil
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("create a job object: %w", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		windows.CloseHandle(job)
		return 0, fmt.Errorf("set the limits of a job object: %w", err)
	}
	return job, nil
}

// addToJob adds the suspended process to the job and resumes it.
func (t *tree) addToJob() error {
	proc, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(t.pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(proc)
	if err := windows.AssignProcessToJobObject(t.job, proc); err != nil {
		return err
	}
	return resumeProcess(uint32(t.pid))
}

// resumeProcess resumes the only thread of a suspended process. os/exec keeps no handle to the
// thread.
func resumeProcess(pid uint32) error {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(all)
	entry := windows.ThreadEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err = windows.Thread32First(all, &entry); err == nil; err = windows.Thread32Next(all, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return err
	}
	return fmt.Errorf("find the thread of process %d: %w", pid, err)
}

// endAll sends CTRL_BREAK, which reaches the processes that share the child's console, and
// kills the remaining ones.
func (t *tree) endAll(killAfter time.Duration) {
	defer windows.CloseHandle(t.job)
	if t.activeProcesses() == 0 {
		return
	}
	windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(t.pid))
	if !t.waitUntilEmpty(killAfter) {
		windows.TerminateJobObject(t.job, 1)
		t.waitUntilEmpty(killBound)
	}
}

func (t *tree) waitUntilEmpty(d time.Duration) bool {
	for end := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		if t.activeProcesses() == 0 {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type jobAccounting struct {
	totalUser, totalKernel, periodUser, periodKernel int64
	pageFaults, total, active, terminated            uint32
}

const basicAccounting = 1 // JobObjectBasicAccountingInformation

func (t *tree) activeProcesses() uint32 {
	var a jobAccounting
	err := windows.QueryInformationJobObject(t.job, basicAccounting, uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	if err != nil {
		return 0
	}
	return a.active
}

// readAvailable returns io.EOF: every process that held the pipe open was in the job and is dead.
func readAvailable(*os.File, []byte) (int, error) { return 0, io.EOF }

// hasWriter returns true, because a pipe of Windows cannot be asked.
func hasWriter(*os.File) bool { return true }

func startError(p resolvedProgram, err error) error {
	if errors.Is(err, windows.ERROR_BAD_EXE_FORMAT) {
		return fmt.Errorf("%q is not a program for this system: %w", p.file, err)
	}
	return err
}
