package gateway_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// A relay shows the current lists and names of the gateway behind it.
func TestThrough(t *testing.T) {
	behind := hubOf(t, hub.Options{MinBackoff: time.Hour, MaxBackoff: time.Hour},
		hub.Definition{Name: "good", Target: everything.New()}, hub.Definition{Name: "bad", Target: child("exit")})
	settle(t, behind)
	front, _ := over(t, hub.Definition{Name: "dowel", Target: gatewayOf(t, behind, gateway.Options{PageSize: 10})})
	g := front.Relay("dowel")
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20250618} {
		c := dial(t, g, client.Options{Wire: client.Wire{Revision: r}, NoCache: true, Logger: quiet})
		if all := tools(t, c); !slices.Contains(all, "good__echo") || !slices.Contains(all, "dowel__status") || len(all) < 20 {
			t.Errorf("%s: %v", r, all)
		}
		resp, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListTools})
		if err != nil || !strings.Contains(string(resp.Raw), `"`+mcpwire.MetaMissing+`":[{"server":"bad"`) {
			t.Errorf("%s: what is missing is not said: %v", r, err)
		}
		if got, err := client.Call[string](t.Context(), c, "Good-Echo", map[string]string{"message": "hi"}); got != "hi" {
			t.Errorf("%s: %q, %v", r, got, err)
		}
		_, err = client.Call[string](t.Context(), c, "bad__echo", nil)
		if err == nil || !strings.Contains(err.Error(), "the server bad failed") {
			t.Errorf("%s: %v", r, err)
		}
		if _, err := c.GetPrompt(t.Context(), "good__nothing", nil); err == nil || !strings.Contains(err.Error(), "unknown prompt: good__nothing") {
			t.Errorf("%s: %v", r, err)
		}
	}
	if res, err := g.Relay("nobody").ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"x"}`)}); err == nil {
		t.Errorf("%+v", res)
	}
}
