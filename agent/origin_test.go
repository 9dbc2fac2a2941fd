package agent_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// An approval for all tools of a server does not cover a server with a similar name.
func TestAllowanceOfAServerBehindAGateway(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	h := hub.New(&hub.Options{Logger: logger})
	defer h.Close()
	var definitions []hub.Definition
	names := []string{"a", "a__b", "my.server", "my server", "my_server"}
	for _, name := range names {
		s := server.New(name, "1", nil)
		defer s.Close()
		for _, tool := range []string{"set", "put"} {
			server.RawTool(s, mcp.Tool{Name: tool, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("done")}}, nil
			})
		}
		definitions = append(definitions, hub.Definition{Name: name, Target: s})
	}
	h.Apply(definitions, "a test")
	h.Settle(t.Context())
	g := gateway.New(h, &gateway.Options{Logger: logger})
	defer g.Close()
	m := &script{t: t}
	for _, name := range names {
		m.replies = append(m.replies, says("", wirename.Of(name, "set")+" {}"), says("", wirename.Of(name, "put")+" {}"))
	}
	m.replies = append(m.replies, says("done"))
	var asked []string
	a := newTrustingAgent(m, dial(t, g, client.Options{}), &agent.Options{Limits: agent.Limits{SearchAt: -1}, Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
		asked = append(asked, q.Server)
		return agent.Decision{Allow: true, For: agent.ThisServer}, nil
	}})
	story(t, a.Run(t.Context(), mcp.Text("go")))
	if len(asked) != len(names) {
		t.Fatalf("the user was asked about %q", asked)
	}
	for i, name := range names {
		if asked[i] != name {
			t.Errorf("the user was asked about %q, want %q", asked[i], name)
		}
	}
}
