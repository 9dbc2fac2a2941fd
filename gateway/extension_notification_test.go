package gateway_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// acmeServer is a server with the extension acme/steps: its tool sends a notification while it
// runs.
func acmeServer(t *testing.T) mcp.Handler {
	t.Helper()
	s := server.New("acme", "1", nil)
	t.Cleanup(func() { s.Close() })
	server.Tool(s, "work", "Works.", func(context.Context, struct{}) (string, error) { return "done", nil })
	return mcp.Chain(s, func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				if err := req.Peer.Notify(ctx, mcp.Notification{Method: "notifications/acme/step", Params: []byte(`{"n":1}`)}); err != nil {
					t.Error(err)
				}
			}
			return next.ServeMCP(ctx, req)
		})
	})
}

// A notification of an extension that an upstream sends with its answer reaches the client whose
// call it is about, if the client knows extensions.
func TestExtensionNotifications(t *testing.T) {
	web := serveHTTP(t, acmeServer(t))
	for _, upstream := range []mcp.Revision{mcp.LatestRevision, mcp.Revision20251125} {
		g, _ := over(t, hub.Definition{Name: "acme", Target: web.URL + "/mcp", Options: client.Options{Wire: client.Wire{Revision: upstream}}})
		for _, tt := range []struct {
			name       string
			extensions []mcp.Extension
			want       string
		}{{"with the extension", []mcp.Extension{{ID: "acme/steps"}}, `[notifications/acme/step{"n":1}]`}, {"without it", nil, "[]"}, {"with tasks alone", []mcp.Extension{{ID: mcpwire.ExtensionTasks}}, "[]"}} {
			c := dial(t, serveHTTP(t, g).URL+"/mcp", client.Options{Extensions: tt.extensions})
			var got []string
			_, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"acme__work","arguments":{}}`), NoProgress: true,
				Notify: func(n mcp.Notification) { got = append(got, n.Method+string(n.Params)) }})
			if err != nil {
				t.Error(err)
			}
			if fmt.Sprint(got) != tt.want {
				t.Errorf("%s, upstream of %s: %s, want %s", tt.name, upstream, got, tt.want)
			}
		}
	}
}
