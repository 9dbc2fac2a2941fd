//go:build !race

package main

import (
	"encoding/json"
	"flag"
	"maps"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/bench/work"
)

var update = flag.Bool("update", false, "record the counts in "+recorded)

const recorded = "allocations.json"

// allocations bounds the allocations of one operation, of client and server together.
type allocations struct {
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
}

// TestAllocations compares the allocations of dowel's rows with the recorded ones. They do not
// depend on the machine, but they do on the race detector.
func TestAllocations(t *testing.T) {
	data, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	var most map[string]allocations
	if err := json.Unmarshal(data, &most); err != nil {
		t.Fatal(err)
	}
	items := map[string]work.Item{}
	for _, item := range work.All() {
		items[item.Name] = item
	}
	for _, name := range slices.Sorted(maps.Keys(most)) {
		t.Run(name, func(t *testing.T) {
			item, ok := items[name]
			if !ok {
				t.Fatalf("%s records %s, which is not measured", recorded, name)
			}
			got := counted(t, item, most[name])
			if limit := most[name]; !*update && (got.Allocs > limit.Allocs || got.Bytes > limit.Bytes) {
				t.Errorf("%.2f allocations and %.0f bytes, at most %.0f and %.0f are allowed", got.Allocs, got.Bytes, limit.Allocs, limit.Bytes)
			}
			most[name] = got.rounded()
		})
	}
	if *update {
		record(t, most)
	}
}

// counted measures an item several times, without garbage collections, which would empty the pools,
// and returns the smallest counts. It tries more often, each time twice as long, while they exceed
// the bound: on a busy machine a short attempt has few operations, which share the allocations of
// its start.
func counted(t *testing.T, item work.Item, allowed allocations) allocations {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	least := allocations{math.Inf(1), math.Inf(1)}
	for attempt := 1; attempt <= 3 || attempt <= 10 && (least.Allocs > allowed.Allocs || least.Bytes > allowed.Bytes); attempt++ {
		got, err := item.Measure(t.Context(), item.Ours(), work.Options{Time: min(20*time.Millisecond<<attempt, 2*time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		least.Allocs, least.Bytes = min(least.Allocs, got[work.Allocs]), min(least.Bytes, got[work.Bytes])
	}
	return least
}

// rounded returns bounds with room for variation in the pools: half an allocation or one percent,
// and five percent of the bytes.
func (a allocations) rounded() allocations {
	return allocations{math.Ceil(a.Allocs + max(0.5, a.Allocs/100)), math.Ceil(a.Bytes*1.05/64) * 64}
}

func record(t *testing.T, most map[string]allocations) {
	data, err := json.MarshalIndent(most, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recorded, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
