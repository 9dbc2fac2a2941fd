package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limit{PerSecond: 0.5, Burst: 2})
		ann, bob := mcp.Principal{ID: "ann"}, mcp.Principal{ID: "bob"}
		for range 2 {
			if err := l.takeToken(ann); err != nil {
				t.Error(err)
			}
		}
		for range 3 { // a refused call takes no token
			if err := l.takeToken(ann); err == nil || err.Error() != "rate limit exceeded: try again in 2s" {
				t.Errorf("got %v", err)
			}
		}
		if err := l.takeToken(bob); err != nil {
			t.Error("bob pays for ann")
		}
		time.Sleep(2 * time.Second)
		if err := l.takeToken(ann); err != nil {
			t.Error(err)
		}
	})
	if newLimiter(Limit{}).takeToken(mcp.Principal{}) != nil {
		t.Error("a limit that nobody has set")
	}
}

func TestLimiterForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limit{PerSecond: 1})
		for n := range 10 * minSweep {
			if n%minSweep == 0 {
				time.Sleep(time.Second)
			}
			if err := l.takeToken(mcp.Principal{ID: fmt.Sprint(n)}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(l.byPrincipal); n > 2*minSweep {
			t.Errorf("%d limiters are kept", n)
		}
		if err := l.takeToken(mcp.Principal{ID: fmt.Sprint(10*minSweep - 1)}); err == nil {
			t.Error("one in use was forgotten")
		}
	})
}

// Without a limit of its own, a server stops only a client that calls in a loop.
func TestDefaultLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, unlimited := New("test", "1", nil), New("test", "1", &Options{Limit: Limit{PerSecond: -1}})
		for n := range 10_001 {
			if err := s.callLimiter.takeToken(mcp.Principal{}); (err != nil) != (n == 10_000) {
				t.Fatalf("call %d: %v", n, err)
			}
			if err := unlimited.callLimiter.takeToken(mcp.Principal{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if err := s.callLimiter.takeToken(mcp.Principal{}); err != nil {
			t.Error(err)
		}
	})
}

// TestRoundsAreNoCalls: what a call asks does not count as calls, but for a client that repeats a
// round.
func TestRoundsAreNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", "1", &Options{Limit: Limit{PerSecond: 0.001, Burst: 1}})
		Tool(s, "t", "", func(ctx context.Context, _ struct{}) (string, error) {
			for i := range 12 {
				if _, err := Ask[string](ctx, fmt.Sprint("k", i), "?"); err != nil {
					return "", err
				}
			}
			return "done", nil
		})
		call := func(params string) *mcp.Result {
			res, err := s.ServeMCP(t.Context(), &mcp.Request{
				Method: mcp.MethodCallTool, Params: json.RawMessage(params), Revision: mcp.LatestRevision, ClientCapabilities: json.RawMessage(`{"elicitation":{}}`),
			})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		refused := func(res *mcp.Result) bool {
			r, ok := res.Value.(*mcp.CallToolResult)
			return ok && r.IsError && strings.HasPrefix(r.Content[0].Text, "rate limit exceeded")
		}
		res, params := call(`{"name":"t"}`), ""
		for i := range 12 {
			asked, ok := res.Value.(*mcp.InputRequiredResult)
			if !ok {
				t.Fatalf("round %d: %+v", i, res.Value)
			}
			params = fmt.Sprintf(`{"name":"t","inputResponses":{"k%d":{"action":"accept","content":{"value":"x"}}},"requestState":%q}`, i, *asked.RequestState)
			res = call(params)
		}
		if r, ok := res.Value.(*mcp.CallToolResult); !ok || r.IsError || r.Content[0].Text != "done" {
			t.Errorf("the end: %+v", res.Value)
		}
		if !refused(call(`{"name":"t"}`)) || !refused(call(`{"name":"t","inputResponses":{}}`)) {
			t.Error("a second call was allowed")
		}
		for range roundsPerCall - 12 {
			if refused(call(params)) {
				t.Fatal("a round was refused")
			}
		}
		if !refused(call(params)) {
			t.Error("a round can be repeated without end")
		}
	})
}
