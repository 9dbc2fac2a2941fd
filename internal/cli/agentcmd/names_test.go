package agentcmd

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// A permanent approval for one server does not apply to another server with a similar name, even if
// the wire names of their tools begin alike.
func TestApprovalsOfNamesThatBeginAlike(t *testing.T) {
	sources := map[string]string{
		"files": "user", "files__x": "project", "files_": "project", "my.server": "user", "my server": "project", "my_server": "project",
	}
	h := hub.New(&hub.Options{Logger: slog.New(slog.DiscardHandler)})
	defer h.Close()
	var definitions []hub.Definition
	for name := range sources {
		s := server.New(name, "1", nil)
		for _, tool := range []string{"set", "two.words", strings.Repeat("long", 16)} {
			server.RawTool(s, mcp.Tool{
				Name: tool, InputSchema: []byte(`{"type":"object"}`), Meta: mcp.Meta{wirename.MetaServer: "files", wirename.MetaThing: "set", "other": name},
			}, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) { return &mcp.CallToolResult{}, nil })
		}
		server.Prompt(s, "two words", "", func(context.Context, struct{}) (string, error) { return "", nil })
		defer s.Close()
		definitions = append(definitions, hub.Definition{Name: name, Target: s})
	}
	h.Apply(definitions, "a test")
	h.Settle(t.Context())
	g := gateway.New(h, &gateway.Options{Logger: slog.New(slog.DiscardHandler)})
	defer g.Close()
	box, err := agent.Dial(t.Context(), g, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	tools, err := toolname.Recorder{Toolbox: box}.List(t.Context())
	if err != nil || len(tools) != 3*len(sources)+1 {
		t.Fatal(len(tools), err)
	}
	store, err := state.Open(filepath.Join(t.TempDir(), "state.json"), state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	servers := &serverSet{sources: sources, listServers: func(context.Context) ([]Server, error) { return nil, nil }}
	p := &approvals{state: store, set: &config.Set{}, servers: servers, splitToolName: box.Origin}
	for own, from := range sources {
		for _, tool := range []string{"set", "two.words", strings.Repeat("long", 16)} {
			wire := wirename.Of(own, tool)
			if got, _, _ := box.Origin(wire); got != own {
				t.Errorf("%s is of %q, want %q", wire, got, own)
			}
			if got := toolname.Display(wire); got != own+"."+tool {
				t.Errorf("%s is called %s for people", wire, got)
			}
			if err := p.allowAlways(wire); (err == nil) != (from == "user") {
				t.Errorf("%s of %s: %v", tool, own, err)
			}
			if p.isAllowed(wire) != (from == "user") {
				t.Errorf("%s of %s, %s: %v", tool, own, from, p.isAllowed(wire))
			}
		}
	}
	prompts, err := (&Runtime{Toolbox: box}).ListPrompts(t.Context())
	if err != nil || len(prompts) != len(sources) {
		t.Fatal(prompts, err)
	}
	for _, p := range prompts {
		if server, _, _ := strings.Cut(toolname.Display(p.Name), ".two words"); sources[server] == "" {
			t.Errorf("the prompt %s is called %s for people", p.Name, toolname.Display(p.Name))
		}
	}
	if got := store.AlwaysAllow("my.server"); len(got) != 3 || got[1] != "set" || got[2] != "two.words" {
		t.Errorf("%q", got)
	}
	for i := range tools {
		if m := tools[i].Meta; m["other"] != nil && wirename.Marked(tools[i].Name) != (m[wirename.MetaServer] != nil) {
			t.Errorf("%s has %v", tools[i].Name, m)
		}
	}
}
