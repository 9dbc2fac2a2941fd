package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	ws "github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// closeTimeout bounds how long Close waits for the peer to confirm the end.
const closeTimeout = time.Second

// writeTimeout bounds how long the peer may take to read a fragment of a message. It is a variable
// for tests.
var writeTimeout = 30 * time.Second

// conn is one end of a WebSocket connection, a [transport.Conn].
type conn struct {
	socket      *ws.Conn
	peer        string // "client" or "server", for messages
	limit       int    // largest message to receive, in bytes
	closeStatus func() ws.CloseError

	life       context.Context // of all reads and writes
	cutOff     context.CancelFunc
	end        atomic.Pointer[error] // why this side has ended the connection; nil before
	closeOnce  sync.Once
	unread     *quota.Lease // counts the bytes of a message that has not arrived completely; nil counts none
	writing    sync.Mutex   // held while a message is written
	stallTimer *time.Timer  // fails the connection; runs while a message is written
	keepAlive  keepAlive
}

// newConn returns a connection. closeStatus returns the status to close it with; nil means a normal
// end.
func newConn(socket *ws.Conn, peer string, maxMessage int, closeStatus func() ws.CloseError) *conn {
	if maxMessage <= 0 {
		maxMessage = transport.DefaultMaxMessage
	}
	if closeStatus == nil {
		closeStatus = func() ws.CloseError { return ws.CloseError{Code: ws.StatusNormalClosure} }
	}
	socket.SetReadLimit(-1) // readMessage has a limit that does not end the connection
	c := &conn{socket: socket, peer: peer, limit: maxMessage, closeStatus: closeStatus}
	c.life, c.cutOff = context.WithCancel(context.Background())
	c.stallTimer = time.AfterFunc(time.Hour, func() { c.fail("the %s has read nothing for %v", c.peer, writeTimeout) })
	c.stallTimer.Stop()
	return c
}

// fail ends the connection at once, for a reason that Read and Write return.
func (c *conn) fail(format string, args ...any) {
	c.setEnd(fmt.Errorf("%w: "+format, append([]any{mcp.ErrConnection}, args...)...))
	c.cutOff()
}

// setEnd sets the reason why this side ends the connection. The first reason stays.
func (c *conn) setEnd(err error) { c.end.CompareAndSwap(nil, &err) }

// Read implements [transport.Conn].
func (c *conn) Read() ([]byte, error) {
	kind, message, err := c.socket.Reader(c.life)
	if err != nil {
		return nil, c.endError(err)
	}
	c.keepAlive.noteSign()
	if kind != ws.MessageText {
		return nil, c.refuseBinary()
	}
	frame, err := c.readMessage(message)
	c.unread.Release()
	if err != nil && !errors.Is(err, transport.ErrFrame) {
		return nil, c.endError(err)
	}
	return frame, err
}

// refuseBinary closes the connection because the peer has sent a binary message.
func (c *conn) refuseBinary() error {
	const reason = "MCP messages are text, not binary"
	c.setEnd(fmt.Errorf("%w: the %s sent a binary message; MCP messages are text", mcp.ErrConnection, c.peer))
	c.closeSocket(ws.CloseError{Code: ws.StatusUnsupportedData, Reason: reason})
	return *c.end.Load()
}

// readMessage reads a message. It skips the rest of a message over the limit and returns a
// [transport.FrameError] for it. It reads in small pieces, because each piece shows that the peer
// is alive.
func (c *conn) readMessage(r io.Reader) ([]byte, error) {
	const first, piece = 512, 64 << 10
	buf := make([]byte, 0, first)
	for {
		n, err := r.Read(buf[len(buf):min(cap(buf), len(buf)+piece)])
		c.keepAlive.noteSign()
		buf = buf[:len(buf)+n]
		if len(buf) > piece && err == nil {
			if limit := c.unread.Extend(int64(cap(buf))); limit != nil {
				c.fail("%w", limit)
				return nil, limit
			}
		}
		switch {
		case len(buf) > c.limit:
			return nil, c.skipMessage(r, buf, err)
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, min(len(buf), c.limit+1-len(buf)))
		}
	}
}

// skipMessage reads the rest of a message over the limit and returns the error for it. head is the
// beginning of the message, err the error of the last read.
func (c *conn) skipMessage(r io.Reader, head []byte, err error) error {
	const ends, piece = 256, 32 << 10 // ends is the number of bytes that are searched for an id
	size, tail := int64(len(head)), bytes.Clone(head[max(0, len(head)-ends):])
	head = bytes.Clone(head[:min(ends, len(head))])
	part := make([]byte, piece)
	for err == nil {
		var n int
		n, err = r.Read(part)
		c.keepAlive.noteSign()
		size += int64(n)
		tail = append(tail, part[max(0, n-ends):n]...)
		tail = tail[max(0, len(tail)-ends):]
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return frames.TooLarge(size, c.limit, head, tail)
}

// Write implements [transport.Conn]. It waits for room in the connection, and ends the connection
// if the peer reads nothing for writeTimeout.
func (c *conn) Write(frame []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	err := c.writeMessage(frame)
	if err != nil {
		defer c.cutOff() // the rest of the message cannot follow
		return c.endError(err)
	}
	return nil
}

// writeMessage writes a message. A large one is written in fragments, so that a slow peer is
// recognized by its progress and pings are not held up.
func (c *conn) writeMessage(frame []byte) error {
	const fragment = 32 << 10
	c.stallTimer.Reset(writeTimeout)
	defer c.stallTimer.Stop()
	if len(frame) <= fragment {
		return c.socket.Write(c.life, ws.MessageText, frame)
	}
	w, err := c.socket.Writer(c.life, ws.MessageText)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(frame, fragment) {
		if _, err := w.Write(part); err != nil {
			return err
		}
		c.stallTimer.Reset(writeTimeout)
	}
	return w.Close()
}

// endError returns the reason for the end of the connection. err is the error of a read or write.
func (c *conn) endError(err error) error {
	if end := c.end.Load(); end != nil {
		return *end
	}
	var closed ws.CloseError
	switch {
	case errors.As(err, &closed):
		if c.peer == peerClient && (closed.Code == ws.StatusNormalClosure || closed.Code == ws.StatusGoingAway || closed.Code == ws.StatusNoStatusRcvd) {
			return io.EOF
		}
		return fmt.Errorf("%w: the %s closed the connection with %s", mcp.ErrConnection, c.peer, describeStatus(closed))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the connection to the %s was cut off", mcp.ErrConnection, c.peer)
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}

// The values of conn.peer.
const (
	peerClient = "client"
	peerServer = "server"
)

func describeStatus(closed ws.CloseError) string {
	text := fmt.Sprintf("status %d", closed.Code)
	if closed.Code == ws.StatusNoStatusRcvd {
		text = "no status"
	}
	if closed.Reason != "" {
		text += fmt.Sprintf(": %.125q", closed.Reason)
	}
	return text
}

// Close implements [transport.Conn]. It tells the peer the reason and waits up to closeTimeout for
// the confirmation.
func (c *conn) Close() error {
	c.closeOnce.Do(func() {
		c.setEnd(mcp.ErrClosed)
		c.closeSocket(c.closeStatus())
		c.keepAlive.stopPings()
	})
	return nil
}

// closeSocket closes the WebSocket. If that was done before, it has no effect.
func (c *conn) closeSocket(status ws.CloseError) {
	defer time.AfterFunc(closeTimeout, c.cutOff).Stop()
	_ = c.socket.Close(status.Code, status.Reason) // the peer may have gone
	c.cutOff()
}
