//go:build unix

package cli

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// The limits of clients hold on the control socket, where a process is one client whatever its
// connections: a subscription over the limit is refused with the limit's name, and calls continue.
// The refusals are logged once.
func TestLimitsOnControlSocket(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(p.userFile(), `{"mcpServers": {"one": `+p.builtInEntry("everything", "")+`}, "gateway": {"limits": {"clientStreams": 2}}}`)
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"one": hub.Ready})
	socket := control.NewClient(filepath.Join(p.home, "dowel", "dowel.sock"))
	opened := 0
	for range 5 {
		c, err := client.Dial(t.Context(), streamable.URL{URL: socket.Gateway(), Client: socket.HTTP()}, &client.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}); err == nil {
			opened++
		} else if !strings.Contains(err.Error(), "clientStreams") {
			t.Errorf("the error does not name the limit: %v", err)
		}
		if got, err := client.Call[string](t.Context(), c, "one__echo", map[string]string{"message": "hi"}); err != nil || got != "hi" {
			t.Errorf("a call: %q, %v", got, err)
		}
	}
	if opened != 2 {
		t.Errorf("%d subscriptions, want 2", opened)
	}
	if n := strings.Count(p.output(), "a client is at a limit"); n != 1 {
		t.Errorf("logged %d times: %s", n, p.output())
	}
}
