//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// watchedURI is a changing resource of the server everything.
const watchedURI = "test://watched-resource"

// stdioClient is a client that started dowel up --stdio.
type stdioClient struct {
	*client.Client
	t *testing.T
}

// stdioCommand returns the command that a stdioClient starts.
func (u *testUser) stdioCommand() stdio.Command {
	env := map[string]string{}
	for _, name := range homeVariables {
		env[name] = u.home
	}
	return stdio.Command{Path: testBinary(u.t), Args: []string{"up", "--stdio"}, Dir: u.project, Env: env}
}

func (u *testUser) startStdioClient(r mcp.Revision) *stdioClient {
	u.t.Helper()
	c, err := client.Dial(u.t.Context(), u.stdioCommand(), &client.Options{
		Wire: client.Wire{Revision: r}, Restart: client.Restart{Max: -1}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { c.Close() })
	return &stdioClient{Client: c, t: u.t}
}

// expectText calls a tool until its result contains want. Calls may fail during a handover.
func (c *stdioClient) expectText(want, tool string, args map[string]string) {
	c.t.Helper()
	var got string
	var err error
	defer func() {
		if c.t.Failed() {
			c.t.Logf("%s: %q, %v", tool, got, err)
		}
	}()
	polltest.Until(c.t, tool+" answers "+want, func() bool {
		got, err = client.Call[string](c.t.Context(), c.Client, tool, args)
		return err == nil && strings.Contains(got, want)
	})
}

func (c *stdioClient) expectEcho() {
	c.t.Helper()
	c.expectText("hi", "one__echo", map[string]string{"message": "hi"})
}

// awaitDaemon waits until a process other than not is the daemon, and returns its id.
func (u *testUser) awaitDaemon(not int) (pid int) {
	u.t.Helper()
	c := control.NewClient(control.Path(u.home, u.home))
	polltest.Until(u.t, fmt.Sprintf("a daemon other than %d", not), func() bool {
		ctx, cancel := context.WithTimeout(u.t.Context(), polltest.Limit/4)
		defer cancel()
		s, err := c.Status(ctx)
		if err == nil {
			pid = s.PID
		}
		return err == nil && pid != not
	})
	return pid
}

// Clients of dowel up --stdio do not notice which process is the daemon: one of their own, or a
// dowel up that the user starts and ends.
func TestUpStdioHandsOver(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"one": `+p.builtInEntry("everything", "")+`, "notes": `+p.builtInEntry("kv", "")+`}}`)
	older, newer := p.startStdioClient(mcp.Revision20250618), p.startStdioClient(mcp.LatestRevision)
	first := p.awaitDaemon(os.Getpid())
	w, err := newer.Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{watchedURI}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	updates := make(chan client.Change, 1000)
	go func() {
		defer close(updates)
		for change, err := range w.Changes() {
			if err == nil {
				updates <- change
			}
		}
	}()
	hears := func(when string) {
		t.Helper()
		for len(updates) > 0 {
			<-updates
		}
		for end := time.Now().Add(polltest.Limit); time.Now().Before(end); {
			_, _ = client.Call[string](t.Context(), older.Client, "one__test_trigger_resource_update", nil)
			select {
			case change, ok := <-updates:
				if !ok || change.URI != watchedURI {
					t.Errorf("%s: %+v", when, change)
				}
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		t.Errorf("%s: no change was reported", when)
	}
	older.expectEcho()
	newer.expectEcho()
	hears("at first")

	p.startDaemon()
	second := p.awaitDaemon(first)
	if second != p.cmd.Process.Pid {
		t.Errorf("%d is running, want %d", second, p.cmd.Process.Pid)
	}
	p.awaitStates(map[string]hub.Status{"one": hub.Ready, "notes": hub.Ready})
	older.expectEcho()
	newer.expectEcho()
	hears("through the one that shows its page")

	p.stopDaemon()
	third := p.awaitDaemon(second)
	older.expectEcho()
	newer.expectEcho()
	hears("when that has ended")
	p.awaitStates(map[string]hub.Status{"one": hub.Ready, "notes": hub.Ready}) // only one process at a time can open its file

	owner, other := older, newer
	if third != first {
		owner, other = newer, older
	}
	owner.Close()
	p.awaitDaemon(third)
	other.expectEcho()
}

// The daemon treats each dowel up --stdio as a separate client.
func TestUpStdioIsAClient(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"notes": {"command": "`+testBinary(t)+`", "args": ["serve", "kv", "memory=true"], "sharing": "client"}}}`)
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"notes": hub.Ready})
	one, other := p.startStdioClient(mcp.LatestRevision), p.startStdioClient(mcp.Revision20250618)
	one.expectText("", "notes__set", map[string]string{"key": "k", "value": "mine"})
	other.expectText("", "notes__set", map[string]string{"key": "k", "value": "the other's"})
	one.expectText("mine", "notes__get", map[string]string{"key": "k"})
	other.expectText("the other's", "notes__get", map[string]string{"key": "k"})
}

// A client that starts while the daemon ends waits for the next daemon.
func TestUpStdioWhileOneEnds(t *testing.T) {
	t.Parallel()
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20250618} {
		t.Run(string(r), func(t *testing.T) {
			t.Parallel()
			p := newTestUser(t)
			p.writeFile(p.userFile(), `{"mcpServers": {"one": `+p.builtInEntry("everything", "")+`}}`)
			place, err := control.Listen(control.Path(p.home, p.home))
			if err != nil {
				t.Fatal(err)
			}
			place.Close() // it accepts no clients and ends slowly
			time.AfterFunc(2*time.Second, func() { _ = place.Release() })
			c := p.startStdioClient(r)
			if _, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListTools}); err != nil {
				t.Error(err)
			}
			if got, err := client.Call[string](t.Context(), c.Client, "one__echo", map[string]string{"message": "hi"}); got != "hi" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// callDuring calls a tool repeatedly for d and reports failures.
func (c *stdioClient) callDuring(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := client.Call[string](c.t.Context(), c.Client, "one__echo", map[string]string{"message": "hi"}); err != nil {
			c.t.Errorf("a call at a hand-over: %v", err)
		}
	}
}

// startSlowCalls starts ten calls that take a second each.
func (c *stdioClient) startSlowCalls(work *sync.WaitGroup) {
	for range 10 {
		work.Go(func() {
			if _, err := client.Call[json.RawMessage](c.t.Context(), c.Client, "one__slow", map[string]any{"seconds": 1.0}); err != nil {
				c.t.Errorf("a call in flight at a hand-over: %v", err)
			}
		})
	}
}

// At a handover, calls in flight finish and new calls wait. This holds for clients of the old
// daemon and for the client of the process that was the daemon.
func TestUpStdioLosesNoCall(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"one": `+p.builtInEntry("everything", "")+`}}`)
	owner := p.startStdioClient(mcp.LatestRevision)
	first := p.awaitDaemon(os.Getpid())
	other := p.startStdioClient(mcp.Revision20250618)
	for _, c := range []*stdioClient{owner, other} {
		c.expectEcho()
	}
	during := func(change func()) {
		var work sync.WaitGroup
		for _, c := range []*stdioClient{owner, other} {
			c.startSlowCalls(&work)
			work.Go(func() { c.callDuring(3 * time.Second) })
		}
		time.Sleep(300 * time.Millisecond)
		change()
		work.Wait()
	}
	during(func() { p.startDaemon(); first = p.awaitDaemon(first) })
	p.awaitStates(map[string]hub.Status{"one": hub.Ready})
	during(func() { p.stopDaemon(); p.awaitDaemon(first) })
}

// Header fields that mirror arguments are sent even if the tool's name is encoded for models.
func TestUpStdioSendsHeaders(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"one": `+p.builtInEntry("everything", "")+`}}`)
	c := p.startStdioClient(mcp.LatestRevision)
	c.expectEcho()
	try := func(when string) {
		for _, name := range []string{"one__test_x_mcp_header", "one.test_x_mcp_header", "one__test-x-mcp-header", "test_x_mcp_header"} {
			if _, err := client.Call[string](t.Context(), c.Client, name, map[string]any{"region": "eu"}); err != nil {
				t.Errorf("%s: %s: %v", when, name, err)
			}
		}
	}
	try("alone")
	first := p.awaitDaemon(os.Getpid())
	p.startDaemon()
	p.awaitDaemon(first)
	p.awaitStates(map[string]hub.Status{"one": hub.Ready})
	c.expectEcho()
	try("through another")
}
