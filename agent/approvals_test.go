package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// become changes the tools, and reports the change.
func (b *bench) become(change func(tools []mcp.Tool) []mcp.Tool) {
	b.mu.Lock()
	b.tools = change(slices.Clone(b.tools))
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// destructive removes the annotations of a tool.
func destructive(name string) func([]mcp.Tool) []mcp.Tool {
	return func(tools []mcp.Tool) []mcp.Tool {
		for i := range tools {
			if tools[i].Name == name {
				tools[i].Annotations = nil
			}
		}
		return tools
	}
}

func without(name string) func([]mcp.Tool) []mcp.Tool {
	return func(tools []mcp.Tool) []mcp.Tool {
		return slices.DeleteFunc(tools, func(t mcp.Tool) bool { return t.Name == name })
	}
}

func with(name string) func([]mcp.Tool) []mcp.Tool {
	return func(tools []mcp.Tool) []mcp.Tool {
		return append(tools, mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
}

func described(name, text string) func([]mcp.Tool) []mcp.Tool {
	return func(tools []mcp.Tool) []mcp.Tool {
		for i := range tools {
			if tools[i].Name == name {
				tools[i].Description = text
			}
		}
		return tools
	}
}

// A decision applies to the tool at the time of the call, not to earlier definitions from before
// the model's reply or the user's answer.
func TestDecidedOnPresentTool(t *testing.T) {
	const goneText = "a__%s is not available any more: its server has withdrawn it, or is gone."
	type answer struct {
		change func([]mcp.Tool) []mcp.Tool // while the user is asked
		agent.Decision
	}
	yes, session := agent.Decision{Allow: true}, agent.Decision{Allow: true, For: agent.ThisTool}
	for _, tt := range []struct {
		name     string
		mode     agent.Mode
		thinking func([]mcp.Tool) []mcp.Tool // what changes while the model thinks
		answers  []answer
		calls    []string
		called   []string
		results  []string
	}{
		{"another effect while the model thinks, read-only", agent.ModeReadOnly, destructive("a__read"), nil, []string{"a__read {}"}, nil,
			[]string{"This tool was not run: only tools that are read-only may be run, and this one is not."}},
		{"another effect while the model thinks, asked", agent.ModeAsk, destructive("a__read"), []answer{{nil, yes}}, []string{"a__read {}"}, []string{"a__read {}"}, []string{"a__read {}"}},
		{"gone while the model thinks", agent.ModeAll, without("a__write"), nil, []string{"a__write {}"}, nil, []string{"This tool was not run: the tool " + fmt.Sprintf(goneText, "write")}},
		{"come while the model thinks", agent.ModeAll, with("a__new"), nil, []string{"a__new {}"}, []string{"a__new {}"}, []string{"a__new {}"}},
		{"gone while the user is asked", agent.ModeAsk, nil, []answer{{without("a__write"), yes}}, []string{"a__write {}"}, nil, []string{"This tool was not run: the tool " + fmt.Sprintf(goneText, "write")}},
		{"gone while the user is asked about one before it", agent.ModeAsk, nil, []answer{{without("a__read"), yes}}, []string{"a__write {}", "a__read {}"}, []string{"a__write {}"},
			[]string{"a__write {}", "This tool was not run: the tool " + fmt.Sprintf(goneText, "read")}},
		{"another one while the user is asked, who refuses then", agent.ModeAsk, nil, []answer{{described("a__write", "new"), yes}, {nil, agent.Decision{Reason: "no"}}},
			[]string{"a__write {}"}, nil, []string{"This tool was not run: the user refused: no."}},
		{"another one while the user is asked, who allows it still", agent.ModeAsk, nil, []answer{{described("a__write", "new"), session}, {nil, yes}},
			[]string{"a__write {}"}, []string{"a__write {}"}, []string{"a__write {}"}},
		{"another one while the user is asked, who has refused", agent.ModeAsk, nil, []answer{{described("a__write", "new"), agent.Decision{}}},
			[]string{"a__write {}"}, nil, []string{"This tool was not run: the user refused."}},
		{"one that the user is not asked about changes", agent.ModeAsk, nil, []answer{{described("a__read", "new"), yes}}, []string{"a__write {}"}, []string{"a__write {}"}, []string{"a__write {}"}},
		{"another effect while the user is asked about one before it", agent.ModeAsk, nil, []answer{{destructive("a__read"), yes}, {nil, agent.Decision{}}},
			[]string{"a__write {}", "a__read {}"}, []string{"a__write {}"}, []string{"a__write {}", "This tool was not run: the user refused."}},
		{"another one all the time", agent.ModeAsk, nil, []answer{{described("a__write", "1"), yes}, {described("a__write", "2"), yes}, {described("a__write", "3"), yes}},
			[]string{"a__write {}"}, nil, []string{"This tool was not run: the definition of a__write changes all the time, and nobody can decide on it."}},
		{"the agent's own name", agent.ModeAll, with("search_tools"), nil, []string{`search_tools {"query":"write"}`}, nil, []string{"a__write: \n\nThese can be called now."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, asked := newBench("a__read", "a__write"), 0
			m := &script{t: t}
			m.next = func(c agent.Conversation) reply {
				if len(c.Messages) > 1 {
					return says("done")
				}
				if tt.thinking != nil {
					b.become(tt.thinking)
				}
				return says("", tt.calls...)
			}
			a := newTrustingAgent(m, b, &agent.Options{Mode: tt.mode, Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
				if asked >= len(tt.answers) {
					return agent.Decision{}, errors.New("asked too often")
				}
				if now, _ := b.List(t.Context()); !slices.ContainsFunc(now, func(tool mcp.Tool) bool {
					return tool.Name == q.Tool.Name && tool.Description == q.Tool.Description && agent.EffectOf(&tool) == q.Effect
				}) {
					t.Errorf("asked about %+v, which there is not", q.Tool)
				}
				is := tt.answers[asked]
				asked++
				if is.change != nil {
					b.become(is.change)
				}
				return is.Decision, nil
			}})
			if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
				t.Fatal(err)
			}
			var results []string
			for _, block := range a.Messages()[2].Content {
				if block.ToolResult != nil {
					results = append(results, block.ToolResult.Content[0].Text)
				}
			}
			if !slices.Equal(results, tt.results) || !slices.Equal(b.called, tt.called) || asked != len(tt.answers) {
				t.Errorf("called %q, want %q; results %q, want %q; asked %d times", b.called, tt.called, results, tt.results, asked)
			}
		})
	}
}

// Changes of the tools during a reply and during a question are told together, behind the
// results.
func TestNewsBehindResults(t *testing.T) {
	b := newBench("a__read", "a__write")
	m := &script{t: t}
	m.next = func(c agent.Conversation) reply {
		if len(c.Messages) > 1 {
			return says("done")
		}
		b.become(with("a__new"))
		return says("", "a__write {}", "a__read {}")
	}
	a := newTrustingAgent(m, b, &agent.Options{Approve: func(context.Context, agent.Question) (agent.Decision, error) {
		b.become(without("a__read"))
		return agent.Decision{Allow: true}, nil
	}})
	all, err := trace(a.Run(t.Context(), mcp.Text("go")))
	if err != nil {
		t.Fatal(err)
	}
	const news = `new tools: ["a__new"], gone: ["a__read"]`
	if n := slices.Index(all, news); n < 0 || n < slices.Index(all, "ends: a__write {}") || slices.Contains(all[n+1:], news) {
		t.Errorf("%q", all)
	}
	said := a.Messages()[2].Content
	if len(said) != 3 || said[1].ToolResult == nil || said[2].Text != "These tools have become available: a__new. These tools are not available any more: a__read." {
		t.Errorf("%+v", said)
	}
}

// A tool that stops to be read-only runs alone.
func TestAloneWhereItBecame(t *testing.T) { synctest.Test(t, aloneWhereItBecame) }

func aloneWhereItBecame(t *testing.T) {
	b := newBench("a__read", "b__read", "c__read")
	var running atomic.Int32
	b.run = func(_ context.Context, use mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		running.Add(1)
		defer running.Add(-1)
		if use.Name != "b__read" {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		if n := running.Load(); use.Name == "b__read" && n != 1 {
			t.Errorf("%d run at the same time", n)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("done")}}, nil
	}
	m := &script{t: t}
	m.next = func(c agent.Conversation) reply {
		if len(c.Messages) > 1 {
			return says("done")
		}
		b.become(destructive("b__read"))
		return says("", "a__read {}", "b__read {}", "c__read {}")
	}
	var decided []string
	for e, err := range newTrustingAgent(m, b, &agent.Options{Mode: agent.ModeAll}).Run(t.Context(), mcp.Text("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.(agent.Approval); ok {
			decided = append(decided, d.Call.Name)
		}
	}
	if slices.Sort(decided); !slices.Equal(decided, []string{"a__read", "b__read", "c__read"}) {
		t.Errorf("decided on %q", decided)
	}
}

// An approval for the session applies to the tool that was shown.
func TestWithdrawnAllowance(t *testing.T) {
	b, asked := newBench("a__write"), 0
	m := &script{t: t, replies: []reply{says("", "a__write {}"), says("", `a__write {"x":1}`), says("done")}}
	a := newTrustingAgent(m, b, &agent.Options{Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
		if asked++; asked == 1 {
			b.become(described("a__write", "new"))
			return agent.Decision{Allow: true, For: agent.ThisServer, Arguments: json.RawMessage(`{"x":0}`)}, nil
		}
		return agent.Decision{Allow: true}, nil
	}})
	all, err := trace(a.Run(t.Context(), mcp.Text("go")))
	if err != nil || asked != 3 || strings.Join(b.called, " ") != `a__write {"x":0} a__write {"x":1}` {
		t.Errorf("asked %d times, called %q, %v: %q", asked, b.called, err, all)
	}
}

// TestApprovalOfChangedTool checks that an approval for the session counts for the definition that
// the user has seen: a changed tool is asked about again, with the earlier definition.
func TestApprovalOfChangedTool(t *testing.T) {
	t.Parallel()
	changes := []func([]mcp.Tool) []mcp.Tool{
		nil,
		described("a__write", ""), // as before
		func(tools []mcp.Tool) []mcp.Tool { // spelled differently
			tools[1].InputSchema = json.RawMessage(`{ "type" : "object" }`)
			return tools
		},
		described("a__write", "Sends everything."),
		with("a__new"), // a change of the list, but of no tool
	}
	for _, scope := range []agent.Scope{agent.ThisTool, agent.ThisServer} {
		b := newBench("a__read", "a__write")
		b.become(func(tools []mcp.Tool) []mcp.Tool {
			tools[1].InputSchema = json.RawMessage(`{"type":"object"}`)
			return tools
		})
		m := &script{t: t}
		for range changes {
			m.replies = append(m.replies, says("", "a__write {}"), says("done"))
		}
		var asked []agent.Question
		a := newTrustingAgent(m, b, &agent.Options{Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
			asked = append(asked, q)
			return agent.Decision{Allow: true, For: scope}, nil
		}})
		for _, change := range changes {
			if change != nil {
				b.become(change)
			}
			if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
				t.Error(err)
			}
		}
		if len(asked) != 2 || len(b.called) != len(changes) {
			t.Fatalf("%s: asked %d times, called %q", scope, len(asked), b.called)
		}
		if asked[0].Before != nil || asked[1].Before == nil || asked[1].Before.Description != "" || asked[1].Tool.Description != "Sends everything." {
			t.Errorf("%s: asked with %+v and %+v", scope, asked[0].Before, asked[1].Before)
		}
	}
}
