package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// A model that repeats itself is told so. A model that waits for something is told later.
func TestRepeats(t *testing.T) {
	times := func(n int, r ...reply) (all []reply) {
		for range n {
			all = append(all, r...)
		}
		return append(all, says("done"))
	}
	n := 0
	counted := func(string) string { n++; return fmt.Sprint(n) }
	fixed := func(string) string { return "the same" }
	long := func(string) string { return strings.Repeat("long ", 10_000) }
	for _, tt := range []struct {
		name    string
		replies []reply
		result  func(string) string
		want    string // the expected notices, shortened, in order
	}{
		{"the same calls", times(3, says("", "read {}")), fixed, "same calls"},
		{"the same calls, written otherwise", []reply{says("", `read {"a":1}`), says("", `read { "a": 1 }`), says("", `read {"a":1 }`), says("done")}, fixed, "same calls"},
		{"twice", times(2, says("", "read {}")), fixed, ""},
		{"in turns", times(3, says("", "read {}"), says("", `read {"a":1}`)), fixed, "same calls"},
		{"long results", times(3, says("", "read {}")), long, "same calls"},
		{"waiting", times(5, says("", "read {}")), counted, ""},
		{"waiting too long", times(6, says("", "read {}")), counted, "waiting"},
		{"other arguments", []reply{says("", `read {"a":1}`), says("", `read {"a":2}`), says("", `read {"a":3}`), says("", `read {"a":4}`), says("done")}, fixed, ""},
		{"the same text", []reply{says("Let me see.", `read {"a":1}`), says("Let me see.", `read {"a":2}`), says("Let me see.", `read {"a":3}`), says("done")}, counted, "repeating"},
		{"refused", times(3, says("", "nothing {}")), fixed, "same calls"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench("read")
			b.run = func(_ context.Context, use mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(tt.result(use.Name))}}, nil
			}
			a := newTrustingAgent(&script{t: t, replies: append(tt.replies, tt.replies...)}, b, nil)
			for range 2 { // another run begins anew
				got := ""
				for e, err := range a.Run(t.Context(), mcp.Text("go")) {
					if err != nil {
						t.Error(err)
					}
					if e, ok := e.(agent.Delta); ok {
						for _, word := range []string{"same calls with the same arguments several times", "waiting", "repeating"} {
							if strings.Contains(e.Notice, word) {
								got += strings.Join(strings.Fields(word)[:min(2, len(strings.Fields(word)))], " ")
							}
						}
					}
				}
				if got != tt.want {
					t.Errorf("%q, want %q", got, tt.want)
				}
			}
			check(t, a.Messages())
		})
	}
}

// A note that does not help ends the run, unless the model may be waiting for something.
func TestStuck(t *testing.T) {
	n := 0
	for name, tt := range map[string]struct {
		result func() string
		text   string
		steps  int // replies until the run ends; 0: it does not end
	}{
		"the same results": {func() string { return "the same" }, "", 6},
		"the same text":    {func() string { n++; return fmt.Sprint(n) }, "Let me see.", 0},
		"waiting":          {func() string { n++; return fmt.Sprint(n) }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench("read")
			b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(tt.result())}}, nil
			}
			m := &script{t: t}
			for i := range 20 {
				input := "{}"
				if tt.text != "" {
					input = fmt.Sprintf(`{"a":%d}`, i)
				}
				m.replies = append(m.replies, says(tt.text, "read "+input))
			}
			m.replies = append(m.replies, says("done"))
			a := newTrustingAgent(m, b, nil)
			steps, failed := 0, error(nil)
			for e, err := range a.Run(t.Context(), mcp.Text("go")) {
				if e, ok := e.(agent.StateChanged); ok {
					steps = e.Step
				}
				failed = err
			}
			if stuck := failed != nil && strings.Contains(failed.Error(), "repeats itself"); stuck != (tt.steps > 0) || stuck && steps != tt.steps {
				t.Errorf("%d steps, %v", steps, failed)
			}
			check(t, a.Messages())
		})
	}
}

// A note that has helped does not count for ever: much later, the model gets another one.
func TestStuckLater(t *testing.T) {
	b := newBench("read")
	b.run = func(_ context.Context, use mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(string(use.Input))}}, nil
	}
	m := &script{t: t}
	same := func() {
		for range 3 {
			m.replies = append(m.replies, says("", `read {"a":0}`))
		}
	}
	same()
	for i := range 12 {
		m.replies = append(m.replies, says("", fmt.Sprintf(`read {"a":%d}`, i+1)))
	}
	same()
	m.replies = append(m.replies, says("done"))
	a := newTrustingAgent(m, b, nil)
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
}

// If the provider reports no tokens, the agent's estimate counts for the budget.
func TestBudgetWithoutUsage(t *testing.T) {
	over := errors.New("too many tokens")
	m := &script{t: t, replies: []reply{says("", "read {}"), says("", `read {"a":1}`)}, silent: true}
	a := newTrustingAgent(m, newBench("read"), &agent.Options{System: strings.Repeat("many words ", 100), Budget: func(u agent.Usage) error {
		if u.Input > 200 {
			return over
		}
		return nil
	}})
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); !errors.Is(err, over) {
		t.Error(err)
	}
}

// The budget is asked before each step, with the tokens of the run, and ends it.
func TestBudget(t *testing.T) {
	var asked []int
	over := errors.New("too many tokens")
	m := &script{t: t, replies: []reply{says("", "read {}"), says("", `read {"a":1}`), says("done")}}
	a := newTrustingAgent(m, newBench("read"), &agent.Options{Budget: func(u agent.Usage) error {
		if asked = append(asked, u.Input+u.Output); u.Input > 150 {
			return over
		}
		return nil
	}})
	_, err := trace(a.Run(t.Context(), mcp.Text("go")))
	if !errors.Is(err, over) || fmt.Sprint(asked) != "[0 110 220]" {
		t.Errorf("%v %v", asked, err)
	}
	check(t, a.Messages())
}

// Notices of a provider become events of the run.
func TestNotices(t *testing.T) {
	m := &script{t: t, replies: []reply{{text: "done", notice: "the tool x is left out"}}}
	got, err := trace(newTrustingAgent(m, newBench(), nil).Run(t.Context(), mcp.Text("go")))
	if err != nil {
		t.Error(err)
	}
	same(t, got, "thinking", "the tool x is left out", "finished", "answered in 1, 100 and 10 tokens")
}
