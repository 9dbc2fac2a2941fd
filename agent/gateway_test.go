package agent_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/mcp"
)

// Through a gateway, user and model learn which upstream server asks, of any revision.
func TestQuestionsThroughAGateway(t *testing.T) {
	eras(t, func(t *testing.T, r mcp.Revision) {
		logger := slog.New(slog.DiscardHandler)
		s := everything.New()
		defer s.Close()
		h := hub.New(&hub.Options{Logger: logger})
		defer h.Close()
		h.Apply([]hub.Definition{{Name: "one", Target: s, Options: client.Options{Wire: client.Wire{Revision: r}}}, {Name: "two", Target: s}}, "a test")
		g := gateway.New(h, &gateway.Options{Logger: logger})
		defer g.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if !h.Settle(ctx) {
			t.Fatal("the servers are not ready")
		}
		box := dial(t, g, client.Options{Answers: client.Answers{Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"username":"` + q.Server + `","email":"a@b.c"}`)}, nil
		}}})
		m := &script{t: t, replies: []reply{says("", `one__test_elicitation {"message":"Who?"}`), says("", `one__test_sampling {"prompt":"What?"}`), says("that"), says("done")}}
		a := newTrustingAgent(m, box, &agent.Options{Mode: agent.ModeAll, Limits: agent.Limits{SearchAt: -1}})
		got := story(t, a.Run(t.Context(), mcp.Text("go")))
		for _, want := range []string{`elicitation: one asks "Who?"`, `sampling: one asks "What?"`, "ends: LLM response: that",
			`ends: User response: action: accept, content: {"username":"one","email":"a@b.c"}`} {
			if !slices.Contains(got, want) {
				t.Errorf("%s\nwithout %s", strings.Join(got, "\n"), want)
			}
		}
	})
}
