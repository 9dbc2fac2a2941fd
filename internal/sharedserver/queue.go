package sharedserver

import "sync"

// queueBytes bounds the frames that wait in one direction. frameCost is counted for each frame on
// top of its bytes.
const (
	queueBytes = 4 << 20
	frameCost  = 256
)

// frameQueue holds frames of one direction. They may take queueBytes; if no other frame waits, a
// frame may have any size.
type frameQueue struct {
	ready chan struct{} // holds a token while frames wait

	mu      sync.Mutex
	changed *sync.Cond // of the fields below
	frames  [][]byte
	bytes   int
	closed  bool
}

func newFrameQueue() *frameQueue {
	q := &frameQueue{ready: make(chan struct{}, 1)}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// put adds a frame, and waits for room. It reports false if the queue is closed.
func (q *frameQueue) put(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && !q.hasRoom(len(frame)) {
		q.changed.Wait()
	}
	if q.closed {
		return false
	}
	q.addFrame(frame)
	return true
}

// offer is put without waiting. It reports false if there is no room.
func (q *frameQueue) offer(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.hasRoom(len(frame)) {
		return false
	}
	q.addFrame(frame)
	return true
}

// force adds a small frame also if there is no room.
func (q *frameQueue) force(frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addFrame(frame)
}

// hasRoom reports whether a frame of that size fits. q.mu is held.
func (q *frameQueue) hasRoom(size int) bool {
	return q.bytes == 0 || q.bytes+size+frameCost <= queueBytes
}

// addFrame adds a frame. q.mu is held.
func (q *frameQueue) addFrame(frame []byte) {
	q.frames = append(q.frames, frame)
	q.bytes += len(frame) + frameCost
	q.changed.Broadcast()
	q.noteReady()
}

// noteReady puts a token into ready if frames wait. q.mu is held.
func (q *frameQueue) noteReady() {
	if len(q.frames) == 0 {
		return
	}
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take removes a frame, and waits for one. It reports false if the queue is closed and empty.
func (q *frameQueue) take() (frame []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && len(q.frames) == 0 {
		q.changed.Wait()
	}
	return q.removeFirst()
}

// tryTake is take without waiting. It reports false if no frame waits.
func (q *frameQueue) tryTake() (frame []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.removeFirst()
}

// removeFirst removes the first frame. q.mu is held.
func (q *frameQueue) removeFirst() (frame []byte, ok bool) {
	if len(q.frames) == 0 {
		return nil, false
	}
	frame, q.frames[0] = q.frames[0], nil
	if q.frames = q.frames[1:]; len(q.frames) == 0 {
		q.frames = nil
	}
	q.bytes -= len(frame) + frameCost
	q.changed.Broadcast()
	q.noteReady()
	return frame, true
}

// isHalfEmpty reports whether the frames take half of the room at most.
func (q *frameQueue) isHalfEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes <= queueBytes/2
}

// closeQueue ends put, and take once the queue is empty.
func (q *frameQueue) closeQueue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
