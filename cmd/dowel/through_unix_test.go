//go:build unix

package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/hub/control"
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

func (p *person) program(r mcp.Revision) *program {
	p.t.Helper()
	one := p.process()
	env := map[string]string{}
	for _, pair := range one.Env {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	c, err := client.Dial(p.t.Context(), stdio.Command{Path: self(p.t), Args: []string{"up", "--stdio"}, Dir: p.project, Env: env}, client.Options{
		Revision: r, Restart: client.Restart{Max: -1}, Logger: slog.New(slog.DiscardHandler),
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
