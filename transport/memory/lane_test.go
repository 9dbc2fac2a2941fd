package memory

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/direct"
)

// countingReceiver counts the frames that it takes.
type countingReceiver struct {
	lane  *lane
	taken int
	t     *testing.T
}

func (r *countingReceiver) Receive([]byte, direct.Sending) (direct.Work, bool) {
	if r.lane.handling.TryLock() {
		r.t.Error("the reading loop could end during a delivery")
	}
	r.taken++
	return nil, true
}

// A frame is delivered while no other is handled or waits, and until the reading loop has ended.
func TestWhenFramesAreDelivered(t *testing.T) {
	l := newLane()
	r := &countingReceiver{lane: l, t: t}
	deliver := func() bool {
		_, ok := l.deliver([]byte("x"), direct.Sending{})
		return ok
	}
	if deliver() {
		t.Error("delivered without a receiver")
	}
	l.setReceiver(r)
	if !deliver() {
		t.Error("not delivered")
	}
	l.waiting.Add(1)
	if deliver() {
		t.Error("delivered past a frame that waits")
	}
	l.beginHandling()
	if deliver() {
		t.Error("delivered while a frame is handled")
	}
	l.endHandling()
	if !deliver() {
		t.Error("not delivered after a frame was handled")
	}
	l.endDelivery()
	if deliver() || r.taken != 2 {
		t.Errorf("delivered after the end; %d frames", r.taken)
	}
}
