package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	noticeCut   = "the reply has reached the bound of its length, and was cut off"
	noticeEmpty = "the model's reply was empty: it is asked again"
)

// A cut-off reply is reported. Its calls are made; without calls the run ends with its text.
func TestCutOff(t *testing.T) {
	for _, tt := range []struct {
		name     string
		replies  []reply
		want     []string
		messages int
	}{
		{"text", []reply{{text: "half of", cut: true}}, []string{"thinking", noticeCut, "finished", "cut off in 1, 100 and 10 tokens"}, 2},
		{"calls", []reply{{text: "see", calls: []string{"read {}"}, cut: true}, says("done")},
			[]string{"thinking", noticeCut, "acting", "starts read", "ends: read {}", "thinking", "finished", "answered in 2, 200 and 20 tokens"}, 4},
		{"each time", []reply{{calls: []string{"read {}"}, cut: true}, {text: "half", cut: true}},
			[]string{"thinking", noticeCut, "acting", "starts read", "ends: read {}", "thinking", noticeCut, "finished", "cut off in 2, 200 and 20 tokens"}, 4},
		{"a call that is not whole", []reply{{cut: true}}, []string{"thinking", noticeCut, "finished", "cut off in 1, 100 and 10 tokens"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newTrustingAgent(&script{t: t, replies: append(tt.replies, says("the rest"))}, newBench("read"), nil)
			expect(t, a, tt.want...)
			said := a.Messages()
			if last := said[len(said)-1]; len(said) != tt.messages || last.Cut != (tt.messages%2 == 0 && tt.name != "calls") {
				t.Errorf("%+v", said)
			}
			expect(t, a, "thinking", "finished", "answered in 1, 100 and 10 tokens")
		})
	}
}

// An empty reply is requested again once, and does not enter the conversation.
func TestEmptyReply(t *testing.T) {
	for _, nothing := range []string{"", " \n"} {
		a := newTrustingAgent(&script{t: t, replies: []reply{says(nothing), says("done")}}, newBench(), nil)
		var replied int
		for e, err := range a.Run(t.Context(), mcp.Text("go")) {
			if err != nil {
				t.Error(err)
			}
			if isReply(e) {
				replied++
			}
		}
		if said := a.Messages(); replied != 1 || len(said) != 2 || said[1].Text() != "done" || a.Tokens().Spent.Output != 20 {
			t.Errorf("%d replies, %+v, %+v", replied, said, a.Tokens().Spent)
		}

		a = newTrustingAgent(&script{t: t, replies: []reply{says(nothing), says(nothing), says("done")}}, newBench(), nil)
		got, err := trace(a.Run(t.Context(), mcp.Text("go")))
		if err == nil || !strings.Contains(err.Error(), "replied with nothing, twice") || !slices.Equal(got, []string{"thinking", noticeEmpty, "failed"}) {
			t.Errorf("%q, %v", got, err)
		}
		check(t, a.Messages())
		if _, err := trace(a.Run(t.Context(), mcp.Text("go on"))); err != nil {
			t.Error(err)
		}
	}
}

// Without input the model replies to the last message.
func TestRunWithoutInput(t *testing.T) {
	run := func(a *agent.Agent) error {
		_, err := trace(a.Run(t.Context()))
		check(t, a.Messages())
		return err
	}
	a := newTrustingAgent(&script{t: t, replies: []reply{says("one"), says("two")}}, newBench(), nil)
	if err := run(a); err == nil || !strings.Contains(err.Error(), "nothing has been said yet") || len(a.Messages()) != 0 {
		t.Errorf("%v, %+v", err, a.Messages())
	}
	expect(t, a, "thinking", "finished", "answered in 1, 100 and 10 tokens")
	if err := run(a); err != nil || a.Messages()[2].Text() != "Go on." || a.Messages()[3].Text() != "two" {
		t.Errorf("%v, %+v", err, a.Messages())
	}
	a = newTrustingAgent(&script{t: t, replies: []reply{says("one")}}, newBench(), &agent.Options{Messages: []agent.Message{from(mcp.RoleUser, mcp.Text("go"))}})
	if err := run(a); err != nil || len(a.Messages()) != 2 || a.Messages()[0].Text() != "go" {
		t.Errorf("%v, %+v", err, a.Messages())
	}
}

// The tokens of a reply count even if the run ends as the reply arrives.
func TestUsageOfTheLastReply(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &script{t: t, next: func(agent.Conversation) reply { cancel(); return says("") }}
	a := newTrustingAgent(m, newBench(), nil)
	if _, err := trace(a.Run(ctx, mcp.Text("go"))); err == nil {
		t.Error("no error")
	}
	if spent := a.Tokens().Spent; spent.Output != 10 {
		t.Errorf("%+v", spent)
	}
}
