// Package memory connects a client and a server in one process: every message is encoded and decoded as on any other
// transport, and passes through a channel.
package memory

import (
	"context"
	"io"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// room is how many frames wait in one direction before Write waits.
const room = 64

// Pipe returns the two ends of a connection. Closing one ends both; frames that were written before can still be read.
func Pipe() (a, b transport.Conn) {
	there, back := make(chan []byte, room), make(chan []byte, room)
	p := &pipe{done: make(chan struct{}), ends: [2]chan []byte{there, back}}
	return &end{p, there, back}, &end{p, back, there}
}

// pipe is closed by its done channel, never by those of the data: writers may be at work. A reader that waits is roused by a
// nil frame, so that it waits on one channel only, which costs half of what two do.
type pipe struct {
	once sync.Once
	done chan struct{}
	ends [2]chan []byte
}

type end struct {
	*pipe
	in  <-chan []byte
	out chan<- []byte
}

func (e *end) Read() ([]byte, error) {
	select {
	case frame := <-e.in:
		return read(frame)
	default:
	}
	if e.ended() {
		return nil, io.EOF
	}
	return read(<-e.in)
}

func read(frame []byte) ([]byte, error) {
	if frame == nil {
		return nil, io.EOF
	}
	return frame, nil
}

// solid keeps an empty frame from being taken for the end.
func solid(frame []byte) []byte {
	if frame == nil {
		return []byte{}
	}
	return frame
}

func (e *end) ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

func (e *end) Write(frame []byte) error {
	if e.TryWrite(frame) {
		return nil
	}
	if e.ended() {
		return mcp.ErrClosed
	}
	select {
	case e.out <- solid(frame):
		return nil
	case <-e.done:
		return mcp.ErrClosed
	}
}

// TryWrite implements [transport.TryWriter].
func (e *end) TryWrite(frame []byte) bool {
	if e.ended() {
		return false
	}
	select {
	case e.out <- solid(frame):
		return true
	default:
		return false
	}
}

func (e *end) Close() error {
	e.once.Do(func() {
		close(e.done)
		for _, data := range e.ends {
			select {
			case data <- nil:
			default: // full: nobody waits for more
			}
		}
	})
	return nil
}

// Dialer returns a dialer of h: each dial serves it on a connection of its own.
func Dialer(h mcp.Handler, opts ...transport.ServerOptions) transport.Dialer {
	d := &dialer{handler: h}
	if len(opts) > 0 {
		d.opts = opts[0]
	}
	return d
}

type dialer struct {
	handler mcp.Handler
	opts    transport.ServerOptions
}

func (d *dialer) Endpoint() string { return "" }

func (d *dialer) String() string { return "a server in this process" }

func (d *dialer) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	near, far := Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = overconn.Serve(context.WithoutCancel(ctx), far, d.handler, d.opts) // how it ends is the near end's to tell
	}()
	t, err := overconn.Connect(ctx, near, in, d.Endpoint(), opts)
	if err != nil {
		<-served
		return nil, err
	}
	return &connection{t, served}, nil
}

// connection waits for its server too.
type connection struct {
	mcp.Transport
	served <-chan struct{}
}

func (c *connection) Close() error {
	err := c.Transport.Close()
	<-c.served
	return err
}

// UnaddressedFrames implements [frames.Unaddressed].
func (c *connection) UnaddressedFrames() int64 { return frames.Unaddressed(c.Transport) }

func (c *connection) Notify(ctx context.Context, n mcp.Notification) error {
	return c.Transport.(mcp.Notifier).Notify(ctx, n)
}
