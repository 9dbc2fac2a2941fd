package sharedserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

const (
	waitingFrames = 256         // of one direction
	firstPartSize = 512 << 10   // of a frame; halved if the network takes less
	leastPartSize = 1 << 10     //
	checkInterval = time.Second // between two signs of life
	fullPause     = 10 * time.Millisecond
)

// conn is one end of a connection between two pools. It implements [transport.Conn]. Each part of a frame is
// sent until it is acknowledged, so parts arrive once and in order. Both ends ask each second whether the
// other one is there.
type conn struct {
	pool *Pool
	peer string // the instance at the other end
	id   string

	out, in  chan []byte
	done     chan struct{} // closed by fail
	failOnce sync.Once
	err      error // of Read; valid when done is closed
	tell     bool  // tell the peer; valid when done is closed

	partSize int    // owned by run
	sent     uint64 // number of the last part; owned by run

	mu      sync.Mutex
	got     uint64 // number of the last part
	partial []byte
}

// newConn returns an end of a connection, which receives. The caller must call begin or forget. It returns nil if
// the pool is closed.
func (p *Pool) newConn(peer, id string) *conn {
	c := &conn{pool: p, peer: peer, id: id, partSize: firstPartSize,
		out: make(chan []byte, waitingFrames), in: make(chan []byte, waitingFrames), done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil
	}
	p.conns[id] = c
	return c
}

// begin lets the connection send, until it is closed.
func (c *conn) begin() { c.pool.start(c.run) }

// Read implements [transport.Conn].
func (c *conn) Read() ([]byte, error) {
	select {
	case frame := <-c.in:
		return frame, nil
	default:
	}
	select {
	case frame := <-c.in:
		return frame, nil
	case <-c.done:
		return nil, c.err
	}
}

// Write implements [transport.Conn].
func (c *conn) Write(frame []byte) error {
	select {
	case <-c.done:
		return mcp.ErrClosed
	default:
	}
	select {
	case c.out <- frame:
		return nil
	case <-c.done:
		return mcp.ErrClosed
	}
}

// Close implements [transport.Conn].
func (c *conn) Close() error {
	c.fail(io.EOF, true)
	return nil
}

// fail ends the connection. tell says that the peer does not know it.
func (c *conn) fail(err error, tell bool) {
	c.failOnce.Do(func() {
		c.err, c.tell = err, tell
		close(c.done)
	})
}

// run sends frames and signs of life until the connection ends.
func (c *conn) run() {
	defer c.forget()
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	for {
		select {
		case frame := <-c.out:
			if err := c.sendFrame(frame); err != nil {
				c.fail(err, true)
			}
		case <-check.C:
			if _, err := c.send(message{Kind: checkConn}, nil); err != nil {
				c.fail(err, false)
			}
		case <-c.pool.ctx.Done():
			c.fail(io.EOF, true)
		case <-c.done:
			c.sayGoodbye()
			return
		}
	}
}

// forget removes the connection from the pool.
func (c *conn) forget() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	delete(c.pool.conns, c.id)
}

// sayGoodbye sends the frames that wait, and the end. Errors do not matter: the peer notices the end.
func (c *conn) sayGoodbye() {
	for c.tell && errors.Is(c.err, io.EOF) {
		select {
		case frame := <-c.out:
			if c.sendFrame(frame) != nil {
				return
			}
			continue
		default:
		}
		break
	}
	if c.tell {
		ctx, cancel := context.WithTimeout(context.Background(), checkInterval)
		defer cancel()
		_, _ = c.pool.opts.Network.Send(ctx, c.peer, message{Kind: closeConn, Conn: c.id}.encode([]byte(c.err.Error())))
	}
}

// sendFrame sends a frame in parts.
func (c *conn) sendFrame(frame []byte) error {
	for {
		size := min(len(frame), c.partSize)
		answer, err := c.send(message{Kind: framePart, Number: c.sent + 1, More: size < len(frame)}, frame[:size])
		switch {
		case errors.Is(err, replica.ErrTooLarge) && c.partSize > leastPartSize:
			c.partSize /= 2
			continue
		case err != nil:
			return err
		case bytes.Equal(answer, answerFull):
			if timeout.Sleep(c.pool.ctx, fullPause) != nil {
				return io.EOF
			}
			continue
		}
		c.sent++
		if frame = frame[size:]; len(frame) == 0 {
			return nil
		}
	}
}

// send sends a message until it is acknowledged. A peer that is slow has as long as a lease lives.
func (c *conn) send(m message, data []byte) (answer []byte, err error) {
	m.Conn = c.id
	text := m.encode(data)
	for end := time.Now().Add(replica.LeaseLife); ; {
		began := time.Now()
		answer, err = c.pool.opts.Network.Send(context.Background(), c.peer, text)
		switch {
		case err == nil, errors.Is(err, replica.ErrTooLarge):
			return answer, err
		case errors.Is(err, replica.ErrGone):
			return nil, fmt.Errorf("%s has ended", describe(c.peer))
		case !errors.Is(err, replica.ErrUnreachable):
			return nil, fmt.Errorf("%s: %w", describe(c.peer), err)
		case time.Since(began) < checkInterval/2: // this process is cut off
			return nil, err
		case time.Now().After(end):
			return nil, fmt.Errorf("%s does not answer", describe(c.peer))
		}
	}
}

// receive takes a message of the peer.
func (c *conn) receive(m message, data []byte) (answer []byte, err error) {
	switch m.Kind {
	case closeConn:
		reason := string(data)
		if reason == io.EOF.Error() {
			c.fail(errEnded{c.peer}, false)
		} else {
			c.fail(errors.New(reason), false)
		}
	case framePart:
		return c.takePart(m, data)
	}
	return nil, nil
}

// takePart adds a part to the frame that is being received.
func (c *conn) takePart(m message, data []byte) (answer []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Number <= c.got: // its acknowledgement was lost
		return nil, nil
	case m.Number > c.got+1, len(c.partial)+len(data) > transport.DefaultMaxMessage:
		err = fmt.Errorf("part %d of a message with %d bytes cannot follow part %d with %d", m.Number, len(data), c.got, len(c.partial))
		c.fail(err, false)
		return nil, err
	case m.More:
		c.partial, c.got = append(c.partial, data...), m.Number
		return nil, nil
	}
	select {
	case c.in <- append(c.partial, data...):
		c.partial, c.got = nil, m.Number
		return nil, nil
	default:
		return answerFull, nil
	}
}

// errEnded is the error of a connection that the peer has ended in an orderly way.
type errEnded struct{ peer string }

func (e errEnded) Error() string { return describe(e.peer) + " runs the server no more" }

// IsReleased reports whether an error means that the owner has stopped a server in an orderly way.
func IsReleased(err error) bool {
	_, ok := errors.AsType[errEnded](err)
	return ok
}
