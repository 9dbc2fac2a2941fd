//go:build !race

package bench

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// TestAllocationsCluster checks that a call without shared state takes no more allocations at a
// replica than at a gateway of its own.
func TestAllocationsCluster(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	shared, err := cluster.Open(t.Context(), cluster.Options{URL: natstest.Start(t, nil).ClientURL(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shared.Close)
	callThrough := func(o gateway.Options) func() {
		o.Logger = quiet
		h := hub.New(&hub.Options{Logger: quiet})
		h.Apply([]hub.Definition{{Name: "s", Target: everything.New(server.Options{Logger: quiet})}}, "the test begins")
		g := gateway.New(h, &o)
		t.Cleanup(func() { g.Close(); h.Close() })
		if !h.Settle(t.Context()) {
			t.Fatal("the server is not ready")
		}
		c := overHTTP(t, g, mcp.LatestRevision)
		return func() {
			if got, err := client.Call[string](context.Background(), c, "s__echo", echo{"hello"}); err != nil || got != "hello" {
				t.Fatal(got, err)
			}
		}
	}
	const n = 1000
	alone, replica := callThrough(gateway.Options{}), callThrough(gateway.Options{Keys: shared.Keys(), Tasks: shared.Tasks()})
	var added []float64
	for range 5 { // the cluster renews its lease now and then
		serially(replica)(n / 2)
		serially(alone)(n / 2)
		more, _ := perCall(func() { serially(replica)(n) }, n)
		least, _ := perCall(func() { serially(alone)(n) }, n)
		added = append(added, more-least)
	}
	t.Logf("a replica adds %.2f allocations to a call", slices.Min(added))
	if extra := slices.Min(added); extra > 0.5 {
		t.Errorf("a replica adds %.2f allocations to a call, none is allowed", extra)
	}
}
