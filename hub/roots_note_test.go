package hub_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// A legacy server that all clients share and that asks for the folders of one of them is noted once
// in its history. A server of one client is not.
func TestRootsOfASharedServer(t *testing.T) {
	t.Parallel()
	for sharing, want := range map[hub.Sharing]int{"": 1, hub.SharePerClient: 0} {
		t.Run(string(sharing), func(t *testing.T) {
			t.Parallel()
			s := server.New("s", "1", nil)
			server.Tool(s, "folders", "Asks for folders.", func(ctx context.Context, _ struct{}) (string, error) {
				roots, err := server.Roots(ctx, "folders")
				if err != nil {
					return "", err
				}
				return roots[0].URI, nil
			})
			h := start(t, hub.Options{Logger: quiet}, hub.Definition{
				Name: "s", Target: s, Policy: hub.Policy{Sharing: sharing}, Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}},
			})
			settled(t, h)
			u := h.Upstream("s")
			for range 2 {
				ctx := hub.WithAnswerer(t.Context(), mcp.HandlerFunc(func(context.Context, *mcp.Request) (*mcp.Result, error) {
					return &mcp.Result{Raw: json.RawMessage(`{"roots":[{"uri":"file:///ada"}]}`)}, nil
				}))
				resp, err := u.RoundTrip(ctx, hub.Caller{Principal: "ada"}, &mcp.Request{
					Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"folders","arguments":{}}`),
				})
				if err != nil || !strings.Contains(string(resp.Raw), "file:///ada") {
					t.Fatalf("%+v, %v", resp, err)
				}
			}
			notes := 0
			for _, line := range stderrOf(u) {
				if strings.Contains(line, "roots") && strings.Contains(line, `"sharing": "client"`) {
					notes++
				}
			}
			if notes != want {
				t.Errorf("%d notes, want %d: %q", notes, want, stderrOf(u))
			}
		})
	}
}
