//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	callLimit = 20 * time.Second     // what a call may take before it is taken for lost
	callPause = 5 * time.Millisecond // between the calls of a caller
)

// clientLoad is clients of one dowel, in each way to it, that call it all the time.
type clientLoad struct {
	t       *testing.T
	clients map[string]*client.Client // by their way
	stopped chan struct{}
	callers sync.WaitGroup

	mu      sync.Mutex
	tallies map[string]tally // by tool
}

// tally is what became of calls.
type tally struct {
	answers, errors int
	last            error
	slowest         time.Duration
}

func (u *testUser) newClientLoad(url string) *clientLoad {
	u.t.Helper()
	c := &clientLoad{t: u.t, clients: map[string]*client.Client{}, stopped: make(chan struct{}), tallies: map[string]tally{}}
	c.dialClient("modern", url+"/mcp", "")
	c.dialClient("legacy", url+"/mcp", mcp.Revision20250618)
	c.dialClient("stdio", u.stdioCommand(), "")
	return c
}

func (l *clientLoad) dialClient(way string, target any, revision mcp.Revision) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), callLimit)
	defer cancel()
	one, err := client.Dial(ctx, target, &client.Options{
		Wire: client.Wire{Revision: revision}, Restart: client.Restart{Max: -1}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		l.t.Fatalf("%s: %v", way, err)
	}
	l.t.Cleanup(func() { one.Close() })
	l.clients[way] = one
}

// repeatCalls has each client call tools with a text, again and again until stop.
func (l *clientLoad) repeatCalls(tools ...string) {
	for _, tool := range tools {
		l.repeat(tool, callPause, func(ctx context.Context, one *client.Client, text string) error {
			got, err := client.Call[string](ctx, one, tool, map[string]string{"message": text})
			if err == nil && got != text {
				l.t.Errorf("%s: %q is answered with %q", tool, text, got)
			}
			return err
		})
	}
}

// repeatLists has each client list the tools, again and again until stop.
func (l *clientLoad) repeatLists(present string) {
	l.repeat("the list", 10*callPause, func(ctx context.Context, one *client.Client, _ string) error {
		tools, err := client.All(one.Tools(ctx, client.CallOptions{NoCache: true}))
		if err == nil && !slices.ContainsFunc(tools, func(tool mcp.Tool) bool { return tool.Name == present }) {
			err = fmt.Errorf("%s is not in the list of %d tools", present, len(tools))
		}
		return err
	})
}

// repeat does something for each client, one after the other, until stop.
func (l *clientLoad) repeat(what string, pause time.Duration, do func(ctx context.Context, one *client.Client, text string) error) {
	for way, one := range l.clients {
		l.callers.Go(func() {
			for n := 0; ; n++ {
				text := fmt.Sprintf("%s, number %d", way, n)
				ctx, cancel := context.WithTimeout(context.Background(), callLimit)
				began := time.Now()
				err := do(ctx, one, text)
				if ctx.Err() != nil {
					l.t.Errorf("%s: %s is neither answered nor given up: %v", what, text, err)
				}
				cancel()
				l.recordCall(what, time.Since(began), err)
				select {
				case <-l.stopped:
					return
				case <-time.After(pause):
				}
			}
		})
	}
}

func (l *clientLoad) recordCall(what string, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.tallies[what]
	if n.slowest = max(n.slowest, took); err == nil {
		n.answers++
	} else {
		n.errors++
		n.last = err
	}
	l.tallies[what] = n
}

// awaitAnswers waits until the calls are under way.
func (l *clientLoad) awaitAnswers() {
	l.t.Helper()
	const enough = 20
	for end := time.Now().Add(callLimit); ; time.Sleep(callPause) {
		l.mu.Lock()
		tallies := maps.Clone(l.tallies)
		l.mu.Unlock()
		least := enough
		for _, n := range tallies {
			least = min(least, n.answers)
		}
		if len(tallies) > 0 && least == enough {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("the calls are not under way: %+v", tallies)
		}
	}
}

// startBlockedCalls has clients call a tool that waits to be cancelled, and returns when all calls are there. They are to end with dowel: cut
// waits for that.
func (l *clientLoad) startBlockedCalls(tool string, ways ...string) (cut func(limit time.Duration)) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	there, ended := make(chan string, len(ways)), make(chan string, len(ways))
	for _, way := range ways {
		go func() {
			_, err := client.Call[string](ctx, l.clients[way], tool, nil, client.CallOptions{OnProgress: func(mcp.ProgressParams) { there <- way }})
			if err == nil {
				l.t.Errorf("%s: a call of %s is answered", way, tool)
			}
			ended <- way
		}()
	}
	late := time.After(callLimit)
	for n := range ways {
		select {
		case <-there:
		case <-late:
			l.t.Fatalf("of the calls of %s from %v %d get there", tool, ways, n)
		}
	}
	return func(limit time.Duration) {
		l.t.Helper()
		defer cancel()
		late := time.After(limit)
		for n := 0; n < len(ways); {
			select {
			case way := <-ended:
				if n++; ctx.Err() != nil {
					l.t.Errorf("%s: a call in flight has not ended %v after dowel", way, limit)
				}
			case <-late:
				cancel() // and wait for those that are left
			}
		}
	}
}

// stopCalls ends the calls and returns what became of those of each tool.
func (l *clientLoad) stopCalls() map[string]tally {
	close(l.stopped)
	l.callers.Wait()
	for _, what := range slices.Sorted(maps.Keys(l.tallies)) {
		n := l.tallies[what]
		l.t.Logf("%s: %d answers, %d errors (the last: %v), at most %v", what, n.answers, n.errors, n.last, n.slowest.Round(time.Millisecond))
	}
	return l.tallies
}

// closeClients ends the clients.
func (l *clientLoad) closeClients() {
	for _, one := range l.clients {
		one.Close()
	}
}

// scriptEntry is an entry for a server that a shell script starts as $SERVER, and that writes the ids of its processes to $LOG.
func (u *testUser) scriptEntry(name, script string, more ...string) string {
	return fmt.Sprintf(`{"command": "/bin/sh", "args": ["-c", %q], "env": {"SERVER": %q, "WORD": %q, "LOG": %q%s}}`,
		script, testBinary(u.t), serverWord, u.logPath(name), strings.Join(more, ""))
}

// execScript is the script of a server of one process, with what follows the id in the log.
const execScript = `echo $$ $VALUE >> "$LOG"; exec "$SERVER" $WORD`

func (u *testUser) logPath(name string) string { return filepath.Join(u.home, name+".log") }

// readLog returns the ids in a server's log, and what follows the last one.
func (u *testUser) readLog(name string) (pids []int, last string) {
	u.t.Helper()
	text, err := os.ReadFile(u.logPath(name))
	if err != nil {
		u.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(id)
		if err != nil {
			u.t.Fatalf("%s: %q", u.logPath(name), line)
		}
		pids, last = append(pids, pid), rest
	}
	return pids, last
}

// awaitExit waits for the dowel that runs to end, and returns its exit code.
func (u *testUser) awaitExit(limit time.Duration) int {
	u.t.Helper()
	late := time.AfterFunc(limit, func() { _ = u.cmd.Process.Kill() }) // it may have ended
	_ = u.cmd.Wait()                                                   // the state says more
	if !late.Stop() {
		u.t.Errorf("dowel up has not ended within %v:\n%s", limit, u.output())
	}
	code := u.cmd.ProcessState.ExitCode()
	u.cmd = nil
	return code
}

// isRunning reports whether a process runs: a zombie does not, for which nobody may be there to reap it.
func isRunning(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	state, _ := readProcStat(pid)
	return state != "Z" && state != "X"
}

// readProcStat returns the state and the parent of a process; nothing where the system has no such file.
func readProcStat(pid int) (state string, parent int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // behind the name, which may hold anything
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// descendants returns the processes that a process has started, and those that they have, where the system lists them.
func descendants(pid int) (all []int) {
	entries, _ := os.ReadDir("/proc")
	children := map[int][]int{}
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			_, parent := readProcStat(id)
			children[parent] = append(children[parent], id)
		}
	}
	for next := children[pid]; len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, children[next[0]]...)
	}
	return all
}

// awaitExits waits for processes to be gone.
func awaitExits(t *testing.T, pids []int, limit time.Duration) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if !slices.ContainsFunc(pids, isRunning) {
			return
		}
		if time.Now().After(end) {
			t.Errorf("of the processes %v some are left: %v", pids, slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !isRunning(pid) }))
			return
		}
	}
}
