package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// TestConcurrentUse does everything at once; the race detector watches.
func TestConcurrentUse(t *testing.T) {
	s := newServer(server.Options{PageSize: 3, Limit: server.Limit{PerSecond: 1e9, Burst: 1e6}})
	server.Tool(s, "busy", "", func(ctx context.Context, _ anyArgs) (string, error) {
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				server.Progress(ctx, float64(n), 0, "")
				server.Log(ctx).Info("x", "n", n)
				_, _ = server.Once(ctx, fmt.Sprint("once", n), func(context.Context) (int, error) { return n, nil })
				_, _ = server.Ask[bool](ctx, fmt.Sprint("ask", n), "?")
			})
		}
		wg.Wait()
		return "done", nil
	})
	server.Resource(s, "x://first", "", func(context.Context, struct{}) (string, error) { return "", nil })
	answers := map[string]string{}
	for n := range 4 {
		answers[fmt.Sprint("ask", n)] = accept(`{"value":true}`)
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for n := range 25 {
				name := fmt.Sprintf("t%d.%d", worker, n)
				add(t, s, name)
				if got := pageCache(t, s, "", mcp.MethodListTools); !strings.Contains(got, name) {
					t.Errorf("%s is not in %s", name, got)
				}
				if got, a := ask(t, s, "busy", answers); got != textResult("done") || len(a.rounds) != 1 {
					t.Errorf("%s after %v", got, a.rounds)
				}
				s.Updated("x://first/a")
				s.Remove(server.KindTool, name)
			}
		})
		sub := listen(t, s, "", all, &peer{})
		defer sub.cancel(nil)
	}
	wg.Wait()
	want(t, pageCache(t, s, "", mcp.MethodListTools), "busy")
}
