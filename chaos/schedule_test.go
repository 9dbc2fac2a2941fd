//go:build linux

package chaos

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
)

// Each schedule of the short form kills a NATS server, and kills a process before the cluster is
// left alone.
func TestSchedule(t *testing.T) {
	for seed := range uint64(1000) {
		faults := schedule(rand.New(rand.NewPCG(seed, 0)), strings.Split(*kinds, ","), 3, 30*time.Second)
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.kind == history.KillStore }) {
			t.Fatalf("seed %d: no NATS server is killed", seed)
		}
		if len(faults) < calmEvery || faults[calmEvery-1].kind != history.Kill {
			t.Fatalf("seed %d: no process is killed before the cluster is left alone: %d faults", seed, len(faults))
		}
	}
}
