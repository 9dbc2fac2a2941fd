package calling_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// The answer to the probe may come when the handshake is over: then the next connection is modern.
func TestALateDiscoveryIsRemembered(t *testing.T) {
	for _, tt := range []struct {
		name, discover string
		close          time.Duration // 0: after the answer
		want           mcp.Revision
	}{
		{name: "modern", discover: "9s " + discovered, want: r26},
		{name: "legacy", discover: "9s " + methodNotFound, want: r18},
		{name: "the end of the connection", discover: "9s eof", want: r18},
		{name: "closed before", discover: "9s " + discovered, close: time.Second, want: r18},
		{name: "never", want: r18},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, func(f *fake, m jsonrpc.Message) {
					switch m.Method {
					case mcp.MethodDiscover:
						act(f, m, tt.discover)
					case mcpwire.MethodInitialize:
						act(f, m, "1s "+initialized(r18))
					case mcp.MethodCallTool:
						f.send(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"it could not be read"}}`)
					}
				})
				v := &transport.Verdicts{}
				c, err := overconn.Connect(t.Context(), f.near, &recorder{}, "e", transport.ClientOptions{Logger: quiet, Verdicts: v, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if got := v.Lookup("e"); got != r18 {
					t.Errorf("remembered at first: %q", got)
				}
				if tt.close > 0 {
					c.Close()
				} else if _, err := c.RoundTrip(t.Context(), callTool("x")); err == nil || err.Error() != "it could not be read (-32600)" {
					t.Errorf("an error without id is the call's, and not the probe's: %v", err)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if got := v.Lookup("e"); got != tt.want {
					t.Errorf("remembered: %q", got)
				}
			})
		})
	}
}
