package taskengine

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/tasks"
)

// A record that was read before a change does not take the place of the changed one, also if that
// one was dropped meanwhile.
func TestRecentRecordsKeepNoOldVersion(t *testing.T) {
	c := newRecentRecords()
	read, changed := newRecord("AAAA", "ann"), newRecord("AAAA", "ann")
	read.Version, changed.Version, changed.Status = 1, 2, tasks.Completed
	drops := c.dropCount() // a load begins
	c.put(changed)
	c.putLoaded(read, drops)
	if r := c.get("AAAA"); r != nil && r.Version != 2 {
		t.Errorf("%+v", r)
	}
	c.remove("AAAA") // to make room
	c.putLoaded(read, drops)
	if r := c.get("AAAA"); r != nil {
		t.Errorf("%+v", r)
	}
	c.putLoaded(changed, c.dropCount())
	if c.get("AAAA") != changed {
		t.Error("a record that was read is not kept")
	}
}
