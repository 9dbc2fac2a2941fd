package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/builtin/everything"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// over returns a gateway over upstreams that are ready.
func over(t testing.TB, definitions ...hub.Definition) (*gateway.Gateway, *hub.Hub) {
	t.Helper()
	h := hub.New()
	t.Cleanup(func() { h.Close() })
	h.Apply(definitions, "the test begins")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if !h.Settle(ctx) {
		t.Fatal("not settled")
	}
	g := gateway.New(h)
	t.Cleanup(func() { g.Close() })
	return g, h
}

func dial(t testing.TB, to any, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), to, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func tools(t *testing.T, c *client.Client) (names []string) {
	t.Helper()
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

func TestOnly(t *testing.T) {
	g, _ := over(t, hub.Definition{Name: "every", Target: everything.New()})
	all, one := tools(t, dial(t, g, client.Options{})), tools(t, dial(t, g.Only("every"), client.Options{}))
	if !slices.Contains(all, "every__echo") || !slices.Contains(all, gateway.StatusTool) || len(all) != len(one)+1 {
		t.Errorf("%v and %v", all, one)
	}
	if !slices.Contains(one, "echo") {
		t.Errorf("%v", one)
	}
}

// Each revision before the gateway, and each behind it.
func TestBridge(t *testing.T) {
	for _, up := range mcp.Revisions() {
		g, _ := over(t, hub.Definition{Name: "every", Target: everything.New(), Options: client.Options{Revision: up}})
		for _, down := range mcp.Revisions() {
			t.Run(fmt.Sprintf("%s behind %s", up, down), func(t *testing.T) { bridge(t, g, up, down) })
		}
	}
}

func bridge(t *testing.T, g *gateway.Gateway, up, down mcp.Revision) {
	var asked []string
	o := client.Options{Revision: down, Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
		asked = append(asked, q.Message)
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: []byte(`{"name":"Ada","age":36}`)}, nil
	}, Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.SamplingContent{mcp.Text("sampled")}}, nil
	}, Roots: client.FixedRoots(mcp.Root{URI: "file:///work", Name: "work"})}
	c := dial(t, g, o)
	text, err := client.Call[string](t.Context(), c, "every__echo", map[string]string{"message": "hi"})
	if err != nil || !strings.Contains(text, "hi") {
		t.Errorf("echo: %q, %v", text, err)
	}
	for name, err := range c.Prompts(t.Context()) {
		if err != nil || !strings.HasPrefix(name.Name, "every__") {
			t.Errorf("prompts: %v %v", name, err)
		}
	}
}
