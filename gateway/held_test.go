package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// TestHeldTool checks that a tool with a changed definition is neither listed nor called, and that
// the refusal says why.
func TestHeldTool(t *testing.T) {
	t.Parallel()
	log := &memoryLog{}
	serve := func(description string) *gateway.Gateway {
		s := server.New("a", "1", nil)
		t.Cleanup(func() { s.Close() })
		server.Tool(s, "env", description, func(context.Context, struct{}) (string, error) { return "ran", nil })
		server.Prompt(s, "ask", description, func(context.Context, struct{}) (string, error) { return "asked", nil })
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "a", Target: s, Log: log, HoldChanged: "accept it with dowel trust --definitions a"})
		settle(t, h)
		return gatewayOf(t, h, gateway.Options{})
	}
	answer := func(g *gateway.Gateway, method, params string) string {
		t.Helper()
		req := request("ada", params)
		req.Method = method
		res, err := g.ServeMCP(t.Context(), req)
		if err != nil {
			return err.Error()
		}
		if res.Value != nil {
			raw, _ := json.Marshal(res.Value)
			return string(raw)
		}
		return string(res.Raw)
	}
	g := serve("Reads.")
	for _, name := range []string{"a__env", "a.env"} {
		if got := answer(g, mcp.MethodCallTool, `{"name":"`+name+`"}`); !strings.Contains(got, "ran") {
			t.Fatalf("the first definition: %s", got)
		}
	}
	g = serve("Sends.")
	for _, shown := range []*gateway.Gateway{g, g.Only("a"), g.WithToolSearch()} {
		if got := answer(shown, mcp.MethodListTools, `{}`); strings.Contains(got, "Sends.") {
			t.Errorf("it is listed: %s", got)
		}
	}
	const why = "a.env is not offered: its definition has changed ("
	for params, of := range map[string]*gateway.Gateway{
		`{"name":"a__env"}`: g, `{"name":"a.env"}`: g, `{"name":"env"}`: g.Only("a"),
		`{"name":"call_tool","arguments":{"name":"a__env"}}`:     g.WithToolSearch(),
		`{"name":"describe_tool","arguments":{"name":"a__env"}}`: g.WithToolSearch(),
	} {
		if got := answer(of, mcp.MethodCallTool, params); !strings.Contains(got, why) || !strings.Contains(got, "dowel trust --definitions a") || strings.Contains(got, "Sends.") {
			t.Errorf("%s: %s", params, got)
		}
	}
	if got := answer(g, mcp.MethodGetPrompt, `{"name":"a__ask"}`); !strings.Contains(got, "the prompt a.ask is not offered: its definition has changed (") {
		t.Errorf("the prompt: %s", got)
	}
}

// memoryLog is a log without a file.
type memoryLog struct {
	mu     sync.Mutex
	record []byte
}

func (m *memoryLog) Update(change func([]byte) []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record = change(m.record)
	return nil
}

// TestHeldTemplate checks that resources of a template with a changed definition cannot be read,
// unless they are listed or another template has them.
func TestHeldTemplate(t *testing.T) {
	t.Parallel()
	log := &memoryLog{}
	var g *gateway.Gateway
	for _, description := range []string{"Notes.", "All of your notes."} {
		s := server.New("a", "1", nil)
		t.Cleanup(func() { s.Close() })
		type note struct {
			Name string `uri:"name"`
		}
		read := func(_ context.Context, n note) (string, error) { return "the note " + n.Name, nil }
		server.Resource(s, "note://{name}", description, read)
		server.Resource(s, "note://pub-{name}", "Public notes.", read)
		server.Resource(s, "note://listed", "One note.", func(context.Context, struct{}) (string, error) { return "the note listed", nil })
		h := hubOf(t, hub.Options{}, hub.Definition{Name: "a", Target: s, Log: log, HoldChanged: "accept it"})
		settle(t, h)
		g = gatewayOf(t, h, gateway.Options{})
		for _, shown := range []*gateway.Gateway{g, g.Only("a")} {
			for name, held := range map[string]bool{"secret": true, "pub-a": false, "listed": false} {
				req := request("ada", `{"uri":"note://`+name+`"}`)
				req.Method = mcp.MethodReadResource
				_, err := shown.ServeMCP(t.Context(), req)
				if wantHeld := held && description != "Notes."; wantHeld != (err != nil) ||
					err != nil && !strings.Contains(err.Error(), "note://{name} of a is not offered: its definition has changed (") {
					t.Errorf("%s, %s: %v", description, name, err)
				}
			}
		}
	}
}
