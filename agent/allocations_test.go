//go:build !race

package agent_test

import "testing"

// maxAdded limits the allocations of the loop for each step, beyond the same call made directly.
// It is twice the measured number.
const maxAdded = 60

// The race detector would count its own allocations.
func TestAllocationsLoop(t *testing.T) {
	loop, direct := loops(t)
	added := (testing.AllocsPerRun(20, loop) - testing.AllocsPerRun(20, direct)) / steps
	t.Logf("the loop adds %.1f allocations to a step", added)
	if added > maxAdded {
		t.Errorf("the loop adds %.1f allocations to a step, at most %d are allowed", added, maxAdded)
	}
}
