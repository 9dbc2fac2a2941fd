package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// Every decision is reported with its source.
func TestApprovals(t *testing.T) {
	allow := func(d agent.Decision) func(context.Context, agent.Question) (agent.Decision, error) {
		return func(context.Context, agent.Question) (agent.Decision, error) { return d, nil }
	}
	always := func(tool string) bool { return tool == "a__write" }
	const waits = "waiting acting "
	for _, tt := range []struct {
		name string
		opts agent.Options
		call string
		want string
	}{
		{"all", agent.Options{Mode: agent.ModeAll}, "a__write", `a__write {} of a, destructive: true by mode, everything is allowed`},
		{"none", agent.Options{Mode: agent.ModeNone, Allowed: always}, "a__read", `a__read {} of a, read-only: false by mode, tools may not be run`},
		{"annotation", agent.Options{}, "a__read", `a__read {} of a, read-only: true by annotation, the tool is read-only`},
		{"always", agent.Options{Allowed: always}, "a__write", `a__write {} of a, destructive: true by always, the user has allowed it for good`},
		{"always, read-only", agent.Options{Allowed: always, Mode: agent.ModeReadOnly}, "a__write", `a__write {} of a, destructive: true by always, the user has allowed it for good`},
		{"read-only", agent.Options{Mode: agent.ModeReadOnly}, "a__write", `a__write {} of a, destructive: false by mode, only tools that are read-only may be run, and this one is not`},
		{"nobody", agent.Options{}, "a__write", `a__write {} of a, destructive: false by mode, the user has to approve this tool, and cannot be asked`},
		{"user", agent.Options{Approve: allow(agent.Decision{Allow: true})}, "a__write", waits + `a__write {} of a, destructive: true by user, the user has allowed it`},
		{"user refuses", agent.Options{Approve: allow(agent.Decision{})}, "a__write", waits + `a__write {} of a, destructive: false by user, the user refused`},
		{"user says why", agent.Options{Approve: allow(agent.Decision{Reason: "later"})}, "a__write", waits + `a__write {} of a, destructive: false by user, the user refused: later`},
		{"edited", agent.Options{Approve: allow(agent.Decision{Allow: true, Arguments: json.RawMessage(` {"x":2}`)})}, "a__write", waits + `a__write {"x":2} of a, destructive: true by user, the user has allowed it`},
		{"edited badly", agent.Options{Approve: allow(agent.Decision{Allow: true, Arguments: json.RawMessage(`{"x":`)})}, "a__write",
			waits + `a__write {} of a, destructive: false by user, the user has changed its arguments into something other than a JSON object`},
		{"without a server", agent.Options{Mode: agent.ModeAll}, "write", `write {} of , destructive: true by mode, everything is allowed`},
		{"a server that names do not tell", agent.Options{Mode: agent.ModeAll}, "a__far",
			`a__far {} of x__y, destructive: true by mode, everything is allowed`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &originBench{newBench("a__write", "a__read", "a__far", "write"), map[string]string{"a__far": "x__y"}}
			a := newTrustingAgent(&script{t: t, replies: []reply{says("", tt.call), says("done")}}, b, &tt.opts)
			var got []string
			for e, err := range a.Run(t.Context(), mcp.Text("go")) {
				switch e := e.(type) {
				case agent.StateChanged:
					if e.State == agent.Waiting || e.State == agent.Acting {
						got = append(got, string(e.State))
					}
				case agent.Approval:
					got = append(got, line(e))
				case nil:
					t.Error(err)
				}
			}
			if all := strings.TrimPrefix(strings.Join(got, " "), "acting "); all != tt.want {
				t.Errorf("%s, want %s", all, tt.want)
			}
			if ran := len(b.called) == 1; ran != strings.Contains(tt.want, ": true by") {
				t.Errorf("ran: %v", ran)
			}
		})
	}
}

// originBench is a bench that knows the servers of some tools.
type originBench struct {
	*bench
	servers map[string]string
}

func (b *originBench) Origin(tool string) (server, name string, ok bool) {
	server, ok = b.servers[tool]
	return server, tool, ok
}

func line(d agent.Approval) string {
	allowed := "false"
	if d.Allowed {
		allowed = "true"
	}
	return d.Call.Name + " " + string(d.Call.Input) + " of " + d.Server + ", " + string(d.Effect) + ": " + allowed + " by " + d.By + ", " + d.Reason
}

// An approval for the session decides later calls, and covers no more than it says.
func TestSessionAllowances(t *testing.T) {
	b := &originBench{newBench("a__x", "a__y", "a__b__z", "one", "two"), map[string]string{"a__b__z": "a__b"}} // as a hub knows it
	asked := []string{}
	extent := map[string]agent.Scope{"a__x": agent.ThisServer, "one": agent.ThisServer}
	a := newTrustingAgent(&script{t: t, replies: []reply{says("", "a__x", "a__y", "a__b__z", "one", "two"), says("done")}}, b, &agent.Options{
		Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
			asked = append(asked, q.Server+": "+q.Call.Name)
			return agent.Decision{Allow: true, For: extent[q.Call.Name]}, nil
		},
	})
	var by []string
	for e := range a.Run(t.Context(), mcp.Text("go")) {
		if d, ok := e.(agent.Approval); ok {
			by = append(by, d.By)
		}
	}
	if want := []string{"a: a__x", "a__b: a__b__z", ": one"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if want := []string{"user", "session", "user", "user", "session"}; !slices.Equal(by, want) {
		t.Errorf("by %q, want %q", by, want)
	}
}

// Arguments that are not an object are refused before the user is asked. Empty input means {}.
func TestArguments(t *testing.T) {
	for input, want := range map[string]string{
		``: `{}`, `null`: `{}`, ` {"x": 1} `: `{"x": 1}`, `[]`: "", `"{}"`: "", `{"x":`: "", `{} {}`: "", `7`: "",
	} {
		b, asked := newBench("write"), 0
		a := newTrustingAgent(&script{t: t, replies: []reply{says("", "write "+input), says("done")}}, b, &agent.Options{
			Approve: func(context.Context, agent.Question) (agent.Decision, error) {
				asked++
				return agent.Decision{Allow: true}, nil
			}})
		for _, err := range a.Run(t.Context(), mcp.Text("go")) {
			if err != nil {
				t.Error(err)
			}
		}
		res := a.Messages()[2].Content[0].ToolResult
		if want == "" {
			if asked != 0 || len(b.called) != 0 || !res.IsError || !strings.Contains(res.Content[0].Text, "the arguments of write are not a JSON object") {
				t.Errorf("%q: asked %d, called %q, %+v", input, asked, b.called, res)
			}
		} else if asked != 1 || !slices.Equal(b.called, []string{"write " + want}) {
			t.Errorf("%q: asked %d, called %q", input, asked, b.called)
		}
	}
}

// The mode can be changed between runs, and in Approve.
func TestSetMode(t *testing.T) {
	b, asked := newBench("write"), 0
	var a *agent.Agent
	a = newTrustingAgent(&script{t: t, replies: []reply{says("", "write", "write"), says("done"), says("", "write"), says("done")}}, b, &agent.Options{
		Approve: func(context.Context, agent.Question) (agent.Decision, error) {
			asked++
			a.SetMode(agent.ModeAll)
			return agent.Decision{Allow: true}, nil
		}})
	for range a.Run(t.Context(), mcp.Text("go")) {
	}
	a.SetMode(agent.ModeNone)
	for range a.Run(t.Context(), mcp.Text("go")) {
	}
	if asked != 1 || len(b.called) != 2 {
		t.Errorf("asked %d, called %q", asked, b.called)
	}
}

// After the end of a run, the user is not asked, and an answer does not count.
func TestAskedTooLate(t *testing.T) {
	for _, at := range []string{"replied", "waiting", "answer", "all"} {
		for _, how := range []string{"left", "cancelled"} {
			t.Run(at+", "+how, func(t *testing.T) {
				b, asked, decided := newBench("write"), 0, 0
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				o := agent.Options{Approve: func(ctx context.Context, _ agent.Question) (agent.Decision, error) {
					if asked++; ctx.Err() != nil {
						t.Error("asked with a context that has ended")
					}
					if at == "answer" && asked == 1 {
						cancel()
					}
					return agent.Decision{Allow: true, For: agent.ThisTool}, nil
				}}
				if at == "all" {
					o.Mode = agent.ModeAll
				}
				m := &script{t: t, replies: []reply{says("", "write", "write"), says("", "write"), says("done")}}
				a := newTrustingAgent(m, b, &o)
				for e := range a.Run(ctx, mcp.Text("go")) {
					replied := isReply(e)
					state, _ := e.(agent.StateChanged)
					if replied && (at == "replied" || at == "all") || at == "waiting" && state.State == agent.Waiting {
						if cancel(); how == "left" {
							break
						}
					}
					if _, ok := e.(agent.Approval); ok {
						decided++
					}
				}
				want := 0
				if at == "answer" {
					want = 1
				}
				if asked != want || decided != 0 || len(b.called) != 0 {
					t.Errorf("asked %d times, %d decisions, called %q", asked, decided, b.called)
				}
				if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil || at != "all" && asked != want+1 {
					t.Errorf("asked %d times in the next run, %v", asked, err)
				}
			})
		}
	}
}

// Approvals for the session count in ModeAsk only.
func TestAllowancesInReadOnly(t *testing.T) {
	for _, extent := range []agent.Scope{agent.ThisTool, agent.ThisServer} {
		b := newBench("a__write")
		m := &script{t: t, replies: []reply{says("", "a__write"), says("ok"), says("", "a__write"), says("ok"), says("", "a__write"), says("ok")}}
		asked := 0
		a := newTrustingAgent(m, b, &agent.Options{Approve: func(context.Context, agent.Question) (agent.Decision, error) {
			asked++
			return agent.Decision{Allow: true, For: extent}, nil
		}})
		for i, mode := range []agent.Mode{agent.ModeAsk, agent.ModeReadOnly, agent.ModeAsk} {
			a.SetMode(mode)
			if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
				t.Error(err)
			}
			if want := []int{1, 1, 2}[i]; len(b.called) != want || asked != 1 {
				t.Errorf("%s, run %d in mode %s: called %q, asked %d times", extent, i, mode, b.called, asked)
			}
		}
	}
}

// The model is told before the result if the user has changed the arguments.
func TestEditedArguments(t *testing.T) {
	for edited, want := range map[string]string{
		`{"path":"b"}`:   `The user changed the arguments to {"path":"b"}; this is the result of that.`,
		`{ "path": "a"}`: "",
		``:               "",
	} {
		for _, size := range []int{10, 10_000} {
			b := newBench("write")
			b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(strings.Repeat("x", size))}}, nil
			}
			a := newTrustingAgent(&script{t: t, replies: []reply{says("", `write {"path":"a"}`), says("done")}}, b, &agent.Options{Limits: agent.Limits{MaxResult: 1000},
				Approve: func(context.Context, agent.Question) (agent.Decision, error) {
					return agent.Decision{Allow: true, Arguments: []byte(edited)}, nil
				}})
			var told []mcp.Content
			for e := range a.Run(t.Context(), mcp.Text("go")) {
				if ended, ok := e.(agent.CallEnded); ok {
					told = ended.Result.Content
				}
			}
			got := a.Messages()[2].Content[0].ToolResult.Content
			if len(told) != len(got) || want == "" && len(got) != 1 || want != "" && (len(got) != 2 || got[0].Text != want) || !strings.HasPrefix(got[len(got)-1].Text, "xxx") {
				t.Errorf("%s: %.200v, want %s", edited, got, want)
			}
			if input := a.Messages()[1].Calls()[0].Input; string(input) != `{"path":"a"}` {
				t.Errorf("what the model has said is %s", input)
			}
		}
	}
}
