package interop

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/interop/peers/contract"
	"github.com/dowel-mcp/dowel/mcp"
)

// recoveryLimit bounds each call of a client during a restart of its server.
const recoveryLimit = 120 * time.Second

// patientRestart makes a client reconnect for about as long as recoveryLimit. The default of five
// attempts may be too few on a busy machine, where a server starts slowly, and two deaths within a
// minute share them.
var patientRestart = client.Restart{Max: 30, Cap: 2 * time.Second}

// restarted are the servers that the tests kill and start again, each with the path of its endpoint
// and a tool.
var restarted = map[string]struct{ path, tool string }{
	"gosdk-server /mcp":       {"/mcp", contract.SimpleText},
	"gosdk-server /stateless": {"/stateless", contract.SimpleText},
	"gosdk-server /sse":       {"/sse", contract.SimpleText},
	"mcpgo-server /mcp":       {"/mcp", contract.SimpleText},
	"mcpgo-server /stateless": {"/stateless", contract.SimpleText},
	"mcpgo-server /sse":       {"/sse", contract.SimpleText},
	"server-v2 /mcp":          {"/mcp", contract.SimpleText},
	"everything /mcp":         {"/mcp", "get-tiny-image"},
	"everything /sse":         {"/sse", "get-tiny-image"},
	"dowel /mcp":              {"/mcp", contract.SimpleText},
	"dowel /sse":              {"/sse", contract.SimpleText},
}

func restartedService(t *testing.T, title string) *service {
	t.Helper()
	switch name, path, _ := strings.Cut(title, " "); {
	case name == "everything" && path == "/sse":
		return startService(t, everythingService(t, "sse"))
	case name == "everything":
		return startService(t, everythingService(t, "streamableHttp"))
	case name == "server-v2":
		return startService(t, typeScriptService(t))
	case name == "dowel":
		return startService(t, dowelService(t))
	default:
		return startService(t, goService(t, name))
	}
}

// A server is killed and started again at its port. For the client's user that is a pause: the next
// list and the next call work.
func TestRecovery(t *testing.T) {
	for title, test := range restarted {
		for _, revision := range []mcp.Revision{"", "2025-11-25"} {
			t.Run(strings.TrimSpace(title+" "+string(revision)), func(t *testing.T) {
				t.Parallel()
				s := restartedService(t, title)
				c := dial(t, s.urlOf(test.path), client.Options{Wire: client.Wire{Revision: revision}, Restart: patientRestart})
				lists(t, c, test.tool)
				for range 2 {
					s.stop()
					s.start()
					lists(t, c, test.tool)
					ctx, cancel := context.WithTimeout(context.Background(), recoveryLimit)
					if _, err := c.CallTool(ctx, mcp.CallToolParams{Name: test.tool}); err != nil {
						t.Errorf("the call after: %v", err)
					}
					cancel()
				}
			})
		}
	}
}

// A list request during the absence of the server waits until it is back.
func TestRecoveryWhileAway(t *testing.T) {
	for title, test := range restarted {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := restartedService(t, title)
			c := dial(t, s.urlOf(test.path), client.Options{Restart: patientRestart})
			lists(t, c, test.tool)
			s.stop()
			listed := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), recoveryLimit)
				defer cancel()
				_, err := client.All(c.Tools(ctx, client.CallOptions{NoCache: true}))
				listed <- err
			}()
			time.Sleep(500 * time.Millisecond) // time for a refused attempt; the test also passes without one
			s.start()
			if err := <-listed; err != nil {
				t.Error(err)
			}
		})
	}
}

// A watch continues after a restart of its server, and reports a gap.
func TestWatchRecovers(t *testing.T) {
	for title, revision := range map[string]mcp.Revision{
		"gosdk-server /mcp": "", "gosdk-server /stateless": "", "gosdk-server /sse": "",
		"mcpgo-server /mcp": "2025-11-25", // over HTTP the SDK sends no updates in the modern era
		"mcpgo-server /sse": "", "server-v2 /mcp": "", "dowel /mcp": "", "dowel /sse": "",
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := restartedService(t, title)
			c := dial(t, s.urlOf(restarted[title].path), client.Options{Wire: client.Wire{Revision: revision}, Restart: patientRestart})
			ctx, cancel := context.WithTimeout(context.Background(), 2*recoveryLimit)
			defer cancel()
			w, err := c.Watch(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{contract.WatchedURI}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			var down atomic.Bool
			gaps, before, after := 0, 0, 0
			for change, err := range w.Changes() {
				switch {
				case err != nil:
					t.Fatal(err)
				case change.Gap:
					gaps++
				case gaps > 0 && change.URI == contract.WatchedURI:
					after++
				case change.URI == contract.WatchedURI:
					before++
				}
				if before > 0 && down.CompareAndSwap(false, true) {
					s.stop()
					s.start()
				}
				if after > 0 {
					break
				}
			}
			if gaps == 0 || after == 0 {
				t.Errorf("got %d gaps and %d updates after, want both", gaps, after)
			}
		})
	}
}

func dial(t *testing.T, url string, options client.Options) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), recoveryLimit)
	defer cancel()
	c, err := client.Dial(ctx, url, &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Logf("closing: %v", err)
		}
	})
	return c
}

func lists(t *testing.T, c *client.Client, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), recoveryLimit)
	defer cancel()
	tools, err := client.All(c.Tools(ctx, client.CallOptions{NoCache: true}))
	if err != nil {
		t.Fatalf("listing the tools: %v", err)
	}
	if !slices.ContainsFunc(tools, func(tool mcp.Tool) bool { return tool.Name == want }) {
		t.Errorf("%s is not among the %d tools", want, len(tools))
	}
}
