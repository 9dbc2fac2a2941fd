package calling_test

import (
	"strings"
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

// A proxy that is slow to start finds both requests of the probe at once. supergateway 4.0.0 then
// connects to its server for server/discover, and refuses initialize because it is connecting. It
// accepts the next initialize.
func TestInitializeIsRepeatedOnce(t *testing.T) {
	const refused = `"error":{"code":-32000,"message":"transport already started"}`
	for _, tt := range []struct{ name, discover, first, second, want string }{
		{"refused before the discovery", "8s " + methodNotFound, "4s " + refused, initialized(r18), ""},
		{"refused after the discovery", "5s " + methodNotFound, "8s " + refused, initialized(r18), ""},
		{"refused twice", "8s " + methodNotFound, "4s " + refused, refused, "answers neither server/discover nor initialize: initialize: transport already started (-32000)"},
		{"unknown", "8s " + methodNotFound, "4s " + methodNotFound, initialized(r18), "answers neither server/discover nor initialize"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := []string{tt.first, tt.second}
				f := newFake(t, func(f *fake, m jsonrpc.Message) {
					switch m.Method {
					case mcp.MethodDiscover:
						act(f, m, tt.discover)
					case mcpwire.MethodInitialize:
						if len(answers) == 0 {
							t.Error("a third initialize")
							return
						}
						next := answers[0]
						answers = answers[1:]
						act(f, m, next)
					}
				})
				c, err := overconn.Connect(t.Context(), f.near, &recorder{}, "e", transport.ClientOptions{Logger: quiet, Verdicts: &transport.Verdicts{}})
				if err == nil {
					defer c.Close()
				}
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("%v, want %q", err, tt.want)
				}
			})
		})
	}
}
