package stdio

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"golang.org/x/sys/unix"
)

// A parent may share its pipes with the server and make them non-blocking, before the server starts
// or while it runs. No message is lost.
func TestNonBlockingStreams(t *testing.T) {
	for name, early := range map[string]bool{"before the start": true, "while it runs": false} {
		t.Run(name, func(t *testing.T) {
			theirIn, ourIn := openPipe(t)
			ourOut, theirOut := openPipe(t)
			setTheirs := func(nonBlocking bool) {
				for _, fd := range []int{theirIn, theirOut} {
					if err := unix.SetNonblock(fd, nonBlocking); err != nil {
						t.Fatal(err)
					}
				}
			}
			setTheirs(early)
			process := startServer(t, theirIn, theirOut)
			requests, answers := os.NewFile(uintptr(ourIn), "requests"), os.NewFile(uintptr(ourOut), "answers")
			out := bufio.NewReader(answers)
			call := func(id int) string {
				return strings.NewReplacer(`"id":1`, `"id":`+strconv.Itoa(id), "slow", "quick").Replace(callSlow)
			}
			io.WriteString(requests, call(0))
			if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, "done") {
				t.Fatalf("%q %v", line, err)
			}
			setTheirs(true)
			const calls = 1000 // fewer than may be in flight, and answered by more than a pipe holds
			go func() {
				for id := range calls {
					io.WriteString(requests, call(id+1))
				}
				requests.Close()
			}()
			polltest.Until(t, "the pipe is full", func() bool {
				n, err := unix.IoctlGetInt(ourOut, unix.TIOCINQ)
				return err == nil && n > 60_000
			})
			unix.Close(theirOut)
			all, err := io.ReadAll(out)
			answers.Close()
			if n := strings.Count(string(all), "done"); err != nil || n != calls {
				t.Errorf("%d answers to %d calls: %v", n, calls, err)
			}
			if state, err := process.Wait(); err != nil || !state.Success() {
				t.Error(state, err)
			}
		})
	}
}

// startServer runs the test binary as a server on two descriptors. Unlike os/exec it leaves their
// flags as they are.
func startServer(t *testing.T, stdin, stdout int) *os.Process {
	c := server("1m")
	env := os.Environ()
	for key, value := range c.Env {
		env = append(env, key+"="+value)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	pid, err := syscall.ForkExec(c.Path, []string{c.Path}, &syscall.ProcAttr{Env: env, Files: []uintptr{uintptr(stdin), uintptr(stdout), null.Fd()}})
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	return process
}

func openPipe(t *testing.T) (r, w int) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	return ends[0], ends[1]
}
