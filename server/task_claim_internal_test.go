package server

import (
	"errors"
	"testing"

	"github.com/dowel-mcp/dowel/internal/tasks"
)

// A change of a record without an acknowledgement stays known until a run is added, also if a later
// request of the same task succeeds or finds no task.
func TestOverlappingClaims(t *testing.T) {
	var runs taskRuns
	runs.init(nil)
	failed, other, unknown := runs.claim("a"), runs.claim("a"), runs.claim("a")
	failed(errors.New("the acknowledgement is missing"))
	other(nil)
	unknown(tasks.ErrUnknown)
	if !runs.hasLostRun("a") {
		t.Error("the outcome of another request hides the missing acknowledgement")
	}
	release := runs.claim("a")
	if err := runs.addRun(&taskRun{id: "a"}); err != nil {
		t.Fatal(err)
	}
	release(nil)
	delete(runs.running, "a")
	if runs.hasLostRun("a") || len(runs.claims) != 0 {
		t.Errorf("after a run was added: %+v", runs.claims)
	}
}
