package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/builtin/everything"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/memory"
)

// Errors about a missing server name it and the reason, so that a model can try something else.
func TestUnavailable(t *testing.T) {
	good := hub.Definition{Name: "good", Target: asker(), Policy: hub.Policy{Tools: hub.ToolRules{Hide: []string{"other"}, Rename: map[string]string{"sleep": "rest"}}}}
	h := hubOf(t, hub.Options{MinBackoff: time.Hour}, good,
		hub.Definition{Name: "off", Hold: hub.Hold{Status: hub.Disabled, Reason: "it is switched off"}},
		hub.Definition{Name: "wild", Hold: hub.Hold{Status: hub.NeedsTrust, Reason: "it came with the project"}},
		hub.Definition{Name: "unset", Hold: hub.Hold{Status: hub.NeedsConfiguration, Reason: "TOKEN is not set"}},
		hub.Definition{Name: "dead", Target: child("exit")},
	)
	settle(t, h)
	g := gatewayOf(t, h, gateway.Options{})
	ask := func(g *gateway.Gateway, method, params string) string {
		t.Helper()
		req := request("ada", params)
		req.Method = method
		res, err := g.ServeMCP(t.Context(), req)
		if err != nil {
			return "error: " + err.Error()
		}
		if method != mcp.MethodCallTool {
			return "ok"
		}
		if r, ok := res.Value.(*mcp.CallToolResult); ok && r.IsError {
			return "failed: " + text(t, res, nil)
		}
		return text(t, res, nil)
	}
	const tool, prompt, resource = mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource
	for _, tt := range []struct {
		of     *gateway.Gateway
		method string
		params string
		want   string
	}{
		{g, tool, `{"name":"wild__x"}`, "failed: the server wild needs trust: it came with the project"},
		{g, tool, `{"name":"unset.x"}`, "failed: the server unset needs configuration: TOKEN is not set"},
		{g, tool, `{"name":"dead__x"}`, "failed: the server dead failed: "},
		{g, prompt, `{"name":"wild__x"}`, "error: the server wild needs trust: it came with the project"},
		{g, prompt, `{"name":"dead__x"}`, "error: the server dead failed: "},
		{g, resource, `{"uri":"dowel://off/file:///x"}`, "error: the server off is disabled: it is switched off"},
		{g, resource, `{"uri":"dowel://unset/file:///x"}`, "error: the server unset needs configuration: TOKEN is not set"},
		{g, resource, `{"uri":"file:///x"}`, "error: no server that answers has the resource file:///x; it may be one of wild, unset, dead"},
		{g.Only("wild"), tool, `{"name":"x"}`, "failed: the server wild needs trust: it came with the project"},
		{g.Only("off"), resource, `{"uri":"file:///x"}`, "error: the server off is disabled: it is switched off"},
		{g, tool, `{"name":"off__x"}`, "error: unknown tool: off__x"},
		{g, tool, `{"name":"good__other"}`, "error: unknown tool: good__other"},
		{g, tool, `{"name":"other"}`, "error: unknown tool: other"},
		{g, tool, `{"name":"good__sleep","arguments":{"seconds":0}}`, "error: unknown tool: good__sleep"},
		{g, tool, `{"name":"good__rest","arguments":{"seconds":0}}`, "rested"},
		{g.Only("good"), tool, `{"name":"other"}`, "error: unknown tool: other"},
	} {
		if got := ask(tt.of, tt.method, tt.params); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %s: %q, want %q", tt.method, tt.params, got, tt.want)
		}
	}
	// A running server is disabled while clients use it, and then enabled again.
	off := good
	off.Hold = hub.Hold{Status: hub.Disabled, Reason: "it is switched off"}
	h.Apply([]hub.Definition{off}, "switched off")
	if got := ask(g.Only("good"), resource, `{"uri":"file:///x"}`); !strings.Contains(got, "the server good is disabled") {
		t.Error(got)
	}
	const rest = `{"name":"good__rest","arguments":{"seconds":0}}`
	if got := ask(g, tool, rest); !strings.HasPrefix(got, "error: unknown tool") {
		t.Error(got)
	}
	h.Apply([]hub.Definition{good}, "switched on")
	if got := ask(g, tool, rest); got != "rested" {
		t.Error(got)
	}
}

// The first list waits for starting servers, for a limited time. The list names the servers that
// are still missing.
func TestFirstListWaits(t *testing.T) {
	for _, tt := range []struct {
		wait, takes, want time.Duration
		listed            bool // the first list has the tool
	}{
		{0, 2 * time.Second, 2 * time.Second, true},
		{0, 10 * time.Second, 3 * time.Second, false},
		{20 * time.Second, 10 * time.Second, 10 * time.Second, true},
		{-1, time.Second, 0, false},
	} {
		t.Run(fmt.Sprint(tt.wait, tt.takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				time.AfterFunc(tt.takes, func() { close(gate) })
				slow := server.New("slow", "1", nil)
				server.Tool(slow, "t", "", func(context.Context, nothing) (string, error) { return "", nil })
				h := hubOf(t, hub.Options{}, hub.Definition{Name: "slow", Target: gated{memory.Dialer(slow), gate}})
				g := gatewayOf(t, h, gateway.Options{StartWait: tt.wait})
				began := time.Now()
				res, err := g.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodListTools, Params: json.RawMessage(`{}`)})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != tt.want {
					t.Errorf("it took %v", took)
				}
				if list := string(res.Raw); strings.Contains(list, `"slow__t"`) != tt.listed || strings.Contains(list, `"server":"slow","status":"starting"`) == tt.listed {
					t.Error(list)
				}
				time.Sleep(tt.takes + time.Second)
				if res, err = g.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodListTools}); err != nil || !strings.Contains(string(res.Raw), `"slow__t"`) {
					t.Errorf("later: %+v, %v", res, err)
				}
			})
		})
	}
}

// An error for an unknown tool explains it to the model.
func TestUnknownToolsOfKnownServers(t *testing.T) {
	g, _ := over(t,
		hub.Definition{Name: "off", Hold: hub.Hold{Status: hub.Disabled, Reason: "it is switched off"}},
		hub.Definition{Name: "empty", Target: server.New("empty", "1", nil)},
		hub.Definition{Name: "every", Target: everything.New(), Policy: hub.Policy{Tools: hub.ToolRules{Only: []string{"add"}}}})
	for name, want := range map[string]string{
		"off__echo": "the server off is disabled: it is switched off", "off.echo": "the server off is disabled",
		"empty__echo": "the server empty has no tools", "every__something_else": "its tools are every__add",
	} {
		_, err := g.ServeMCP(t.Context(), request("ada", `{"name":"`+name+`","arguments":{}}`))
		if got := message(err); !strings.Contains(got, want) || strings.Contains(got, "there is no server") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A name on the wire identifies its server, too.
func TestServerOfUnknownTools(t *testing.T) {
	g, _ := over(t, hub.Definition{Name: "acme.io", Target: everything.New()}, hub.Definition{Name: "notes", Target: everything.New()})
	for _, name := range []string{"acme_io__summarise_the_weather_forecast", "acme.io.summarise_the_weather_forecast", "Notes__summarise_the_weather_forecast"} {
		_, err := g.ServeMCP(t.Context(), request("ada", `{"name":"`+name+`","arguments":{}}`))
		if got := message(err); !strings.Contains(got, "its tools are") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
