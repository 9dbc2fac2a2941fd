//go:build !race

package agent_test

import "testing"

// maxAdded is what the loop may allocate in a step beyond the same call made directly: twice what was measured.
const maxAdded = 60

// TestAllocationsLoop holds what the loop adds to a call. The race detector would count its own.
func TestAllocationsLoop(t *testing.T) {
	loop, direct := loops(t)
	added := (testing.AllocsPerRun(20, loop) - testing.AllocsPerRun(20, direct)) / steps
	t.Logf("the loop adds %.1f allocations to a step", added)
	if added > maxAdded {
		t.Errorf("the loop adds %.1f allocations to a step, at most %d are allowed", added, maxAdded)
	}
}
