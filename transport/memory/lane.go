package memory

import (
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/direct"
)

// laneCapacity is the number of frames that wait in one direction before Write blocks.
const laneCapacity = 64

// lane is one direction of a pipe. Frames are written to it and read from it, or delivered to its
// receiver. A frame is never delivered past one that was written before.
type lane struct {
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

func newLane() *lane { return &lane{frames: make(chan []byte, laneCapacity)} }

// setReceiver waits for nothing: the end may have been read from before.
func (l *lane) setReceiver(r direct.Receiver) { l.receiver.Store(&r) }

// beginHandling marks the beginning of the time in which a frame that was read is handled.
func (l *lane) beginHandling() {
	l.handling.Lock()
	l.isHandling = true
}

// endHandling marks the end of that time. It does nothing if no frame is being handled.
func (l *lane) endHandling() {
	if !l.isHandling {
		return
	}
	l.isHandling = false
	l.waiting.Add(-1)
	l.handling.Unlock()
}

// endDelivery waits for the frames that are being delivered and prevents further deliveries.
func (l *lane) endDelivery() {
	l.handling.Lock()
	defer l.handling.Unlock()
	l.isEnded = true
}

// deliver passes a frame to the receiver; see [direct.Conn].
func (l *lane) deliver(frame []byte, s direct.Sending) (w direct.Work, ok bool) {
	if !l.handling.TryRLock() {
		return nil, false // a frame is being handled
	}
	defer l.handling.RUnlock()
	receiver := l.receiver.Load()
	if receiver == nil || l.isEnded || l.waiting.Load() > 0 {
		return nil, false
	}
	return (*receiver).Receive(frame, s)
}
