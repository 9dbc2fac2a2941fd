package calling

import (
	"context"
	"github.com/dowel-mcp/dowel/transport"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// smallFrame is what a pipe takes at once, if it takes anything.
const smallFrame = 16 << 10

// send writes a frame, and waits for that no longer than ctx lasts: a server that does not read holds up nobody. A frame that
// is given up is written all the same, if it ever can be.
func (c *caller) send(ctx context.Context, frame []byte) error {
	if c.writes.Add(1) == 1 && len(frame) <= smallFrame {
		defer c.writes.Add(-1)
		return c.conn.Write(frame)
	}
	done, err := c.sendAside(frame)
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

// pendingError is the error of a frame that could not be written while its context lasted. It still may be.
type pendingError struct{ written <-chan error }

func (*pendingError) Error() string { return "the peer has not read it" }

// sendLater writes a frame that nobody waits for, least of all the reading loop: two sides that both wait for room would
// wait for ever. Where too many frames wait, it is left out.
func (c *caller) sendLater(frame []byte) {
	if w, ok := c.conn.(transport.TryWriter); ok && w.TryWrite(frame) {
		return
	}
	if c.writes.Add(1) > transport.DefaultMaxConcurrent {
		c.writes.Add(-1)
		return
	}
	_, _ = c.sendAside(frame) // a lost connection is the reading loop's to see
}

// sendSoon writes a frame that is of use only if it goes out before what comes next, a Close perhaps. It waits a moment for
// that. It goes behind another frame that is still being written, if that is not nil.
func (c *caller) sendSoon(frame []byte, behind *pendingError) {
	const moment = 100 * time.Millisecond
	c.writes.Add(1)
	done, err := c.sendBehind(frame, behind)
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

// sendAside writes a frame in a goroutine of its own, which Close waits for.
func (c *caller) sendAside(frame []byte) (<-chan error, error) { return c.sendBehind(frame, nil) }

// sendBehind is sendAside once another frame, if it is not nil, has been written. Where that fails, so does this.
func (c *caller) sendBehind(frame []byte, behind *pendingError) (<-chan error, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.writes.Add(-1)
		return nil, mcp.ErrClosed
	}
	c.wg.Add(1)
	done := make(chan error, 1)
	go func() {
		defer c.wg.Done()
		defer c.writes.Add(-1)
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
