package calling

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// smallFrame is the size up to which a pipe accepts a frame without waiting, in bytes, unless it
// is full.
const smallFrame = 16 << 10

// writeFrame writes a frame but waits no longer than ctx lasts, because the server might have
// stopped reading. If ctx ends first, the frame is still written when the server reads again.
func (c *caller) writeFrame(ctx context.Context, frame []byte) error {
	if c.activeWrites.Add(1) == 1 && len(frame) <= smallFrame {
		defer c.activeWrites.Add(-1)
		return c.conn.Write(frame)
	}
	done, err := c.writeInBackground(frame, nil)
	if err != nil {
		return err
	}
	var ended <-chan struct{}
	if ctx != nil {
		ended = ctx.Done()
	}
	select {
	case err := <-done:
		return err
	case <-ended:
		return &pendingError{done}
	}
}

// pendingError is the error of a frame that was not written before its context ended. The frame
// may still be written.
type pendingError struct{ written <-chan error }

func (*pendingError) Error() string { return "the peer has not read it" }

// writeUnawaited writes a frame without waiting. The reading loop must not wait: if both sides
// waited for room, neither would ever read. If too many frames are waiting, the frame is dropped.
func (c *caller) writeUnawaited(frame []byte) {
	if w, ok := c.conn.(transport.TryWriter); ok && w.TryWrite(frame) {
		return
	}
	if c.activeWrites.Add(1) > frames.DefaultMaxConcurrent {
		c.activeWrites.Add(-1)
		return
	}
	_, _ = c.writeInBackground(frame, nil) // the reading loop sees a lost connection
}

// writePromptly writes a cancellation and waits for 100 ms at most, so that it usually goes out
// before the caller closes the connection. If behind is not nil, the frame follows that frame.
func (c *caller) writePromptly(frame []byte, behind *pendingError) {
	const moment = 100 * time.Millisecond
	c.activeWrites.Add(1)
	done, err := c.writeInBackground(frame, behind)
	if err != nil {
		return
	}
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// writeInBackground writes a frame on a goroutine of its own, which Close waits for, and returns a
// channel for the outcome. If behind is not nil, the frame is written after that frame, and fails
// if that fails.
func (c *caller) writeInBackground(frame []byte, behind *pendingError) (<-chan error, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.activeWrites.Add(-1)
		return nil, mcp.ErrClosed
	}
	c.wg.Add(1)
	done := make(chan error, 1)
	go func() {
		defer c.wg.Done()
		defer c.activeWrites.Add(-1)
		if behind != nil {
			if err := <-behind.written; err != nil {
				done <- err
				return
			}
		}
		done <- c.conn.Write(frame)
	}()
	return done, nil
}
