package server

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/tasks"
)

// Clients hear of no state of a task that is older than the last one.
func TestAnnouncedStatesAreInOrder(t *testing.T) {
	var looks taskLooks
	heard := []uint64{}
	for _, r := range []tasks.Record{{ID: "a", Version: 1}, {ID: "a", Version: 3}, {ID: "a", Version: 2}, {ID: "b", Version: 2}, {ID: "a", Version: 3}} {
		looks.announce(&r, func() { heard = append(heard, r.Version) })
	}
	if len(heard) != 4 || heard[1] != 3 || heard[2] != 2 || heard[3] != 3 {
		t.Errorf("clients have heard of the versions %v", heard)
	}
}
