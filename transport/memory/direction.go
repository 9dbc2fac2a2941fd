package memory

import (
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/direct"
)

// directionCapacity is the number of frames that wait in one direction before Write blocks.
const directionCapacity = 64

// direction is one direction of a pipe. Frames are written to it and read from it, or delivered to
// its receiver. A frame is never delivered past one that was written before.
type direction struct {
	frames  chan []byte
	waiting atomic.Int64 // frames that were written and have not been handled

	// handling is locked while a frame that was read is handled, from one Read to the next, and
	// read-locked while a frame is delivered. Delivery never waits for it.
	handling   sync.RWMutex
	isHandling bool // the reading goroutine holds handling; used by it only
	isEnded    bool // Read has returned an error; guarded by handling

	receiver atomic.Pointer[direct.Receiver] // nil if frames are only read
	isClosed atomic.Bool                     // either end has called Close
}

func newDirection() *direction { return &direction{frames: make(chan []byte, directionCapacity)} }

// setReceiver waits for nothing: the end may have been read from before.
func (d *direction) setReceiver(r direct.Receiver) { d.receiver.Store(&r) }

// beginHandling marks the beginning of the time in which a frame that was read is handled.
func (d *direction) beginHandling() {
	d.handling.Lock()
	d.isHandling = true
}

// endHandling marks the end of that time. It does nothing if no frame is being handled.
func (d *direction) endHandling() {
	if !d.isHandling {
		return
	}
	d.isHandling = false
	d.waiting.Add(-1)
	d.handling.Unlock()
}

// endDelivery waits for the frames that are being delivered and prevents further deliveries.
func (d *direction) endDelivery() {
	d.handling.Lock()
	defer d.handling.Unlock()
	d.isEnded = true
}

// deliver passes a frame to the receiver; see [direct.Conn].
func (d *direction) deliver(frame []byte, s direct.Sending) (w direct.Work, ok bool) {
	if !d.handling.TryRLock() {
		return nil, false // a frame is being handled
	}
	defer d.handling.RUnlock()
	receiver := d.receiver.Load()
	if receiver == nil || d.isEnded || d.waiting.Load() > 0 {
		return nil, false
	}
	return (*receiver).Receive(frame, s)
}
