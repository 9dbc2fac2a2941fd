// Package memory connects a client to a server in the same process. Every message is encoded and
// decoded as on any other transport, which makes it the transport for tests:
//
//	c, err := client.Dial(ctx, memory.Dialer(handler))
//
// [Pipe] returns the two ends of a connection, for tests of other transports.
package memory

import (
	"context"
	"io"
	"sync"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// pipeCapacity is the number of frames that wait in one direction before Write blocks.
const pipeCapacity = 64

// Pipe returns the two ends of a connection. Closing either end closes both. Frames that were
// written before can still be read.
func Pipe() (a, b transport.Conn) {
	there, back := make(chan []byte, pipeCapacity), make(chan []byte, pipeCapacity)
	p := &pipe{done: make(chan struct{}), ends: [2]chan []byte{there, back}}
	return &pipeEnd{p, there, back}, &pipeEnd{p, back, there}
}

// pipe is the shared state of both ends. Close closes done and never the frame channels, because
// writers may be active. It wakes a waiting Read with a nil frame, so that Read waits on one
// channel instead of two, which takes half the time.
type pipe struct {
	once sync.Once
	done chan struct{}
	ends [2]chan []byte
}

type pipeEnd struct {
	*pipe
	in  <-chan []byte
	out chan<- []byte
}

func (e *pipeEnd) Read() ([]byte, error) {
	select {
	case frame := <-e.in:
		return frameOrEOF(frame)
	default:
	}
	if e.isClosed() {
		return nil, io.EOF
	}
	return frameOrEOF(<-e.in)
}

func frameOrEOF(frame []byte) ([]byte, error) {
	if frame == nil {
		return nil, io.EOF
	}
	return frame, nil
}

// nonNilFrame replaces a nil frame, which would mean the end of the connection.
func nonNilFrame(frame []byte) []byte {
	if frame == nil {
		return []byte{}
	}
	return frame
}

func (e *pipeEnd) isClosed() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

func (e *pipeEnd) Write(frame []byte) error {
	if e.TryWrite(frame) {
		return nil
	}
	if e.isClosed() {
		return mcp.ErrClosed
	}
	select {
	case e.out <- nonNilFrame(frame):
		return nil
	case <-e.done:
		return mcp.ErrClosed
	}
}

// TryWrite implements [transport.TryWriter].
func (e *pipeEnd) TryWrite(frame []byte) bool {
	if e.isClosed() {
		return false
	}
	select {
	case e.out <- nonNilFrame(frame):
		return true
	default:
		return false
	}
}

func (e *pipeEnd) Close() error {
	e.once.Do(func() {
		close(e.done)
		for _, data := range e.ends {
			select {
			case data <- nil:
			default: // full: Read is not waiting
			}
		}
	})
	return nil
}

// Dialer returns a dialer for h. Each dial serves h on a new connection. If several opts are
// given, they are merged: of the structs that set a field, the last one wins. Closing the transport
// waits until the server has ended.
func Dialer(h mcp.Handler, opts ...transport.ServerOptions) transport.Dialer {
	return &handlerDialer{handler: h, opts: options.Merge(opts)}
}

type handlerDialer struct {
	handler mcp.Handler
	opts    transport.ServerOptions
}

func (d *handlerDialer) Endpoint() string { return "" }

func (d *handlerDialer) String() string { return "a server in this process" }

func (d *handlerDialer) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	near, far := Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = overconn.Serve(context.WithoutCancel(ctx), far, d.handler, d.opts) // the client reports how the connection ended
	}()
	t, err := overconn.Connect(ctx, near, in, d.Endpoint(), opts)
	if err != nil {
		<-served
		return nil, err
	}
	return &servedTransport{t.(frames.ConnTransport), served}, nil
}

// servedTransport is a transport that waits for its server when it is closed.
type servedTransport struct {
	frames.ConnTransport
	served <-chan struct{}
}

func (c *servedTransport) Close() error {
	err := c.ConnTransport.Close()
	<-c.served
	return err
}
