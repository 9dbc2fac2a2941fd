//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
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
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	callLimit = polltest.Limit       // a call that takes longer counts as lost
	callPause = 5 * time.Millisecond // between two calls of a client
)

// clientLoad calls one dowel all the time, with a client for each way to reach it.
type clientLoad struct {
	header  http.Header // has the gateway\'s token
	t       *testing.T
	clients map[string]*client.Client // keyed by the way to reach dowel
	stopped chan struct{}
	callers sync.WaitGroup

	mu      sync.Mutex
	tallies map[string]tally // keyed by tool
}

// tally counts the results of calls.
type tally struct {
	answers, errors int
	last            error
	slowest         time.Duration
}

func (u *testUser) newClientLoad(url string) *clientLoad {
	u.t.Helper()
	c := &clientLoad{t: u.t, clients: map[string]*client.Client{}, stopped: make(chan struct{}), tallies: map[string]tally{}}
	c.header = u.tokenHeader()
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
		HTTP: client.HTTP{Header: func(context.Context) (http.Header, error) { return l.header, nil }},
	})
	if err != nil {
		l.t.Fatalf("%s: %v", way, err)
	}
	l.t.Cleanup(func() { one.Close() })
	l.clients[way] = one
}

// repeatCalls makes each client call tools and check the answers, until stopCalls.
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

// repeatLists makes each client list the tools, until stopCalls.
func (l *clientLoad) repeatLists(present string) {
	l.repeat("the list", 10*callPause, func(ctx context.Context, one *client.Client, _ string) error {
		tools, err := client.All(one.Tools(ctx, client.CallOptions{NoCache: true}))
		if err == nil && !slices.ContainsFunc(tools, func(tool mcp.Tool) bool { return tool.Name == present }) {
			err = fmt.Errorf("%s is not in the list of %d tools", present, len(tools))
		}
		return err
	})
}

// repeat calls do in a loop for each client, until stopCalls. It records the results under name.
func (l *clientLoad) repeat(name string, pause time.Duration, do func(ctx context.Context, one *client.Client, text string) error) {
	for way, one := range l.clients {
		l.callers.Go(func() {
			for n := 0; ; n++ {
				text := fmt.Sprintf("%s, number %d", way, n)
				ctx, cancel := context.WithTimeout(context.Background(), callLimit)
				began := time.Now()
				err := do(ctx, one, text)
				if ctx.Err() != nil {
					l.t.Errorf("%s: %s is neither answered nor given up: %v", name, text, err)
				}
				cancel()
				l.recordCall(name, time.Since(began), err)
				select {
				case <-l.stopped:
					return
				case <-time.After(pause):
				}
			}
		})
	}
}

func (l *clientLoad) recordCall(name string, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.tallies[name]
	if n.slowest = max(n.slowest, took); err == nil {
		n.answers++
	} else {
		n.errors++
		n.last = err
	}
	l.tallies[name] = n
}

// countErrors returns the number of failed calls of a tool so far.
func (l *clientLoad) countErrors(tool string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tallies[tool].errors
}

// awaitAnswers waits until each kind of call has 20 answers.
func (l *clientLoad) awaitAnswers() {
	l.t.Helper()
	const enough = 20
	polltest.UntilNil(l.t, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		least := enough
		for _, n := range l.tallies {
			least = min(least, n.answers)
		}
		if len(l.tallies) == 0 || least < enough {
			return fmt.Errorf("the calls are not under way: %+v", l.tallies)
		}
		return nil
	})
}

// startBlockedCalls makes clients call a tool that blocks until its call is canceled, and returns
// when all calls have reached the server. awaitCut waits until dowel's end has ended them too.
func (l *clientLoad) startBlockedCalls(tool string, ways ...string) (awaitCut func(limit time.Duration)) {
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
				cancel() // and wait for the remaining calls
			}
		}
	}
}

// stopCalls stops the loops and returns the results for each tool.
func (l *clientLoad) stopCalls() map[string]tally {
	close(l.stopped)
	l.callers.Wait()
	for _, what := range slices.Sorted(maps.Keys(l.tallies)) {
		n := l.tallies[what]
		l.t.Logf("%s: %d answers, %d errors (the last: %v), at most %v", what, n.answers, n.errors, n.last, n.slowest.Round(time.Millisecond))
	}
	return l.tallies
}

// closeClients closes all clients.
func (l *clientLoad) closeClients() {
	for _, one := range l.clients {
		one.Close()
	}
}

// scriptEntry returns an entry for a server that a shell script starts as $SERVER. The script
// writes the ids of its processes to $LOG.
func (u *testUser) scriptEntry(name, script string, more ...string) string {
	return fmt.Sprintf(`{"command": "/bin/sh", "args": ["-c", %q], "env": {"SERVER": %q, "WORD": %q, "LOG": %q%s}}`,
		script, testBinary(u.t), serverWord, u.logPath(name), strings.Join(more, ""))
}

// execScript starts a server in the script's own process, and writes $VALUE after the id.
const execScript = `echo $$ $VALUE >> "$LOG"; exec "$SERVER" $WORD`

func (u *testUser) logPath(name string) string { return filepath.Join(u.home, name+".log") }

// readLog returns the process ids in a server's log, and the text after the last one.
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

// awaitExit waits for the user's daemon to end and returns its exit code. It kills it after limit.
func (u *testUser) awaitExit(limit time.Duration) int {
	u.t.Helper()
	late := time.AfterFunc(limit, func() { _ = u.cmd.Process.Kill() }) // fails if it has ended
	_ = u.cmd.Wait()                                                   // ProcessState has the result
	if !late.Stop() {
		u.t.Errorf("dowel up has not ended within %v:\n%s", limit, u.output())
	}
	code := u.cmd.ProcessState.ExitCode()
	u.cmd = nil
	return code
}

// isRunning reports whether a process runs. A zombie does not count: its parent may never reap it.
func isRunning(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	state, _ := readProcStat(pid)
	return state != "Z" && state != "X"
}

// readProcStat returns the state and the parent of a process, or zero values on systems without
// /proc.
func readProcStat(pid int) (state string, parent int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // skips the name, which may contain spaces
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// descendants returns the children of a process and all their descendants. It returns nil on
// systems without /proc.
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

// awaitExits waits until none of the processes runs.
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
