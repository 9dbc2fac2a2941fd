package control

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/hub"
)

// A line on stderr does not change the status, so it does not date the change that follows it.
func TestNotesDateFirstChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &notes{due: make(chan struct{}, 1)}
		n.addEvent(hub.Event{Kind: hub.StderrWritten})
		time.Sleep(statusInterval / 2)
		want := time.Now()
		n.addEvent(hub.Event{Kind: hub.StateChanged})
		time.Sleep(statusInterval / 4)
		n.addEvent(hub.Event{Kind: hub.CatalogChanged})
		<-n.due
		if changed, _, first := n.take(); !changed || !first.Equal(want) {
			t.Errorf("changed is %v, and the first change came %v after the one of the state", changed, first.Sub(want))
		}
	})
}
