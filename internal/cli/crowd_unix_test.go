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
	lost  = 20 * time.Second     // what a call may take before it is taken for lost
	pause = 5 * time.Millisecond // between the calls of a caller
)

// crowd is clients of one dowel, in each way to it, that call it all the time.
type crowd struct {
	t       *testing.T
	clients map[string]*client.Client // by their way
	over    chan struct{}
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

func (p *person) crowd(url string) *crowd {
	p.t.Helper()
	c := &crowd{t: p.t, clients: map[string]*client.Client{}, over: make(chan struct{}), tallies: map[string]tally{}}
	c.dial("modern", url+"/mcp", "")
	c.dial("legacy", url+"/mcp", mcp.Revision20250618)
	c.dial("stdio", p.stdio(), "")
	return c
}

func (c *crowd) dial(way string, target any, revision mcp.Revision) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), lost)
	defer cancel()
	one, err := client.Dial(ctx, target, &client.Options{
		Wire: client.Wire{Revision: revision}, Restart: client.Restart{Max: -1}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		c.t.Fatalf("%s: %v", way, err)
	}
	c.t.Cleanup(func() { one.Close() })
	c.clients[way] = one
}

// call has each client call tools with a text, again and again until stop.
func (c *crowd) call(tools ...string) {
	for _, tool := range tools {
		c.often(tool, pause, func(ctx context.Context, one *client.Client, text string) error {
			got, err := client.Call[string](ctx, one, tool, map[string]string{"message": text})
			if err == nil && got != text {
				c.t.Errorf("%s: %q is answered with %q", tool, text, got)
			}
			return err
		})
	}
}

// list has each client list the tools, again and again until stop.
func (c *crowd) list(present string) {
	c.often("the list", 10*pause, func(ctx context.Context, one *client.Client, _ string) error {
		tools, err := client.All(one.Tools(ctx, client.CallOptions{NoCache: true}))
		if err == nil && !slices.ContainsFunc(tools, func(tool mcp.Tool) bool { return tool.Name == present }) {
			err = fmt.Errorf("%s is not in the list of %d tools", present, len(tools))
		}
		return err
	})
}

// often does something for each client, one after the other, until stop.
func (c *crowd) often(what string, pause time.Duration, do func(ctx context.Context, one *client.Client, text string) error) {
	for way, one := range c.clients {
		c.callers.Go(func() {
			for n := 0; ; n++ {
				text := fmt.Sprintf("%s, number %d", way, n)
				ctx, cancel := context.WithTimeout(context.Background(), lost)
				began := time.Now()
				err := do(ctx, one, text)
				if ctx.Err() != nil {
					c.t.Errorf("%s: %s is neither answered nor given up: %v", what, text, err)
				}
				cancel()
				c.note(what, time.Since(began), err)
				select {
				case <-c.over:
					return
				case <-time.After(pause):
				}
			}
		})
	}
}

func (c *crowd) note(what string, took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.tallies[what]
	if n.slowest = max(n.slowest, took); err == nil {
		n.answers++
	} else {
		n.errors++
		n.last = err
	}
	c.tallies[what] = n
}

// busy waits until the calls are under way.
func (c *crowd) busy() {
	c.t.Helper()
	const enough = 20
	for end := time.Now().Add(lost); ; time.Sleep(pause) {
		c.mu.Lock()
		tallies := maps.Clone(c.tallies)
		c.mu.Unlock()
		least := enough
		for _, n := range tallies {
			least = min(least, n.answers)
		}
		if len(tallies) > 0 && least == enough {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("the calls are not under way: %+v", tallies)
		}
	}
}

// wait has clients call a tool that waits to be cancelled, and returns when all calls are there. They are to end with dowel: cut
// waits for that.
func (c *crowd) wait(tool string, ways ...string) (cut func(limit time.Duration)) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	there, ended := make(chan string, len(ways)), make(chan string, len(ways))
	for _, way := range ways {
		go func() {
			_, err := client.Call[string](ctx, c.clients[way], tool, nil, client.CallOptions{OnProgress: func(mcp.ProgressParams) { there <- way }})
			if err == nil {
				c.t.Errorf("%s: a call of %s is answered", way, tool)
			}
			ended <- way
		}()
	}
	late := time.After(lost)
	for n := range ways {
		select {
		case <-there:
		case <-late:
			c.t.Fatalf("of the calls of %s from %v %d get there", tool, ways, n)
		}
	}
	return func(limit time.Duration) {
		c.t.Helper()
		defer cancel()
		late := time.After(limit)
		for n := 0; n < len(ways); {
			select {
			case way := <-ended:
				if n++; ctx.Err() != nil {
					c.t.Errorf("%s: a call in flight has not ended %v after dowel", way, limit)
				}
			case <-late:
				cancel() // and wait for those that are left
			}
		}
	}
}

// stop ends the calls and returns what became of those of each tool.
func (c *crowd) stop() map[string]tally {
	close(c.over)
	c.callers.Wait()
	for _, what := range slices.Sorted(maps.Keys(c.tallies)) {
		n := c.tallies[what]
		c.t.Logf("%s: %d answers, %d errors (the last: %v), at most %v", what, n.answers, n.errors, n.last, n.slowest.Round(time.Millisecond))
	}
	return c.tallies
}

// leave ends the clients.
func (c *crowd) leave() {
	for _, one := range c.clients {
		one.Close()
	}
}

// scripted is an entry for a server that a shell script starts as $SERVER, and that writes the ids of its processes to $LOG.
func (p *person) scripted(name, script string, more ...string) string {
	return fmt.Sprintf(`{"command": "/bin/sh", "args": ["-c", %q], "env": {"SERVER": %q, "WORD": %q, "LOG": %q%s}}`,
		script, self(p.t), serverWord, p.log(name), strings.Join(more, ""))
}

// becomes is the script of a server of one process, with what follows the id in the log.
const becomes = `echo $$ $VALUE >> "$LOG"; exec "$SERVER" $WORD`

func (p *person) log(name string) string { return filepath.Join(p.home, name+".log") }

// logged returns the ids in a server's log, and what follows the last one.
func (p *person) logged(name string) (pids []int, last string) {
	p.t.Helper()
	text, err := os.ReadFile(p.log(name))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(id)
		if err != nil {
			p.t.Fatalf("%s: %q", p.log(name), line)
		}
		pids, last = append(pids, pid), rest
	}
	return pids, last
}

// ends waits for the dowel that runs to end, and returns its exit code.
func (p *person) ends(limit time.Duration) int {
	p.t.Helper()
	late := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() }) // it may have ended
	_ = p.cmd.Wait()                                                   // the state says more
	if !late.Stop() {
		p.t.Errorf("dowel up has not ended within %v:\n%s", limit, p.all())
	}
	code := p.cmd.ProcessState.ExitCode()
	p.cmd = nil
	return code
}

// alive reports whether a process runs: a zombie does not, for which nobody may be there to reap it.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	state, _ := stat(pid)
	return state != "Z" && state != "X"
}

// stat returns the state and the parent of a process; nothing where the system has no such file.
func stat(pid int) (state string, parent int) {
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
			_, parent := stat(id)
			children[parent] = append(children[parent], id)
		}
	}
	for next := children[pid]; len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, children[next[0]]...)
	}
	return all
}

// gone waits for processes to be gone.
func gone(t *testing.T, pids []int, limit time.Duration) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if !slices.ContainsFunc(pids, alive) {
			return
		}
		if time.Now().After(end) {
			t.Errorf("of the processes %v some are left: %v", pids, slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !alive(pid) }))
			return
		}
	}
}
