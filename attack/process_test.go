//go:build linux

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// Attack 38: a server writes a line without end. Expected: dowel gives it up and says why, and the
// others are served.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.write(v.userFile(), `{"mcpServers": {"every": `+builtIn("everything")+`, "endless": {"command": "sh", "args": ["-c", "tr '\\\\0' x < /dev/zero"]}}}`) // the shell keeps its stdin open
	v.start()
	polltest.Until(t, "the server is given up", func() bool {
		_, output := v.run("status", "endless")
		return strings.Contains(output, "failed") && strings.Contains(output, "line")
	})
	v.checkServes()
}

// Attack 60: a server starts processes that leave its group and its session, by setsid and twice.
// dowel ends well, or is killed. Expected: none of them is left.
func TestEscapedProcesses(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		v := newVictim(t)
		pids := filepath.Join(t.TempDir(), "pids")
		script := fmt.Sprintf(`setsid sh -c 'echo $$ >> %[1]s; exec sleep 600' & setsid sh -c '(setsid sh -c "echo \$\$ >> %[1]s; exec sleep 600" &)' & exec %[2]s serve everything`, pids, dowelPath)
		v.write(v.userFile(), fmt.Sprintf(`{"mcpServers": {"every": {"command": "sh", "args": ["-c", %q]}}}`, script))
		v.start()
		var left []string
		polltest.Until(t, "both processes run", func() bool {
			text, _ := os.ReadFile(pids)
			left = strings.Fields(string(text))
			return len(left) >= 2
		})
		if signal == syscall.SIGINT {
			v.stop()
		} else {
			_ = v.cmd.Process.Kill()
			_ = v.cmd.Wait() // it was killed
			v.cmd = nil
		}
		for _, line := range left {
			var pid int
			if _, err := fmt.Sscan(line, &pid); err != nil {
				t.Fatal(err)
			}
			polltest.Until(t, fmt.Sprintf("the end of process %d after %v", pid, signal), func() bool { return syscall.Kill(pid, 0) != nil || isZombie(pid) })
		}
	}
}
