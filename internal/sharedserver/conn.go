package sharedserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

const (
	// maxFrame leaves room for what a gateway adds to a message of the largest size.
	maxFrame      = transport.DefaultMaxMessage + 1<<20
	checkInterval = time.Second     // between two signs of life
	goodbyeLimit  = 3 * time.Second // for the frames that wait when the connection is closed
)

// conn is one end of a connection between two pools. It implements [transport.Conn]. Each part of a
// frame is sent until it is acknowledged, so parts arrive once and in order. Both ends ask each
// second whether the other one is there.
type conn struct {
	pool *Pool
	peer string // the instance at the other end
	id   string

	out, in  *frameQueue
	room     chan struct{}   // holds a token after the peer has said that it has room again
	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc
	failOnce sync.Once
	err      error // of Read; valid after fail
	tell     bool  // tell the peer; valid after fail

	isBegun  bool   // owned by run, like the next three; before that, by the caller of newConn
	rest     []byte // of the frame that is being sent
	partSize int
	sent     uint64 // number of the last part

	mu        sync.Mutex // guards the rest
	got       uint64     // number of the last part
	partial   []byte
	peerWaits bool // until this end has room for the last part of a frame
}

// newConn returns an end of a connection, which receives. The caller must call begin or forget. It
// returns nil if the pool is closed.
func (p *Pool) newConn(peer, id string) *conn {
	c := &conn{pool: p, peer: peer, id: id, partSize: firstPartSize, out: newFrameQueue(), in: newFrameQueue(),
		room: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil
	}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	context.AfterFunc(c.ctx, func() { c.fail(io.EOF, true) })
	p.conns[id] = c
	return c
}

// begin lets the connection send, until it is closed.
func (c *conn) begin() {
	c.isBegun = true
	c.pool.startGoroutine(c.run)
}

// Read implements [transport.Conn].
func (c *conn) Read() ([]byte, error) {
	frame, ok := c.in.take()
	if !ok {
		return nil, c.err
	}
	c.offerRoom()
	return frame, nil
}

// Write implements [transport.Conn]. A message above maxFrame is answered with an error, or dropped
// if it is a notification.
func (c *conn) Write(frame []byte) error {
	if len(frame) > maxFrame {
		return c.refuseFrame(frame)
	}
	if !c.out.put(frame) {
		return mcp.ErrClosed
	}
	return nil
}

// refuseFrame answers a request that is too large, and sends an error in place of an answer.
func (c *conn) refuseFrame(frame []byte) error {
	why := fmt.Sprintf("a message of %d bytes is over the limit of %d between two replicas", len(frame), maxFrame)
	id, err := jsonrpc.ParseID(rawjson.Lookup(frame, "id"))
	switch {
	case err != nil:
		c.pool.opts.Logger.Warn("a message for another replica is dropped", "err", why)
	case rawjson.Lookup(frame, "method") != nil:
		c.in.force(jsonrpc.AppendError(nil, id, mcp.Errorf(jsonrpc.CodeInvalidRequest, "%s", why)))
	default:
		return c.Write(jsonrpc.AppendError(nil, id, mcp.Errorf(jsonrpc.CodeInternal, "the answer was dropped: %s", why)))
	}
	return nil
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
		c.cancel()
		c.out.closeQueue()
		c.in.closeQueue()
	})
}

// run sends frames and signs of life until the connection ends.
func (c *conn) run() {
	defer c.forget()
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	for {
		select {
		case <-c.out.ready:
			c.rest, _ = c.out.tryTake()
			if err := c.sendRest(c.ctx); err != nil && c.ctx.Err() == nil {
				c.fail(err, true)
			}
		case <-check.C:
			if _, err := c.sendMessage(c.ctx, message{Kind: checkConn}, nil); err != nil && c.ctx.Err() == nil {
				c.fail(err, false)
			}
		case <-c.ctx.Done():
			c.fail(io.EOF, true) // waits for a fail in progress
			c.sayGoodbye()
			return
		}
	}
}

// forget removes the connection from the pool.
func (c *conn) forget() {
	c.cancel()
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	delete(c.pool.conns, c.id)
}

// sayGoodbye sends the frames that wait, and the end. Errors do not matter: the peer
// notices the end.
func (c *conn) sayGoodbye() {
	if !c.tell {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeLimit)
	defer cancel()
	if errors.Is(c.err, io.EOF) {
		for isThere := true; isThere; c.rest, isThere = c.out.tryTake() {
			if c.sendRest(ctx) != nil {
				return
			}
		}
	}
	_, _ = c.pool.opts.Network.Send(ctx, c.peer, message{Kind: closeConn, Conn: c.id}.encode([]byte(c.err.Error())))
}

// receive takes a message of the peer.
func (c *conn) receive(m message, data []byte) (answer []byte, err error) {
	switch m.Kind {
	case closeConn:
		if reason := string(data); reason == io.EOF.Error() {
			c.fail(errEnded{c.peer}, false)
		} else {
			c.fail(fmt.Errorf("%s has ended the connection: %s", describeInstance(c.peer), reason), false)
		}
	case framePart:
		return c.takePart(m, data)
	case connHasRoom:
		select {
		case c.room <- struct{}{}:
		default:
		}
	}
	return nil, nil
}

// errEnded is the error of a connection that the peer has ended in an orderly way.
type errEnded struct{ peer string }

func (e errEnded) Error() string { return describeInstance(e.peer) + " runs the server no more" }

// errGone is the error of a connection to a process that the network does not find any more.
type errGone struct{ peer string }

func (e errGone) Error() string { return describeInstance(e.peer) + " has ended" }

// IsReleased reports whether an error means that the owner has stopped a server in an orderly way.
func IsReleased(err error) bool {
	_, ok := errors.AsType[errEnded](err)
	return ok
}
