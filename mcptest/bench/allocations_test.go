//go:build !race

package bench

import (
	"testing"

	"github.com/dowel-mcp/dowel/client"
)

// TestAllocations compares the allocations of a call, client and server together, with the figures
// measured at the last improvement. It does not run with the race detector, which allocates too.
func TestAllocations(t *testing.T) {
	for name, tt := range map[string]struct {
		call          func()
		allocs, bytes float64
	}{
		"small call, memory":  {func() { callEcho(t, dowelFor(t, "memory"), "hello") }, 12, 2150},
		"struct call, memory": {func() { callStruct(t, dowelFor(t, "memory")) }, 14, 2300},
		"small call, pipes":   {func() { callEcho(t, dowelFor(t, "pipes"), "hello") }, 14, 2700},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 2000
			for range n {
				tt.call() // pools and stacks fill
			}
			allocs, bytes := perCall(func() {
				for range n {
					tt.call()
				}
			}, n)
			const emptied = 0.5 // allowance for pools that a garbage collection empties
			if allocs > tt.allocs+emptied || bytes > tt.bytes {
				t.Errorf("%.2f allocations and %.0f bytes a call, at most %.0f and %.0f are allowed", allocs, bytes, tt.allocs, tt.bytes)
			}
		})
	}
}

var dialed = map[string]*client.Client{}

// dowelFor dials each medium once in a test.
func dowelFor(t *testing.T, medium string) *client.Client {
	if dialed[medium] == nil {
		dialed[medium] = dowelOver(t, medium)
		t.Cleanup(func() { delete(dialed, medium) }) // the test may run again
	}
	return dialed[medium]
}
