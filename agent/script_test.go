package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// script is a model with fixed replies. It refuses conversations that providers refuse.
type script struct {
	t       *testing.T
	replies []reply
	next    func(agent.Conversation) reply // in the place of replies
	window  int
	silent  bool                         // it reports no usage
	limit   int                          // that it does not tell
	input   func(agent.Conversation) int // what a request takes, in tokens

	mu            sync.Mutex // servers may use it, too
	conversations []agent.Conversation
}

// reply is text, and calls as "tool {arguments}".
type reply struct {
	text  string
	calls []string
	err   error // behind the text
	cut   bool

	notice string
}

func says(text string, calls ...string) reply { return reply{text: text, calls: calls} }

func (s *script) Window() int { return s.window }

func (s *script) hear(c agent.Conversation) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Messages = slices.Clone(c.Messages)
	s.conversations = append(s.conversations, c)
	return len(s.conversations) - 1
}

func (s *script) Reply(ctx context.Context, c agent.Conversation) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		check(s.t, c.Messages)
		n := s.hear(c)
		var r reply
		switch {
		case s.next != nil:
			r = s.next(c)
		case n < len(s.replies):
			r = s.replies[n]
		default:
			r.err = errors.New("the script has no more replies")
		}
		m := agent.Message{Role: mcp.RoleAssistant, Usage: &agent.Usage{Input: 100, Output: 10}}
		if s.silent {
			m.Usage = nil
		}
		if s.input != nil {
			m.Usage.Input = s.input(c)
		}
		if r.notice != "" && !yield(agent.Delta{Notice: r.notice}, nil) {
			return
		}
		for _, word := range strings.SplitAfter(r.text, " ") {
			if word != "" && !yield(agent.Delta{Text: word}, nil) {
				return
			}
		}
		if r.err != nil {
			yield(agent.Delta{}, r.err)
			return
		}
		if r.text != "" {
			m.Content = append(m.Content, mcp.Text(r.text))
		}
		for i, call := range r.calls {
			name, args, _ := strings.Cut(call, " ")
			m.Content = append(m.Content, mcp.UseTool(fmt.Sprintf("call-%d-%d", n, i), name, json.RawMessage(args)))
		}
		m.Cut = r.cut
		yield(agent.Delta{Message: &m}, nil)
	}
}

// check checks the demands of providers on a conversation: roles alternate, and the results of
// all calls are at the beginning of the next message, in order.
func check(t *testing.T, messages []agent.Message) {
	t.Helper()
	for i, m := range messages {
		want := mcp.RoleUser
		if i%2 == 1 {
			want = mcp.RoleAssistant
		}
		if m.Role != want || len(m.Content) == 0 {
			t.Errorf("message %d is of %s, with %d blocks", i, m.Role, len(m.Content))
		}
		var results []string
		for j, block := range m.Content {
			if block.ToolResult != nil {
				results = append(results, block.ToolResult.ToolUseID)
				if j >= len(results) {
					t.Errorf("message %d has a result behind something else", i)
				}
			}
		}
		var calls []string
		if i > 0 {
			for _, use := range messages[i-1].Calls() {
				calls = append(calls, use.ID)
			}
		}
		if !slices.Equal(calls, results) {
			t.Errorf("message %d has results of %v, want those of %v", i, results, calls)
		}
	}
}

// bench holds tools in memory.
type bench struct {
	mu      sync.Mutex
	tools   []mcp.Tool
	changed chan struct{}
	run     func(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error)
	called  []string
}

func newBench(names ...string) *bench {
	b := &bench{changed: make(chan struct{}, 1)}
	for _, name := range names {
		t := mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
		if strings.Contains(name, "read") {
			t.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: new(true)}
		}
		b.tools = append(b.tools, t)
	}
	b.run = func(_ context.Context, use mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(use.Name + " " + string(use.Input))}}, nil
	}
	return b
}

func (b *bench) List(context.Context) ([]mcp.Tool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tools), nil
}

func (b *bench) Changed() <-chan struct{} { return b.changed }

func (b *bench) Call(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	b.mu.Lock()
	b.called = append(b.called, use.Name+" "+string(use.Input))
	b.mu.Unlock()
	return b.run(ctx, use, progress)
}

// isReply reports whether an event is a complete reply.
func isReply(e agent.Event) bool {
	d, ok := e.(agent.Delta)
	return ok && d.Message != nil
}

// trace describes the events of a run in words.
func trace(events iter.Seq2[agent.Event, error]) (all []string, err error) {
	said := ""
	for e, failed := range events {
		if failed != nil {
			err = failed
			continue
		}
		switch e := e.(type) {
		case agent.StateChanged:
			all = append(all, string(e.State))
		case agent.Delta:
			said += e.Text
			if e.Notice != "" {
				all = append(all, e.Notice)
			}
			if isReply(e) {
				if said != e.Message.Text() {
					all = append(all, fmt.Sprintf("said %q, and then %q", said, e.Message.Text()))
				}
				said = ""
			}
		case agent.CallStarted:
			all = append(all, "starts "+e.Call.Name)
		case agent.CallEnded:
			text := ""
			for _, block := range e.Result.Content {
				text += block.Text
			}
			all = append(all, "ends: "+text)
		case agent.ToolsChanged:
			all = append(all, fmt.Sprintf("new tools: %q, gone: %q", e.Added, e.Removed))
		case agent.Ended:
			all = append(all, fmt.Sprintf("%s in %d, %d and %d tokens", e.Reason, e.Steps, e.Usage.Input, e.Usage.Output))
		}
	}
	return all, err
}

func expect(t *testing.T, a *agent.Agent, want ...string) {
	t.Helper()
	got, err := trace(a.Run(t.Context(), mcp.Text("go")))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got\n%s\n%v, want\n%s", strings.Join(got, "\n"), err, strings.Join(want, "\n"))
	}
	check(t, a.Messages())
}

// newTrustingAgent returns an agent for a user who believes all servers' annotations, unless o says
// otherwise.
func newTrustingAgent(m agent.Model, t agent.Tools, o *agent.Options) *agent.Agent {
	options := agent.Options{}
	if o != nil {
		options = *o
	}
	if options.TrustAnnotations == nil {
		options.TrustAnnotations = func(string) bool { return true }
	}
	return agent.New(m, t, &options)
}
