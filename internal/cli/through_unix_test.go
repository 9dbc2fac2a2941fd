//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// watchedURI is a resource of the server everything that changes.
const watchedURI = "test://watched-resource"

// program is a client that has started dowel up --stdio.
type program struct {
	*client.Client
	t *testing.T
}

// stdio is what such a client starts.
func (p *person) stdio() stdio.Command {
	env := map[string]string{}
	for _, name := range homes {
		env[name] = p.home
	}
	return stdio.Command{Path: self(p.t), Args: []string{"up", "--stdio"}, Dir: p.project, Env: env}
}

func (p *person) program(r mcp.Revision) *program {
	p.t.Helper()
	c, err := client.Dial(p.t.Context(), p.stdio(), &client.Options{
		Wire: client.Wire{Revision: r}, Restart: client.Restart{Max: -1}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return &program{Client: c, t: p.t}
}

// says calls a tool until it says something: the dowel that is running may be changing.
func (c *program) says(want, tool string, args map[string]string) {
	c.t.Helper()
	var got string
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got, err = client.Call[string](c.t.Context(), c.Client, tool, args); err == nil && strings.Contains(got, want) {
			return
		}
	}
	c.t.Errorf("%s: %q, %v, want %q", tool, got, err, want)
}

func (c *program) echoes() {
	c.t.Helper()
	c.says("hi", "one__echo", map[string]string{"message": "hi"})
}

// running waits until another process is the dowel that runs, and returns which.
func (p *person) running(not int) int {
	p.t.Helper()
	c := control.NewClient(control.Path(p.home, p.home))
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Second)
		s, err := c.Status(ctx)
		cancel()
		if err == nil && s.PID != not {
			return s.PID
		}
	}
	p.t.Fatalf("no other dowel than %d is running", not)
	return 0
}

// Clients that have started dowel up --stdio do not notice which dowel is the one that is running: one of their own, or one
// that somebody has started and ends again.
func TestUpStdioHandsOver(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(p.own(), `{"mcpServers": {"one": `+p.served("everything", "")+`, "notes": `+p.served("kv", "")+`}}`)
	older, newer := p.program(mcp.Revision20250618), p.program(mcp.LatestRevision)
	first := p.running(os.Getpid())
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
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
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
		t.Errorf("%s: nobody told of a change", when)
	}
	older.echoes()
	newer.echoes()
	hears("at first")

	p.up()
	second := p.running(first)
	if second != p.cmd.Process.Pid {
		t.Errorf("%d is running, want %d", second, p.cmd.Process.Pid)
	}
	p.until(map[string]hub.Status{"one": hub.Ready, "notes": hub.Ready})
	older.echoes()
	newer.echoes()
	hears("through the one that shows its page")

	p.down()
	third := p.running(second)
	older.echoes()
	newer.echoes()
	hears("when that has ended")
	p.until(map[string]hub.Status{"one": hub.Ready, "notes": hub.Ready}) // one process at a time can have its file

	owner, other := older, newer
	if third != first {
		owner, other = newer, older
	}
	owner.Close()
	p.running(third)
	other.echoes()
}

// Each process that goes through the dowel that is running is a client of its own.
func TestUpStdioIsAClient(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(p.own(), `{"mcpServers": {"notes": {"command": "`+self(t)+`", "args": ["serve", "kv", "memory=true"], "sharing": "client"}}}`)
	p.up()
	p.until(map[string]hub.Status{"notes": hub.Ready})
	one, other := p.program(mcp.LatestRevision), p.program(mcp.Revision20250618)
	one.says("", "notes__set", map[string]string{"key": "k", "value": "mine"})
	other.says("", "notes__set", map[string]string{"key": "k", "value": "the other's"})
	one.says("mine", "notes__get", map[string]string{"key": "k"})
	other.says("the other's", "notes__get", map[string]string{"key": "k"})
}

// A client that comes while the dowel that is running ends waits for the next one.
func TestUpStdioWhileOneEnds(t *testing.T) {
	t.Parallel()
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20250618} {
		t.Run(string(r), func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			p.write(p.own(), `{"mcpServers": {"one": `+p.served("everything", "")+`}}`)
			place, err := control.Listen(control.Path(p.home, p.home))
			if err != nil {
				t.Fatal(err)
			}
			place.Close() // nobody is let in, and its servers take a while
			time.AfterFunc(2*time.Second, func() { _ = place.Release() })
			c := p.program(r)
			if _, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListTools}); err != nil {
				t.Error(err)
			}
			if got, err := client.Call[string](t.Context(), c.Client, "one__echo", map[string]string{"message": "hi"}); got != "hi" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// calm calls a tool all the time for a while, and says what fails.
func (c *program) calm(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := client.Call[string](c.t.Context(), c.Client, "one__echo", map[string]string{"message": "hi"}); err != nil {
			c.t.Errorf("a call at a hand-over: %v", err)
		}
	}
}

// slow makes calls that take a second.
func (c *program) slow(work *sync.WaitGroup) {
	for range 10 {
		work.Go(func() {
			if _, err := client.Call[json.RawMessage](c.t.Context(), c.Client, "one__slow", map[string]any{"seconds": 1.0}); err != nil {
				c.t.Errorf("a call in flight at a hand-over: %v", err)
			}
		})
	}
}

// Calls in flight at a hand-over are done, and those that come meanwhile wait: of clients that go through a dowel that ends, and
// of the one that makes room.
func TestUpStdioLosesNoCall(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(p.own(), `{"mcpServers": {"one": `+p.served("everything", "")+`}}`)
	owner := p.program(mcp.LatestRevision)
	first := p.running(os.Getpid())
	other := p.program(mcp.Revision20250618)
	for _, c := range []*program{owner, other} {
		c.echoes()
	}
	during := func(change func()) {
		var work sync.WaitGroup
		for _, c := range []*program{owner, other} {
			c.slow(&work)
			work.Go(func() { c.calm(3 * time.Second) })
		}
		time.Sleep(300 * time.Millisecond)
		change()
		work.Wait()
	}
	during(func() { p.up(); first = p.running(first) })
	p.until(map[string]hub.Status{"one": hub.Ready})
	during(func() { p.down(); p.running(first) })
}

// Header fields that mirror arguments are sent whatever a model makes of a tool's name.
func TestUpStdioSendsHeaders(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(p.own(), `{"mcpServers": {"one": `+p.served("everything", "")+`}}`)
	c := p.program(mcp.LatestRevision)
	c.echoes()
	try := func(when string) {
		for _, name := range []string{"one__test_x_mcp_header", "one.test_x_mcp_header", "one__test-x-mcp-header", "test_x_mcp_header"} {
			if _, err := client.Call[string](t.Context(), c.Client, name, map[string]any{"region": "eu"}); err != nil {
				t.Errorf("%s: %s: %v", when, name, err)
			}
		}
	}
	try("alone")
	first := p.running(os.Getpid())
	p.up()
	p.running(first)
	p.until(map[string]hub.Status{"one": hub.Ready})
	c.echoes()
	try("through another")
}
