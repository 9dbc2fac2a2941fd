package memory

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/direct"
)

// countingReceiver counts the frames that it takes.
type countingReceiver struct {
	direction *direction
	taken     int
	t         *testing.T
}

func (r *countingReceiver) Receive([]byte, direct.Sending) (direct.Work, bool) {
	if r.direction.handling.TryLock() {
		r.t.Error("the reading loop could end during a delivery")
	}
	r.taken++
	return nil, true
}

// A frame is delivered while no other is handled or waits, and until the reading loop has ended.
func TestWhenFramesAreDelivered(t *testing.T) {
	d := newDirection()
	r := &countingReceiver{direction: d, t: t}
	deliver := func() bool {
		_, ok := d.deliver([]byte("x"), direct.Sending{})
		return ok
	}
	if deliver() {
		t.Error("delivered without a receiver")
	}
	d.setReceiver(r)
	if !deliver() {
		t.Error("not delivered")
	}
	d.waiting.Add(1)
	if deliver() {
		t.Error("delivered past a frame that waits")
	}
	d.beginHandling()
	if deliver() {
		t.Error("delivered while a frame is handled")
	}
	d.endHandling()
	if !deliver() {
		t.Error("not delivered after a frame was handled")
	}
	d.endDelivery()
	if deliver() || r.taken != 2 {
		t.Errorf("delivered after the end; %d frames", r.taken)
	}
}
