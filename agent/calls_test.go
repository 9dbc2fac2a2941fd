package agent_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// A tool that breaks the contract of Tools fails its own call only.
func TestBadTools(t *testing.T) {
	for want, run := range map[string]func() *mcp.CallToolResult{
		"The tool has ended without a result.": func() *mcp.CallToolResult { return nil },
		"The tool has panicked: oh no":         func() *mcp.CallToolResult { panic("oh no") },
		"The tool has ended without a result":  func() *mcp.CallToolResult { runtime.Goexit(); return nil },
	} {
		b := newBench("read")
		b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
			return run(), nil
		}
		a := newTrustingAgent(&script{t: t, replies: []reply{says("", "read {}", "read {}"), says("done")}}, b, nil)
		if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
			t.Error(err)
		}
		for _, c := range a.Messages()[2].Content {
			if !c.ToolResult.IsError || !strings.HasPrefix(c.ToolResult.Content[0].Text, want) {
				t.Errorf("%+v, want %s", c.ToolResult, want)
			}
		}
	}
}

func TestNoTools(t *testing.T) {
	a := newTrustingAgent(&script{t: t, replies: []reply{says("", "read {}"), says("done")}}, nil, nil)
	expect(t, a, "thinking", "acting", "ends: This tool was not run: there is no tool read.", "thinking", "finished", "answered in 2, 200 and 20 tokens")
}

// A run that ends at CallStarted does not make the call.
func TestEndedAtStart(t *testing.T) {
	for _, how := range []string{"left", "cancelled"} {
		b := newBench("read")
		a := newTrustingAgent(&script{t: t, replies: []reply{says("", "read {}", "search_tools {}"), says("done")}}, b, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var refused []string
		for e := range a.Run(ctx, mcp.Text("go")) {
			switch e := e.(type) {
			case agent.CallStarted:
				cancel()
			case agent.CallEnded:
				refused = append(refused, e.Refusal)
			}
			if how == "left" && ctx.Err() != nil {
				break
			}
		}
		cancel()
		if len(b.called) != 0 || how == "cancelled" && !slices.Equal(refused, []string{"the work was interrupted", "the work was interrupted"}) {
			t.Errorf("%s: called %q, %q", how, b.called, refused)
		}
		for _, c := range a.Messages()[2].Content {
			if text := c.ToolResult.Content[0].Text; text != "This tool was not run: the work was interrupted." {
				t.Errorf("%s: %s", how, text)
			}
		}
	}
}

// flaky holds tools that sometimes fail to list.
type flaky struct {
	*bench
	fail error
}

func (f *flaky) List(ctx context.Context) ([]mcp.Tool, error) {
	if f.fail != nil {
		err := f.fail
		f.fail = nil
		return nil, err
	}
	return f.bench.List(ctx)
}

// A failed list is repeated by the next run.
func TestListFails(t *testing.T) {
	m := &script{t: t, replies: []reply{says("one"), says("two")}}
	f := &flaky{bench: newBench("a")}
	a := newTrustingAgent(m, f, nil)
	expect(t, a, "thinking", "finished", "answered in 1, 100 and 10 tokens")
	f.tools = append(f.tools, newBench("b").tools...)
	f.changed <- struct{}{}
	f.fail = errors.New("down for a moment")
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err == nil || !strings.Contains(err.Error(), "down for a moment") {
		t.Error(err)
	}
	expect(t, a, `new tools: ["b"], gone: []`, "thinking", "finished", "answered in 1, 100 and 10 tokens")
	if got := offered(m.conversations[1]); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v", got)
	}
}

// The context of Dial bounds the dial only: the open toolbox still reports changes.
func TestDialContext(t *testing.T) {
	eras(t, func(t *testing.T, r mcp.Revision) {
		s := server.New("s", "1", nil)
		tool := func(context.Context, struct{}) (string, error) { return "1", nil }
		server.Tool(s, "one", "One.", tool)
		ctx, cancel := context.WithCancel(t.Context())
		box, err := agent.Dial(ctx, s, client.Options{Wire: client.Wire{Revision: r}})
		if err != nil {
			t.Fatal(err)
		}
		defer box.Close()
		cancel()
		server.Tool(s, "two", "Two.", tool)
		select {
		case <-box.Changed():
		case <-time.After(time.Minute):
			t.Error("the change was not reported")
		}
	})
}
