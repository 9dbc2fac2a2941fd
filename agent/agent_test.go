package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	allow := func(context.Context, agent.Question) (agent.Decision, error) { return agent.Decision{Allow: true}, nil }
	for _, tt := range []struct {
		name    string
		replies []reply
		opts    agent.Options
		want    []string
	}{
		{"an answer", []reply{says("hello there")}, agent.Options{},
			[]string{"thinking", "finished", "answered in 1, 100 and 10 tokens"}},
		{"a call", []reply{says("let me see", `a__read {"x":1}`), says("done")}, agent.Options{},
			[]string{"thinking", "acting", "starts a__read", `ends: a__read {"x":1}`, "thinking", "finished", "answered in 2, 200 and 20 tokens"}},
		{"slips", []reply{says("", "A.Read {}", "read {}", "b__nothing {}"), says("done")}, agent.Options{},
			[]string{"thinking", "acting", "the model called A.Read, which is taken for a__read", "the model called read, which is taken for a__read",
				"starts a__read", "starts a__read", "ends: This tool was not run: there is no tool b__nothing; perhaps one of these was meant: b__write.", "ends: a__read {}", "ends: a__read {}",
				"thinking", "finished", "answered in 2, 200 and 20 tokens"}},
		{"nobody to ask", []reply{says("", "a__write {}"), says("done")}, agent.Options{},
			[]string{"thinking", "acting", "ends: This tool was not run: the user has to approve this tool, and cannot be asked.",
				"thinking", "finished", "answered in 2, 200 and 20 tokens"}},
		{"asked", []reply{says("", "a__write {}"), says("done")}, agent.Options{Approve: allow},
			[]string{"thinking", "acting", "waiting", "acting", "starts a__write", "ends: a__write {}",
				"thinking", "finished", "answered in 2, 200 and 20 tokens"}},
		{"read-only", []reply{says("", "a__write {}"), says("done")}, agent.Options{Mode: agent.ModeReadOnly, Approve: allow},
			[]string{"thinking", "acting", "ends: This tool was not run: only tools that are read-only may be run, and this one is not.",
				"thinking", "finished", "answered in 2, 200 and 20 tokens"}},
		{"all", []reply{says("", "a__write {}", "b__write {}"), says("done")}, agent.Options{Mode: agent.ModeAll},
			[]string{"thinking", "acting", "starts a__write", "ends: a__write {}", "starts b__write", "ends: b__write {}",
				"thinking", "finished", "answered in 2, 200 and 20 tokens"}},
		{"none", []reply{says("", "a__read {}"), says("done")}, agent.Options{Mode: agent.ModeNone},
			[]string{"thinking", "acting", "ends: This tool was not run: tools may not be run.", "thinking", "finished", "answered in 2, 200 and 20 tokens"}},
		{"for good", []reply{says("", "a__write {}"), says("done")}, agent.Options{Mode: agent.ModeReadOnly, Allowed: func(tool string) bool { return tool == "a__write" }},
			[]string{"thinking", "acting", "starts a__write", "ends: a__write {}", "thinking", "finished", "answered in 2, 200 and 20 tokens"}},
		{"the budget", []reply{says("", `a__read {"x":1}`), says("", `a__read {"x":2}`), says("never")}, agent.Options{Limits: agent.Limits{MaxSteps: 2}},
			[]string{"thinking", "acting", "starts a__read", `ends: a__read {"x":1}`, "thinking", "acting", "starts a__read", `ends: a__read {"x":2}`,
				"finished", "budget spent in 2, 200 and 20 tokens"}},
		{"in circles", []reply{says("", "a__read {}"), says("", "a__read"), says("", "a__read {}"), says("done")}, agent.Options{},
			[]string{"thinking", "acting", "starts a__read", "ends: a__read {}", "thinking", "acting", "starts a__read", "ends: a__read {}",
				"thinking", "acting", "starts a__read", "ends: a__read {}",
				"You have made the same calls with the same arguments several times, and they will not bring anything else. Use what they have returned, or do something different.",
				"thinking", "finished", "answered in 4, 400 and 40 tokens"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, newTrustingAgent(&script{t: t, replies: tt.replies}, newBench("b__write", "a__write", "a__read"), &tt.opts), tt.want...)
		})
	}
}

// Read-only calls run in parallel, every other call runs alone, and results are in order.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench("read1", "read2", "write")
		running, most := 0, map[string]int{}
		var mu sync.Mutex
		b.run = func(_ context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
			mu.Lock()
			running++
			mu.Unlock()
			progress(mcp.ProgressParams{Progress: 1})
			if time.Sleep(time.Second); use.Name == "read1" {
				time.Sleep(time.Second) // the first of two ends last
			}
			mu.Lock()
			defer mu.Unlock()
			most[use.Name] = max(most[use.Name], running)
			running--
			return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(use.Name)}}, nil
		}
		m := &script{t: t, replies: []reply{says("", "read1 {}", "read2 {}", "write {}", "read2 {}", "write {}"), says("done")}}
		a := newTrustingAgent(m, b, &agent.Options{Mode: agent.ModeAll})
		began, progressed := time.Now(), 0
		for e, err := range a.Run(t.Context(), mcp.Text("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.(agent.CallProgressed); ok {
				progressed++
			}
		}
		if took := time.Since(began); took != 5*time.Second || most["read2"] != 2 || most["write"] != 1 || progressed != 5 {
			t.Errorf("%v, %v, %d", took, most, progressed)
		}
		var got []string
		for _, block := range a.Messages()[2].Content {
			got = append(got, block.ToolResult.Content[0].Text)
		}
		if want := []string{"read1", "read2", "write", "read2", "write"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// Decisions last as long as they say, and may change the arguments.
func TestDecisions(t *testing.T) {
	var asked []string
	decisions := map[string]agent.Decision{
		"a__write": {Allow: true, For: agent.ThisTool}, "b__one": {Allow: true, For: agent.ThisServer}, "c__no": {Reason: "not today"},
		"c__edit": {Allow: true, Arguments: json.RawMessage(`{"x":"safe"}`)},
	}
	b := newBench("a__write", "b__one", "b__two", "c__no", "c__edit")
	m := &script{t: t, replies: []reply{says("", "a__write {}", "a__write {}", "b__one {}", "b__two {}", "c__no {}", `c__edit {"x":"bad"}`), says("done")}}
	a := newTrustingAgent(m, b, &agent.Options{Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
		asked = append(asked, q.Tool.Name+": "+string(q.Effect))
		return decisions[q.Tool.Name], nil
	}})
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	if want := []string{"a__write: destructive", "b__one: destructive", "c__no: destructive", "c__edit: destructive"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	if want := []string{"a__write {}", "a__write {}", "b__one {}", "b__two {}", `c__edit {"x":"safe"}`}; !slices.Equal(b.called, want) {
		t.Errorf("called %v, want %v", b.called, want)
	}
	if refused := a.Messages()[2].Content[4].ToolResult; !refused.IsError || refused.Content[0].Text != "This tool was not run: the user refused: not today." {
		t.Errorf("%+v", refused)
	}
}

func TestEffects(t *testing.T) {
	for want, annotations := range map[agent.Effect][]*mcp.ToolAnnotations{
		agent.ReadOnly:    {{ReadOnlyHint: new(true)}, {ReadOnlyHint: new(true), DestructiveHint: new(true)}},
		agent.Changes:     {{DestructiveHint: new(false)}},
		agent.Destructive: {nil, {}, {ReadOnlyHint: new(false)}, {DestructiveHint: new(true)}},
	} {
		for _, a := range annotations {
			if got := agent.EffectOf(&mcp.Tool{Annotations: a}); got != want {
				t.Errorf("%+v: %s, want %s", a, got, want)
			}
		}
	}
}

// After an interrupted run, or an error of the model, the conversation can continue.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench("read", "write")
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("Ctrl-C")
		var running atomic.Int32
		b.run = func(ctx context.Context, _ mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
			if running.Add(1) == 2 { // both calls of read run at once
				cancel(stop)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		m := &script{t: t, replies: []reply{says("see", "read {}", "read {}", "write {}"), {text: "half a", err: errors.New("no more quota")}, says("done")}}
		a := newTrustingAgent(m, b, &agent.Options{Mode: agent.ModeAll})
		if _, err := trace(a.Run(ctx, mcp.Text("go"))); !errors.Is(err, stop) {
			t.Errorf("%v", err)
		}
		if len(b.called) != 2 || len(a.Messages()) != 3 {
			t.Errorf("%v, %+v", b.called, a.Messages())
		}
		_, err := trace(a.Run(t.Context(), mcp.Text("go on")))
		if err == nil || !strings.Contains(err.Error(), "no more quota") {
			t.Errorf("%v", err)
		}
		expect(t, a, "thinking", "finished", "answered in 1, 100 and 10 tokens")
		if got := a.Messages()[3].Text(); got != "half a" {
			t.Errorf("what was said is gone: %q", got)
		}
	})
}

// A caller that leaves the loop ends the run and its tools.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench("read")
		b.run = func(ctx context.Context, _ mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
			progress(mcp.ProgressParams{Progress: 1})
			<-ctx.Done()
			progress(mcp.ProgressParams{Progress: 2})
			return nil, ctx.Err()
		}
		a := newTrustingAgent(&script{t: t, replies: []reply{says("", "read {}", "read {}"), says("done")}}, b, nil)
		for e := range a.Run(t.Context(), mcp.Text("go")) {
			if _, ok := e.(agent.CallProgressed); ok {
				break
			}
		}
		expect(t, a, "thinking", "finished", "answered in 1, 100 and 10 tokens")
	})
}

// If the caller leaves as the first of two calls starts, neither is made.
func TestLeftBetween(t *testing.T) {
	b := newBench("read")
	a := newTrustingAgent(&script{t: t, replies: []reply{says("", `read {"n":1}`, `read {"n":2}`), says("done")}}, b, nil)
	for e := range a.Run(t.Context(), mcp.Text("go")) {
		if _, ok := e.(agent.CallStarted); ok {
			break
		}
	}
	if len(b.called) > 0 {
		t.Errorf("%q", b.called)
	}
	check(t, append(a.Messages(), agent.Message{Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.Text("x")}}))
}

func TestOneRunAtATime(t *testing.T) {
	a := newTrustingAgent(&script{t: t, replies: []reply{says("done")}}, newBench(), nil)
	for range a.Run(t.Context(), mcp.Text("go")) {
		for _, err := range a.Run(t.Context(), mcp.Text("and")) {
			if err == nil || !strings.Contains(err.Error(), "already running") {
				t.Errorf("a second run: %v", err)
			}
		}
	}
}

// The model is told which tools come and go.
func TestToolsChange(t *testing.T) {
	b := newBench("a__read", "b__read")
	b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tools = slices.Delete(append(b.tools, mcp.Tool{Name: "c__new"}), 1, 2)
		b.changed <- struct{}{}
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("ok")}}, nil
	}
	m := &script{t: t, replies: []reply{says("", "a__read {}"), says("done")}}
	expect(t, newTrustingAgent(m, b, nil), "thinking", "acting", "starts a__read", "ends: ok",
		`new tools: ["c__new"], gone: ["b__read"]`,
		"thinking", "finished", "answered in 2, 200 and 20 tokens")
	var names []string
	for _, tool := range m.conversations[1].Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"a__read", "c__new"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// A long result is shortened, and its rest can be read.
func TestLongResults(t *testing.T) {
	b := newBench("read")
	b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		var long strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&long, "line %d ö\n", i)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(long.String())}}, nil
	}
	m := &script{t: t, replies: []reply{
		says("", "read {}"), says("", `read_result {"result":"result-1","offset":75,"limit":20}`, `read_result {"result":"result-1","search":"line 500 "}`,
			`read_result {"result":"result-9"}`, `read_result {"result":"result-1","offset":100000}`), says("done"),
	}}
	a := newTrustingAgent(m, b, &agent.Options{Limits: agent.Limits{MaxResult: 100}})
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	if len(m.conversations[0].Tools) != 1 || len(m.conversations[1].Tools) != 2 {
		t.Errorf("%d tools, then %d", len(m.conversations[0].Tools), len(m.conversations[1].Tools))
	}
	short := a.Messages()[2].Content[0].ToolResult.Content[0].Text
	if len(short) > 400 || !strings.HasPrefix(short, "line 0 ö\n") || !strings.HasSuffix(short, "line 999 ö\n") || !strings.Contains(short, `kept as "result-1"`) || !strings.Contains(short, "offset 75") {
		t.Errorf("%q", short)
	}
	want := []string{"e 8 ö\nline 9 ö\nline \n\n[", "5390: line 500 ö\n", `there is no result "result-9": there are result-1`, "result-1 has 10890 characters: the offset 100000 is not in it"}
	for i, block := range a.Messages()[4].Content {
		if got := block.ToolResult.Content[0].Text; !strings.Contains(got, want[i]) {
			t.Errorf("%q, want %q", got, want[i])
		}
	}
}

// A conversation continued in another folder has no stored texts, and all tools are offered.
// Calls of the agent's own tools still get useful errors.
func TestOwnToolsLater(t *testing.T) {
	m := &script{t: t, replies: []reply{says("", `read_result {"result":"result-1"}`, `search_tools {"query":"read"}`), says("done")}}
	expect(t, newTrustingAgent(m, newBench("a__read"), nil), "thinking", "acting", "starts read_result", "ends: nothing is kept of results any more: call their tools again",
		"starts search_tools", "ends: a__read: \n\nThese can be called now.", "thinking", "finished", "answered in 2, 200 and 20 tokens")
}

// Structured content reaches the model once.
func TestStructured(t *testing.T) {
	b := newBench("read")
	results := []*mcp.CallToolResult{
		{Content: []mcp.Content{mcp.Text(`{"b": 1, "a": 2}`)}, StructuredContent: json.RawMessage(`{"a":2,"b":1}`)},
		{Content: []mcp.Content{mcp.Text("see")}, StructuredContent: json.RawMessage(`{"a":2}`)},
		{StructuredContent: json.RawMessage(`[1]`)},
	}
	b.run = func(_ context.Context, use mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		var in struct{ N int }
		_ = json.Unmarshal(use.Input, &in)
		return results[in.N], nil
	}
	m := &script{t: t, replies: []reply{says("", `read {"n":0}`, `read {"n":1}`, `read {"n":2}`), says("done")}}
	a := newTrustingAgent(m, b, nil)
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	for i, want := range [][]string{{`{"b": 1, "a": 2}`}, {"see", `{"a":2}`}, {`[1]`}} {
		var got []string
		res := a.Messages()[2].Content[i].ToolResult
		for _, block := range res.Content {
			got = append(got, block.Text)
		}
		if !slices.Equal(got, want) || res.StructuredContent != nil {
			t.Errorf("%d: %q and %s, want %q", i, got, res.StructuredContent, want)
		}
	}
}

// With a real server, in both eras: progress comes, a failure goes to the model, a cancelled call
// leaves the server alive.
func TestToolbox(t *testing.T) {
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20250618} {
		t.Run(string(r), func(t *testing.T) {
			s := everything.New()
			defer s.Close()
			box, err := agent.Dial(t.Context(), s, client.Options{Wire: client.Wire{Revision: r}})
			if err != nil {
				t.Fatal(err)
			}
			defer box.Close()
			m := &script{t: t, replies: []reply{
				says("", "test_tool_with_progress {}", "test_error_handling {}"), says("", `slow {"seconds":60}`), says("", `echo {"message":"still here"}`), says("done"),
			}}
			a := newTrustingAgent(m, box, &agent.Options{Mode: agent.ModeAll})
			ctx, cancel := context.WithCancel(t.Context())
			progressed := 0
			var last error
			for e, err := range a.Run(ctx, mcp.Text("go")) {
				last = err
				if p, ok := e.(agent.CallProgressed); ok {
					progressed++
					if p.Call.ID == "call-1-0" {
						cancel()
					}
				}
			}
			cancel()
			if !errors.Is(last, context.Canceled) || progressed < 4 {
				t.Errorf("%v, %d", last, progressed)
			}
			if failed := a.Messages()[2].Content[1].ToolResult; !failed.IsError {
				t.Errorf("%+v", failed)
			}
			expect(t, a, "thinking", "acting", "starts echo", "ends: still here", "thinking", "finished", "answered in 2, 200 and 20 tokens")
			if _, err := client.Call[string](t.Context(), box.Client(), "test_trigger_tool_change", nil); err != nil {
				t.Error(err)
			}
			select {
			case <-box.Changed():
			case <-time.After(time.Minute):
				t.Error("the new tool was not reported")
			}
		})
	}
}
