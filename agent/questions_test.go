package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// asked describes questions, decisions and ends; "" for other events.
func asked(e agent.Event) string {
	switch e := e.(type) {
	case agent.StateChanged:
		return string(e.State)
	case agent.Asked:
		kind := "elicitation"
		if e.Sampling {
			kind = "sampling"
		}
		return fmt.Sprintf("%s: %s asks %q", kind, e.Server, e.Message)
	case agent.Approval:
		return fmt.Sprintf("decided %q of %q: %v by %s, %s", e.Call.Name, e.Server, e.Allowed, e.By, e.Reason)
	case agent.CallEnded:
		text := ""
		for _, block := range e.Result.Content {
			text += block.Text
		}
		return "ends: " + text
	case agent.Delta:
		return e.Notice
	case agent.Ended:
		return fmt.Sprintf("%s, %d and %d tokens", e.Reason, e.Usage.Input, e.Usage.Output)
	}
	return ""
}

func story(t *testing.T, events iter.Seq2[agent.Event, error]) (all []string) {
	t.Helper()
	for e, err := range events {
		if err != nil {
			all = append(all, "error: "+err.Error())
		} else if line := asked(e); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// eras runs a test with a modern client and with a legacy one.
func eras(t *testing.T, f func(t *testing.T, r mcp.Revision)) {
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		t.Run(string(r), func(t *testing.T) { f(t, r) })
	}
}

func dial(t *testing.T, s mcp.Handler, o client.Options) *agent.Toolbox {
	t.Helper()
	box, err := agent.Dial(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}

// A server's question is asked on the goroutine of the run, in the state Waiting.
func TestElicitation(t *testing.T) {
	eras(t, func(t *testing.T, r mcp.Revision) {
		s := everything.New()
		defer s.Close()
		inLoop := 0 // not guarded: the race detector sees whether it is that goroutine
		box := dial(t, s, client.Options{Wire: client.Wire{Revision: r}, Name: "the server", Answers: client.Answers{Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			inLoop++
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"username":"Ann","email":"a@b.c"}`)}, nil
		}}})
		m := &script{t: t, replies: []reply{says("", `test_elicitation {"message":"Who are you?"}`), says("done")}}
		a := newTrustingAgent(m, box, &agent.Options{Mode: agent.ModeAll})
		got := story(t, func(yield func(agent.Event, error) bool) {
			for e, err := range a.Run(t.Context(), mcp.Text("go")) {
				inLoop++
				if !yield(e, err) {
					return
				}
			}
		})
		same(t, got, "thinking", "acting", `decided "test_elicitation" of "": true by mode, everything is allowed`, `elicitation: the server asks "Who are you?"`,
			"waiting", "acting", `ends: User response: action: accept, content: {"username":"Ann","email":"a@b.c"}`, "thinking", "finished", "answered, 200 and 20 tokens")
		_, err := client.Call[string](t.Context(), box.Client(), "test_elicitation", map[string]string{"message": "Who?"})
		if err == nil || !strings.Contains(err.Error(), "nobody can be asked now") {
			t.Errorf("outside of a run: %v", err)
		}
	})
}

// Servers use the agent's model as far as they are allowed.
func TestSampling(t *testing.T) {
	allow := func(_ context.Context, q agent.Question) (agent.Decision, error) {
		if q.Sampling == nil {
			return agent.Decision{Allow: true}, nil
		}
		return agent.Decision{Allow: q.Server == "everything" && q.Tool.Name == "" && q.Sampling.MaxTokens == 100, For: agent.ThisTool}, nil
	}
	no := func(_ context.Context, q agent.Question) (agent.Decision, error) {
		return agent.Decision{Allow: q.Sampling == nil, Reason: "too dear"}, nil
	}
	const asks = `sampling: everything asks "How many?"`
	for _, tt := range []struct {
		name string
		opts agent.Options
		want []string
	}{
		{"all", agent.Options{Mode: agent.ModeAll}, []string{asks, `decided "" of "everything": true by mode, everything is allowed`, "ends: LLM response: seven"}},
		{"read-only", agent.Options{Mode: agent.ModeReadOnly, Allowed: func(string) bool { return true }},
			[]string{asks, `decided "" of "everything": false by mode, servers may not use the model`, "servers may not use the model"}},
		{"asked", agent.Options{Approve: allow}, []string{asks, "waiting", "acting", `decided "" of "everything": true by user, the user has allowed it`, "ends: LLM response: seven"}},
		{"refused", agent.Options{Approve: no}, []string{asks, "waiting", "acting", `decided "" of "everything": false by user, the user refused: too dear`, "the user refused: too dear"}},
		{"nobody", agent.Options{Allowed: func(string) bool { return true }},
			[]string{asks, `decided "" of "everything": false by mode, the user has to approve that a server uses the model, and cannot be asked`, "cannot be asked"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eras(t, func(t *testing.T, r mcp.Revision) {
				s := everything.New()
				defer s.Close()
				box := dial(t, s, client.Options{Wire: client.Wire{Revision: r}})
				replies := []reply{says("", `test_sampling {"prompt":"How many?"}`), says("seven"), says("done")}
				allowed := strings.HasPrefix(tt.want[len(tt.want)-1], "ends: LLM")
				if !allowed {
					replies = slices.Delete(replies, 1, 2)
				}
				m := &script{t: t, replies: replies}
				a := newTrustingAgent(m, box, &tt.opts)
				got := story(t, a.Run(t.Context(), mcp.Text("go")))
				from := slices.Index(got, asks)
				if from < 0 {
					t.Fatalf("%q", got)
				}
				got = got[from:]
				last := len(tt.want) - 1
				if len(got) <= last || !strings.Contains(got[last], tt.want[last]) {
					t.Errorf("%q, want %q", got, tt.want)
				}
				same(t, got[:last], tt.want[:last]...)
				if allowed {
					if c := m.conversations[1]; c.MaxTokens != 100 || c.Messages[0].Text() != "How many?" || len(c.Tools) != 0 || c.System != "" {
						t.Errorf("%+v", c)
					}
					if end := got[len(got)-1]; end != "answered, 300 and 30 tokens" || a.Tokens().Spent.Input != 300 {
						t.Errorf("the sample is not counted: %s, %+v", end, a.Tokens().Spent)
					}
				}
			})
		})
	}
}

// A server learns why a reply has ended, and may give the model tools of its own.
func TestSamples(t *testing.T) {
	type result = mcp.CreateMessageResult
	for _, tt := range []struct {
		name   string
		params mcp.CreateMessageParams
		reply  reply
		want   string
	}{
		{"end", mcp.CreateMessageParams{}, says("all of it"), "unknown endTurn all of it"},
		{"stop", mcp.CreateMessageParams{StopSequences: []string{"no", "END"}}, says("some END more"), "unknown stopSequence some "},
		{"cut", mcp.CreateMessageParams{}, reply{text: "half", cut: true}, "unknown maxTokens half"},
		{"nothing", mcp.CreateMessageParams{}, says(""), "unknown endTurn "},
		{"failed", mcp.CreateMessageParams{}, reply{err: errors.New("no quota")}, "the model has not replied: no quota"},
		{"tools", mcp.CreateMessageParams{Tools: []mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}}, ToolChoice: &mcp.ToolChoice{Mode: "required"}},
			says("", "t {}"), "unknown toolUse t {}"},
		{"tools that the model must not use", mcp.CreateMessageParams{Tools: []mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}}, ToolChoice: &mcp.ToolChoice{Mode: "none"}},
			says("so be it"), "unknown endTurn so be it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := server.New("s", "1", nil)
			tt.params.MaxTokens, tt.params.SystemPrompt = 50, "Be short."
			tt.params.Messages = []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("a")}}, {Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("b")}}}
			server.Tool(s, "ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
				res, err := server.Sample(ctx, "q", tt.params)
				if err != nil {
					return "", err
				}
				text := res.Model + " " + res.StopReason + " " + res.Text()
				for _, c := range res.Content {
					if c.ToolUse != nil {
						text += c.ToolUse.Name + " " + string(c.ToolUse.Input)
					}
				}
				return text, nil
			})
			m := &script{t: t, replies: []reply{says("", "ask {}"), tt.reply, says("done")}}
			a := newTrustingAgent(m, dial(t, s, client.Options{}), &agent.Options{Mode: agent.ModeAll})
			got := story(t, a.Run(t.Context(), mcp.Text("go")))
			if all := strings.Join(got, "\n"); !strings.Contains(all, tt.want) || !strings.Contains(all, "answered") {
				t.Errorf("%s, want %q", all, tt.want)
			}
			choice := ""
			if tt.params.ToolChoice != nil {
				choice = tt.params.ToolChoice.Mode
			}
			if c := m.conversations[1]; c.System != "Be short." || c.MaxTokens != 50 || len(c.Messages) != 1 || len(c.Tools) != len(tt.params.Tools) || c.ToolChoice != choice {
				t.Errorf("%+v", c)
			}
		})
	}
}

// Two simultaneous questions are asked one after the other. Meanwhile other calls run; their
// progress and results wait.
func TestTwoQuestions(t *testing.T) {
	eras(t, func(t *testing.T, r mcp.Revision) {
		s := server.New("s", "1", nil)
		ask := func(ctx context.Context, _ struct{}) (string, error) {
			got, err := server.Ask[struct{ X string }](ctx, "q", "Which?")
			return got.X, err
		}
		server.Tool(s, "one", "Asks.", ask, server.ToolOptions{Annotations: mcp.ReadOnly})
		server.Tool(s, "two", "Asks.", ask, server.ToolOptions{Annotations: mcp.ReadOnly})
		server.Tool(s, "busy", "Works.", func(ctx context.Context, _ struct{}) (string, error) {
			for i := range 1000 {
				server.Progress(ctx, float64(i), 1000, "at work")
			}
			return "worked", nil
		}, server.ToolOptions{Annotations: mcp.ReadOnly})
		questions := 0
		box := dial(t, s, client.Options{Wire: client.Wire{Revision: r}, Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			questions++
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: fmt.Appendf(nil, `{"X":"answer %d"}`, questions)}, nil
		}}})
		m := &script{t: t, replies: []reply{says("", "one {}", "busy {}", "two {}"), says("done")}}
		a := newTrustingAgent(m, box, nil)
		got := story(t, a.Run(t.Context(), mcp.Text("go")))
		var results []string
		for _, c := range a.Messages()[2].Content {
			results = append(results, c.ToolResult.Content[0].Text)
		}
		slices.Sort(results)
		if questions != 2 || !slices.Equal(results, []string{"answer 1", "answer 2", "worked"}) {
			t.Errorf("%d, %q, %q", questions, results, got)
		}
	})
}

// A run ends if it is cancelled, or if its caller leaves, while the user is asked.
func TestQuestionInterrupted(t *testing.T) {
	eras(t, func(t *testing.T, r mcp.Revision) {
		for _, how := range []string{"cancelled", "left", "left waiting", "slow", "second"} {
			t.Run(how, func(t *testing.T) {
				s := server.New("s", "1", nil)
				server.Tool(s, "ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
					got, err := server.Ask[struct{ X string }](ctx, "q", "Which?")
					return got.X, err
				}, server.ToolOptions{Annotations: mcp.ReadOnly})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				o := client.Options{Wire: client.Wire{Revision: r}, Answers: client.Answers{Elicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
					if strings.HasPrefix(how, "left") {
						t.Error("the user is asked, and nobody wants to know")
					}
					if how == "slow" {
						time.AfterFunc(50*time.Millisecond, cancel)
					} else {
						cancel()
					}
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}}}
				calls := []string{"ask {}"}
				if how == "second" {
					calls = append(calls, "ask {}")
				}
				box := dial(t, s, o)
				a := newTrustingAgent(&script{t: t, replies: []reply{says("", calls...), says("done")}}, box, nil)
				ended := false
				for e, err := range a.Run(ctx, mcp.Text("go")) {
					_, asked := e.(agent.Asked)
					state, _ := e.(agent.StateChanged)
					if asked && how == "left" || how == "left waiting" && state.State == agent.Waiting {
						ended = true
						break
					}
					ended = errors.Is(err, context.Canceled)
				}
				if !ended {
					t.Error("it ended otherwise")
				}
				expect(t, a, "thinking", "finished", "answered in 1, 100 and 10 tokens")
			})
		}
	})
}

// A call that exceeds its time becomes an error that the model reads.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the limit bounds the lists too
		s := everything.New()
		defer s.Close()
		box := dial(t, s, client.Options{Limits: client.Limits{Total: 50 * time.Millisecond}})
		a := newTrustingAgent(&script{t: t, replies: []reply{says("", `slow {"seconds":60}`), says("done")}}, box, &agent.Options{Mode: agent.ModeAll})
		if got := strings.Join(story(t, a.Run(t.Context(), mcp.Text("go"))), "\n"); !strings.Contains(got, "answered") {
			t.Error(got)
		}
		if res := a.Messages()[2].Content[0].ToolResult; !res.IsError || !strings.Contains(res.Content[0].Text, "50ms") {
			t.Errorf("%+v", res)
		}
	})
}

// Approve may be called for a server's request, and its error ends the run.
func TestSamplingApprovalFails(t *testing.T) {
	s := everything.New()
	defer s.Close()
	box := dial(t, s, client.Options{})
	gone := errors.New("the terminal is gone")
	a := newTrustingAgent(&script{t: t, replies: []reply{says("", `test_sampling {"prompt":"How many?"}`)}}, box, &agent.Options{Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
		if q.Sampling != nil {
			return agent.Decision{}, gone
		}
		return agent.Decision{Allow: true}, nil
	}})
	var last error
	for _, err := range a.Run(t.Context(), mcp.Text("go")) {
		last = err
	}
	if !errors.Is(last, gone) {
		t.Errorf("%v", last)
	}
}

// A server with an approval for the session is not asked about again; other servers are.
func TestSamplingForTheSession(t *testing.T) {
	s := everything.New()
	defer s.Close()
	box := dial(t, s, client.Options{})
	asked := 0
	m := &script{t: t, replies: []reply{says("", `test_sampling {"prompt":"One?"}`), says("1"), says("", `test_sampling {"prompt":"Two?"}`), says("2"), says("done")}}
	a := newTrustingAgent(m, box, &agent.Options{Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
		if q.Sampling != nil {
			asked++
		}
		return agent.Decision{Allow: true, For: agent.ThisServer}, nil
	}})
	got := strings.Join(story(t, a.Run(t.Context(), mcp.Text("go"))), "\n")
	if asked != 1 || !strings.Contains(got, `decided "" of "everything": true by session, the user has allowed it before`) {
		t.Errorf("asked %d times: %s", asked, got)
	}
}
