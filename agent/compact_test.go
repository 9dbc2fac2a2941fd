package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

func isSummary(c agent.Conversation) bool { return strings.HasPrefix(c.System, "You summarise") }

// long returns a conversation with the given number of calls, each with a result of size
// characters.
func long(t *testing.T, calls, size, window int, summary reply, o agent.Options) (*script, *agent.Agent) {
	b := newBench("read")
	n := 0
	b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		n++
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(fmt.Sprintf("<%d>", n) + strings.Repeat("x", size) + fmt.Sprintf("</%d>", n))}}, nil
	}
	m := &script{t: t, window: window, input: func(c agent.Conversation) int { return length(c) }}
	m.next = func(c agent.Conversation) reply {
		switch {
		case isSummary(c):
			return summary
		case window > 0 && length(c) > window, m.limit > 0 && length(c) > m.limit:
			return reply{err: fmt.Errorf("the provider says: %w", agent.ErrContextLength)}
		case n < calls:
			return says(fmt.Sprintf("call %d", n), fmt.Sprintf(`read {"n":%d}`, n))
		}
		return says("done")
	}
	o.System = "Be brief."
	return m, newTrustingAgent(m, b, &o)
}

// length measures a conversation independently of the agent.
func length(c agent.Conversation) int {
	n := len(c.System)
	for _, m := range c.Messages {
		for _, b := range m.Content {
			n += len(b.Text)
			if b.ToolUse != nil {
				n += len(b.ToolUse.Input) + 20
			}
			if b.ToolResult != nil {
				n += len(b.ToolResult.Content[0].Text) + 20
			}
		}
	}
	for _, t := range c.Tools {
		n += len(t.Description) + len(t.InputSchema)
	}
	return n / 3
}

func compacted(t *testing.T, a *agent.Agent) (all []agent.Compacted, notices []string) {
	t.Helper()
	for e, err := range a.Run(t.Context(), mcp.Text("The task: read it all.")) {
		switch e := e.(type) {
		case agent.Compacted:
			all = append(all, e)
		case agent.Delta:
			if e.Notice != "" {
				notices = append(notices, e.Notice)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	check(t, a.Messages())
	return all, notices
}

// Near to the window the older part becomes a summary. The task and the last exchanges stay.
func TestCompact(t *testing.T) {
	m, a := long(t, 20, 3000, 10_000, says("What there was."), agent.Options{Limits: agent.Limits{MaxSteps: 50}})
	all, notices := compacted(t, a)
	if len(all) == 0 || len(notices) > 0 {
		t.Fatalf("%+v, %q", all, notices)
	}
	for _, c := range all {
		if c.Before < 8000*8/10 || c.After >= 8000 || c.Summary != "What there was." {
			t.Errorf("%+v", c)
		}
	}
	for i, c := range m.conversations {
		switch {
		case isSummary(c):
			text := c.Messages[0].Text()
			if len(c.Tools) != 0 || len(c.Messages) != 1 || !strings.Contains(text, "The user: The task: read it all.") || !strings.Contains(text, `The assistant calls read: {"n":`) || !strings.Contains(text, "Its result: <") {
				t.Errorf("%+v", c)
			}
		case length(c) > 10_000:
			t.Errorf("request %d takes %d", i, length(c))
		case c.System != "Be brief." || !strings.HasPrefix(c.Messages[0].Text(), "The task: read it all."):
			t.Errorf("request %d: %s, %s", i, c.System, c.Messages[0].Text())
		case strings.Count(c.Messages[0].Text(), "What there was.") > 1:
			t.Errorf("an old summary is still there: %s", c.Messages[0].Text())
		}
	}
	last := a.Messages()
	if text := last[0].Text(); !strings.Contains(text, "What there was.") {
		t.Errorf("%s", text)
	}
	if res := last[len(last)-2].Content[0].ToolResult.Content[0].Text; !strings.HasPrefix(res, "<20>xxx") {
		t.Errorf("%.40s", res)
	}
	if spent := a.Tokens().Spent; spent.Output != 10*len(m.conversations) {
		t.Errorf("%+v of %d replies", spent, len(m.conversations))
	}
}

// The user's last words stay, too, if they are not the first.
func TestCompactLaterTask(t *testing.T) {
	m, a := long(t, 20, 3000, 10_000, says("What there was."), agent.Options{Limits: agent.Limits{MaxSteps: 50}, Messages: []agent.Message{
		{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("Hello.")}}, {Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.Text("Hello!")}}}})
	if all, _ := compacted(t, a); len(all) < 2 {
		t.Fatalf("%+v", all)
	}
	for i, c := range m.conversations {
		text := c.Messages[0].Text()
		if !isSummary(c) && (!strings.HasPrefix(text, "Hello.") || strings.Contains(text, "What there was.") && strings.Count(text, "The task: read it all.") != 1) {
			t.Errorf("%d: %s", i, text)
		}
	}
}

// If the model cannot summarise, results are left out, the oldest first, and can still be read.
func TestCompactWithoutSummary(t *testing.T) {
	for name, summary := range map[string]reply{"an error": {err: errors.New("no quota")}, "nothing": says(""), "too long": says(strings.Repeat("words ", 30_000))} {
		t.Run(name, func(t *testing.T) {
			m, a := long(t, 20, 3000, 10_000, summary, agent.Options{Limits: agent.Limits{MaxSteps: 50}})
			all, notices := compacted(t, a)
			if len(all) == 0 || len(notices) == 0 || !strings.Contains(notices[0], "could not be summarised") {
				t.Fatalf("%+v, %q", all, notices)
			}
			if all[0].Summary != "" || all[0].After >= all[0].Before {
				t.Errorf("%+v", all[0])
			}
			messages := a.Messages()
			first, last := messages[2].Content[0].ToolResult, messages[len(messages)-2].Content[0].ToolResult
			if len(first.Content) != 1 || !strings.HasPrefix(first.Content[0].Text, "[This result of 3007 characters has been left out") || !strings.Contains(first.Content[0].Text, `"result-1": the tool read_result`) ||
				first.ToolUseID != "call-0-0" || !strings.HasPrefix(last.Content[0].Text, "<20>") {
				t.Errorf("%+v, %.30s", first, last.Content[0].Text)
			}
			if names := offered(m.conversations[len(m.conversations)-1]); !slices.Equal(names, []string{"read", "read_result"}) {
				t.Errorf("%v", names)
			}
		})
	}
}

// A last exchange that is too long by itself is shortened, too.
func TestCompactLastExchange(t *testing.T) {
	m, a := long(t, 1, 60_000, 10_000, says("never"), agent.Options{Limits: agent.Limits{MaxResult: -1}})
	all, _ := compacted(t, a)
	if len(all) != 1 || all[0].Summary != "" || len(m.conversations) != 2 {
		t.Errorf("%+v, %d requests", all, len(m.conversations))
	}
}

// If the window is unknown or wrong, the provider's refusal compacts the conversation, and the
// request is repeated.
func TestCompactAfterRefusal(t *testing.T) {
	for _, window := range []int{0, 1_000_000} {
		m, a := long(t, 20, 3000, window, says("What there was."), agent.Options{Limits: agent.Limits{MaxSteps: 50}})
		m.limit = 10_000
		if all, notices := compacted(t, a); len(all) == 0 || len(notices) > 0 {
			t.Errorf("%+v, %q", all, notices)
		}
	}
	m, a := long(t, 20, 3000, 0, says("What there was."), agent.Options{Limits: agent.Limits{MaxSteps: 50, CompactAt: -1}})
	m.limit = 10_000
	_, err := trace(a.Run(t.Context(), mcp.Text("go")))
	if !errors.Is(err, agent.ErrContextLength) {
		t.Errorf("never: %v", err)
	}
	check(t, a.Messages())
}

// A reply that was cut off by the window is continued.
func TestCompactInTheMiddle(t *testing.T) {
	m, a := long(t, 6, 3000, 0, says("What there was."), agent.Options{})
	usual, cut := m.next, false
	m.next = func(c agent.Conversation) reply {
		if len(c.Messages) == 9 && !cut && !isSummary(c) {
			cut = true
			return reply{text: "It is", err: agent.ErrContextLength}
		}
		return usual(c)
	}
	all, _ := compacted(t, a)
	texts := ""
	for _, msg := range a.Messages() {
		texts += msg.Text() + "\n"
	}
	if len(all) != 1 || !strings.Contains(texts, "It is\nYour reply was cut off") {
		t.Errorf("%+v, %s", all, texts)
	}
}

// A run that is cancelled during a summary ends, and the conversation stays as it was.
func TestCompactInterrupted(t *testing.T) {
	m, a := long(t, 20, 3000, 10_000, says("What there was."), agent.Options{Limits: agent.Limits{MaxSteps: 50}})
	ctx, cancel := context.WithCancel(t.Context())
	usual := m.next
	m.next = func(c agent.Conversation) reply {
		if isSummary(c) {
			cancel()
		}
		return usual(c)
	}
	got, err := trace(a.Run(ctx, mcp.Text("The task: read it all.")))
	if !errors.Is(err, context.Canceled) || strings.Contains(strings.Join(got, "\n"), "could not be summarised") || a.Messages()[0].Text() != "The task: read it all." {
		t.Errorf("%v, %s", err, a.Messages()[0].Text())
	}
	check(t, a.Messages())
}

// If compacting does not help, it is not repeated at each step.
func TestCompactInVain(t *testing.T) {
	m, a := long(t, 36, 40, 10_000, reply{err: errors.New("no")}, agent.Options{Limits: agent.Limits{MaxSteps: 50}, Messages: []agent.Message{
		{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text(strings.Repeat("All of this matters. ", 1200))}}}})
	_, notices := compacted(t, a)
	summaries := 0
	for _, c := range m.conversations {
		if isSummary(c) {
			summaries++
		}
	}
	if summaries > 2 || len(notices) == 0 || len(notices) > 3 {
		t.Errorf("%d summaries in %d requests, %q", summaries, len(m.conversations), notices)
	}
}

// If the window is unknown, the text to summarise is still limited.
func TestCompactTextAfterRefusal(t *testing.T) {
	for _, tt := range []struct{ exchanges, words int }{{10, 400}, {40, 400}, {20, 2000}} {
		var said []agent.Message
		for i := range 2 * tt.exchanges {
			role := []mcp.Role{mcp.RoleUser, mcp.RoleAssistant}[i%2]
			said = append(said, from(role, mcp.Text(fmt.Sprint(i)+strings.Repeat(" word", tt.words))))
		}
		m := &script{t: t, input: func(agent.Conversation) int { return 0 }}
		m.next = func(c agent.Conversation) reply {
			if length(c)*3/4 > 8000 { // about as the agent estimates it
				return reply{err: fmt.Errorf("%w: 8192 tokens", agent.ErrContextLength)}
			}
			return says("short")
		}
		a := newTrustingAgent(m, newBench("read"), &agent.Options{Messages: said})
		if all, notices := compacted(t, a); len(all) == 0 || len(notices) > 0 || all[0].Summary != "short" {
			t.Errorf("%+v: %+v, %q", tt, all, notices)
		}
	}
}

// Compact works far from the window, and an interruption changes nothing.
func TestCompactOnDemand(t *testing.T) {
	model := &script{t: t, window: 100_000, replies: []reply{says(strings.Repeat("many words ", 500)), says("short"), says("never seen"), says("A summary."), says("on")}}
	a := agent.New(model, nil, nil)
	if _, err := a.Compact(t.Context()); err == nil {
		t.Error("an empty conversation is compacted")
	}
	for _, text := range []string{"one", "two"} {
		expectAnswer(t, a, text)
	}
	before := a.Messages()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Compact(ended); !errors.Is(err, context.Canceled) || len(a.Messages()) != len(before) {
		t.Errorf("got %v, %d messages", err, len(a.Messages()))
	}
	e, err := a.Compact(t.Context())
	if err != nil || e.Summary != "A summary." || e.After >= e.Before || len(a.Messages()) >= len(before) {
		t.Errorf("got %+v, %v, %d messages", e, err, len(a.Messages()))
	}
	expectAnswer(t, a, "three")
	check(t, a.Messages())
}

func expectAnswer(t *testing.T, a *agent.Agent, text string) {
	t.Helper()
	for _, err := range a.Run(t.Context(), mcp.Text(text)) {
		if err != nil {
			t.Fatal(err)
		}
	}
}
