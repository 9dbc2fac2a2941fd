package cli

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// Daemons of a server end with it, whether it is restarted, or dowel is interrupted or killed. The
// daemons of other servers stay, and so do the daemons of an entry that keeps them.
func TestDaemonsOfServers(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := newTestUser(t)
			const daemon = `setsid sh -c 'setsid sleep 600 & echo $! >> "$LOG"'; setsid sh -c 'trap "" TERM; echo $$ >> "$LOG"; while :; do sleep 600; done' & exec "$SERVER" $WORD`
			kept := strings.Replace(p.scriptEntry("kept", daemon), "{", `{"keepDetached": true, `, 1)
			p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"one": %s, "two": %s, "kept": %s, "nested": {"command": %q, "args": ["serve", "shell"]}}}`,
				p.scriptEntry("one", daemon), p.scriptEntry("two", daemon), kept, testBinary(t)))
			p.startDaemon()
			p.awaitStates(map[string]hub.Status{"one": hub.Ready, "two": hub.Ready, "kept": hub.Ready, "nested": hub.Ready})
			out := p.expectSuccess("", "call", "nested.run", "command=(setsid sleep 600 & echo $!)")
			ofNested, err := strconv.Atoi(strings.TrimSpace(strings.Split(out, "\n")[0]))
			if err != nil {
				t.Fatal(out)
			}
			ofOne, ofTwo, ofKept := p.daemons("one", 2), p.daemons("two", 2), p.daemons("kept", 2)
			defer awaitExits(t, ofKept, polltest.Limit)
			defer func() {
				for _, pid := range ofKept {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}()

			p.expectSuccess("", "servers", "restart", "one")
			awaitExits(t, ofOne, polltest.Limit)
			again := p.daemons("one", 4)[2:]
			all := append(append(again, ofTwo...), ofNested)
			p.expectRunning(append(all, ofKept...)...)

			_ = p.cmd.Process.Signal(signal)
			p.awaitExit(polltest.Limit)
			awaitExits(t, all, polltest.Limit)
			p.expectRunning(ofKept...)
		})
	}
}

// daemons returns the ids that a server's daemons have written, once there are n.
func (u *testUser) daemons(name string, n int) (pids []int) {
	u.t.Helper()
	polltest.Until(u.t, fmt.Sprintf("%d daemons of %s", n, name), func() bool { pids, _ = u.readLog(name); return len(pids) == n })
	u.expectRunning(pids[n-2:]...)
	return pids
}

func (u *testUser) expectRunning(pids ...int) {
	u.t.Helper()
	for _, pid := range pids {
		if !isRunning(pid) {
			u.t.Errorf("process %d does not run", pid)
		}
	}
}
