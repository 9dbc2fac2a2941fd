//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A file is rewritten fifty times a second, in all ways that editors use. Servers with an unchanged
// entry answer every call, and at the end the servers match the file.
func TestUpRewrittenUnderLoad(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.variables = []string{longGraceVariable + "=1"} // on a busy machine, seconds pass between removing and writing the file
	text := func(value string) string {
		return fmt.Sprintf(`{"mcpServers": {"same": %s, "changes": %s}}`, p.scriptEntry("same", execScript), p.scriptEntry("changes", execScript, `, "VALUE": "`+value+`"`))
	}
	p.writeFile(p.userFile(), text("first"))
	url := p.startDaemon()
	ready := map[string]hub.Status{"same": hub.Ready, "changes": hub.Ready}
	p.awaitStates(ready)
	same, _ := p.readLog("same")
	c := p.newClientLoad(url)
	c.repeatCalls("same__echo", "changes__echo")

	const rewritten, most = 200, 1000
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var all []int // processes of the changing server
	var value, now string
	for i := 0; i < rewritten || len(all) < 3 && i < most; i++ {
		<-tick.C
		all, _ = p.readLog("changes")
		switch {
		case i%10 == 3 || i%10 == 7:
			now = text(value)[:20+i%rewritten]
		case i%10 != 5: // otherwise the same text again
			value = []string{"one", "two"}[i/2%2]
			now = text(value)
		}
		p.rewrite(now, i)
	}
	value = "final"
	p.rewrite(text(value), 0)

	polltest.UntilNil(t, func() error {
		var runs string
		all, runs = p.readLog("changes")
		before := slices.ContainsFunc(all[:len(all)-1], isRunning)
		if runs == value && isRunning(all[len(all)-1]) && !before {
			return nil
		}
		return fmt.Errorf("%q runs, want %q alone: %v\n%s", runs, value, all, p.output())
	})
	p.awaitStates(ready)
	tallies := c.stopCalls()
	if n := tallies["same__echo"]; n.errors > 0 || n.answers < 100 {
		t.Errorf("calls of a server that has not changed: %+v", n)
	}
	if n := tallies["changes__echo"]; n.answers == 0 || len(all) < 3 {
		t.Errorf("too little happened to test it: %+v, started %d times", n, len(all))
	}
	if now, _ := p.readLog("same"); !slices.Equal(now, same) || !isRunning(same[0]) {
		t.Errorf("a server was restarted that has not changed: %v, then %v\n%s", same, now, p.output())
	}
	all = slices.Concat(all, same, descendants(p.cmd.Process.Pid))
	c.closeClients()
	p.stopDaemon()
	awaitExits(t, all, 0)
}

// rewrite writes the user's file in one of the ways that editors use: rename another file over it,
// write over it, empty it first, or remove it first.
func (u *testUser) rewrite(text string, way int) {
	u.t.Helper()
	path := u.userFile()
	var err error
	switch way % 4 {
	case 0:
		if err = os.WriteFile(path+".new", []byte(text), 0o600); err == nil {
			err = os.Rename(path+".new", path)
		}
	case 1:
		var f *os.File
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Truncate(int64(len(text))), f.Close())
		}
	case 2:
		err = os.WriteFile(path, nil, 0o600)
		time.Sleep(5 * time.Millisecond)
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
	case 3:
		err = os.Remove(path)
		time.Sleep(2 * time.Millisecond)
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
	}
	if err != nil {
		u.t.Fatal(err)
	}
}

// writeFamilies configures two servers with three processes each. One of them only ends with
// SIGKILL. The ids of the three are written at once, because dowel may end a family that is
// starting.
func (u *testUser) writeFamilies() (ready map[string]hub.Status) {
	const family = `sleep 600 & sh -c 'printf "%s\n" $1 $2 $$ >> "$LOG"; exec "$SERVER" $WORD' sh $$ $!; exit $?`
	u.writeFile(u.userFile(), fmt.Sprintf(`{"mcpServers": {"family": %s, "stubborn": %s}}`, u.scriptEntry("family", family), u.scriptEntry("stubborn", `trap '' TERM; `+family)))
	return map[string]hub.Status{"family": hub.Ready, "stubborn": hub.Ready}
}

// familyProcesses returns the current descendants of dowel and all processes that the two servers
// ever had.
func (u *testUser) familyProcesses() []int {
	u.t.Helper()
	all := descendants(u.cmd.Process.Pid)
	for _, name := range []string{"family", "stubborn"} {
		pids, _ := u.readLog(name)
		if len(pids)%3 != 0 || !slices.ContainsFunc(slices.Collect(slices.Chunk(pids, 3)), allRun) {
			u.t.Fatalf("the processes of %s are %v, and of no start all three live", name, pids)
		}
		all = append(all, pids...)
	}
	return all
}

func allRun(pids []int) bool {
	return !slices.ContainsFunc(pids, func(pid int) bool { return !isRunning(pid) })
}

// startUnderLoad starts dowel with the two servers and clients that call all the time. Each client
// also has a blocked call. all are the processes.
func (u *testUser) startUnderLoad(ready map[string]hub.Status) (c *clientLoad, awaitCut func(limit time.Duration), all []int) {
	u.t.Helper()
	url := u.startDaemon()
	u.awaitStates(ready)
	c = u.newClientLoad(url)
	c.repeatCalls("family__echo", "stubborn__echo")
	c.awaitAnswers()
	return c, c.startBlockedCalls("family__wait", "modern", "stdio", "legacy"), u.familyProcesses()
}

// If dowel is killed, its servers and calls end too, and the next dowel can start.
func TestUpKilledUnderLoad(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	ready := p.writeFamilies()
	c, awaitCut, all := p.startUnderLoad(ready)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.awaitExit(callLimit)
	awaitCut(callLimit) // the legacy client first tries to resume its answers
	awaitExits(t, all, polltest.Limit)
	for tool, n := range c.stopCalls() {
		if n.errors == 0 {
			t.Errorf("%s: too little happened to test it: %+v", tool, n)
		}
	}
	url := p.startDaemon() // replaces the stdio client's process, which took over from the killed one
	p.awaitStates(ready)
	again := p.newClientLoad(url)
	again.clients["stdio of before"] = c.clients["stdio"]
	again.repeatCalls("family__echo", "stubborn__echo")
	again.awaitAnswers()
	for tool, n := range again.stopCalls() {
		if n.errors > 0 {
			t.Errorf("%s: of a dowel in the place of one that was killed: %+v", tool, n)
		}
	}
	all = p.familyProcesses()
	c.closeClients()
	again.closeClients()
	p.stopDaemon()
	awaitExits(t, all, 0)
}

// Ctrl-C ends the servers and the calls before dowel itself ends.
func TestUpInterruptedUnderLoad(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	c, awaitCut, all := p.startUnderLoad(p.writeFamilies())
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.awaitExit(callLimit); code != exit.OK {
		t.Errorf("exit code %d:\n%s", code, p.output())
	}
	awaitExits(t, all, 0)
	awaitCut(polltest.Limit)
	for tool, n := range c.stopCalls() {
		if n.errors == 0 {
			t.Errorf("%s: too little happened to test it: %+v", tool, n)
		}
	}
	c.closeClients() // the stdio client's process may have become the daemon
	for _, name := range []string{"family", "stubborn"} {
		pids, _ := p.readLog(name)
		awaitExits(t, pids, polltest.Limit)
	}
}

// newGrowingServer starts a server that adds a tool at each list, up to most.
func newGrowingServer(t *testing.T, most int) (url string) {
	s := server.New("growing", "1", &server.Options{PageSize: 4})
	echo := func(_ context.Context, in struct {
		Message string `json:"message"`
	}) (string, error) {
		return in.Message, nil
	}
	server.Tool(s, "echo", "Says it again.", echo)
	var lists atomic.Int64
	handler := streamable.Handler(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method == mcp.MethodListTools {
			if n := lists.Add(1); n <= int64(most) {
				server.Tool(s, fmt.Sprint("more_", n), "More.", echo)
			}
		}
		return s.ServeMCP(ctx, req)
	}), nil)
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		defer cancel()
		if err := handler.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return web.URL
}

// Some servers are killed all the time, never answer, flood stderr, or grow while they are listed.
// The other servers are not affected.
func TestUpWithStrangeServers(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	const grown = 60
	p.writeFile(p.userFile(), `{"mcpServers": {
		"steady": `+p.scriptEntry("steady", execScript)+`,
		"mortal": `+p.scriptEntry("mortal", execScript)+`,
		"silent": {"command": "/bin/sh", "args": ["-c", "exec cat > /dev/null"], "startTimeout": "1h"},
		"flood": `+p.scriptEntry("flood", `(while :; do yes "All work and no play" | head -c 4000000; sleep 0.1; done >&2) & `+execScript)+`,
		"grows": {"type": "http", "url": "`+newGrowingServer(t, grown)+`"}
	}}`)
	url := p.startDaemon()
	others := map[string]hub.Status{"steady": hub.Ready, "mortal": hub.Ready, "silent": hub.Starting, "flood": hub.Ready, "grows": hub.Ready}
	p.awaitStates(others)
	steady, _ := p.readLog("steady")
	c := p.newClientLoad(url)
	c.repeatCalls("steady__echo", "flood__echo", "grows__echo", "mortal__echo")
	c.repeatLists("steady__echo")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	killed := 0
	polltest.UntilNil(t, func() error {
		<-tick.C
		if pids, _ := p.readLog("mortal"); syscall.Kill(pids[len(pids)-1], syscall.SIGKILL) == nil {
			killed++
		}
		if n := c.countErrors("mortal__echo"); killed < 4 || n == 0 {
			return fmt.Errorf("mortal was killed %d times, and %d of its calls failed", killed, n)
		}
		return nil
	})
	p.awaitStates(others)
	for what, n := range c.stopCalls() {
		switch {
		case n.answers == 0:
			t.Errorf("%s is never answered: %+v", what, n)
		case what != "mortal__echo" && n.errors > 0:
			t.Errorf("%s: %+v", what, n)
		}
	}
	polltest.UntilNil(t, func() error {
		if n := strings.Count(p.expectSuccess("", "tools", "--url", url+"/mcp"), "grows__more_"); n != grown {
			return fmt.Errorf("%d tools of a server that has grown to %d", n, grown)
		}
		return nil
	})
	if now, _ := p.readLog("steady"); !slices.Equal(now, steady) {
		t.Errorf("a server was restarted that nothing was done to: %v, then %v", steady, now)
	}
}
