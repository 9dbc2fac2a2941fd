package memory

import (
	"io"
	"sync"

	"github.com/dowel-mcp/dowel/internal/direct"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Pipe returns the two ends of a connection. Closing either end closes both. Frames that were
// written before can still be read.
func Pipe() (a, b transport.Conn) {
	there, back := newDirection(), newDirection()
	p := &pipe{done: make(chan struct{}), directions: [2]*direction{there, back}}
	return &pipeEnd{p, there, back}, &pipeEnd{p, back, there}
}

// pipe is the shared state of both ends. Close closes done, which wakes writers, and never the
// frame channels, because writers may be active. It wakes a waiting Read with a nil frame, so that
// Read waits on one channel instead of two, which takes half the time.
type pipe struct {
	once       sync.Once
	done       chan struct{}
	directions [2]*direction
}

// pipeEnd implements [transport.Conn] and [direct.Conn].
type pipeEnd struct {
	*pipe
	in, out *direction
}

// Read implements [transport.Conn]. The frame that it returned last counts as handled when it is
// called again.
func (e *pipeEnd) Read() ([]byte, error) {
	e.in.endHandling()
	frame := e.nextFrame()
	if frame == nil {
		e.in.endDelivery()
		return nil, io.EOF
	}
	e.in.beginHandling()
	return frame, nil
}

// nextFrame returns the next frame, or nil at the end of the connection.
func (e *pipeEnd) nextFrame() []byte {
	select {
	case frame := <-e.in.frames:
		return frame
	default:
	}
	if e.in.isClosed.Load() {
		return nil
	}
	return <-e.in.frames
}

func (e *pipeEnd) Write(frame []byte) error {
	if e.TryWrite(frame) {
		return nil
	}
	if e.out.isClosed.Load() {
		return mcp.ErrClosed
	}
	e.out.waiting.Add(1)
	select {
	case e.out.frames <- nonNilFrame(frame):
		return nil
	case <-e.done:
		e.out.waiting.Add(-1)
		return mcp.ErrClosed
	}
}

// TryWrite implements [transport.TryWriter].
func (e *pipeEnd) TryWrite(frame []byte) bool {
	if e.out.isClosed.Load() {
		return false
	}
	e.out.waiting.Add(1)
	select {
	case e.out.frames <- nonNilFrame(frame):
		return true
	default:
		e.out.waiting.Add(-1)
		return false
	}
}

// nonNilFrame replaces a nil frame, which would mean the end of the connection.
func nonNilFrame(frame []byte) []byte {
	if frame == nil {
		return []byte{}
	}
	return frame
}

// SetReceiver implements [direct.Conn].
func (e *pipeEnd) SetReceiver(r direct.Receiver) { e.in.setReceiver(r) }

// Deliver implements [direct.Conn].
func (e *pipeEnd) Deliver(frame []byte, s direct.Sending) bool {
	if e.out.isClosed.Load() {
		return false
	}
	work, ok := e.out.deliver(frame, s)
	if work != nil {
		work.Run()
	}
	return ok
}

func (e *pipeEnd) Close() error {
	e.once.Do(func() {
		for _, d := range e.directions {
			d.isClosed.Store(true)
		}
		close(e.done)
		for _, d := range e.directions {
			select {
			case d.frames <- nil:
			default: // full: Read is not waiting
			}
		}
	})
	return nil
}
