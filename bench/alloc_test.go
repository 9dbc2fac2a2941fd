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

var update = flag.Bool("update", false, "record what is counted in "+recorded)

const recorded = "allocations.json"

// allocations is what an operation may take at most, client and server together.
type allocations struct {
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
}

// TestAllocations holds dowel's rows to what was recorded. Allocations do not depend on the machine, but on the race detector.
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

// counted is the least of a few attempts, without garbage collections, which take from the pools; of more attempts where that is
// above what is allowed, since on a busy machine few operations share what their beginning takes.
func counted(t *testing.T, item work.Item, allowed allocations) allocations {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	least := allocations{math.Inf(1), math.Inf(1)}
	for attempt := 1; attempt <= 3 || attempt <= 10 && (least.Allocs > allowed.Allocs || least.Bytes > allowed.Bytes); attempt++ {
		got, err := item.Measure(t.Context(), item.Ours(), work.Options{Time: time.Duration(attempt) * 40 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		least.Allocs, least.Bytes = min(least.Allocs, got[work.Allocs]), min(least.Bytes, got[work.Bytes])
	}
	return least
}

// rounded leaves room for the pools: half an allocation or a hundredth of them, and a twentieth of the bytes.
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
