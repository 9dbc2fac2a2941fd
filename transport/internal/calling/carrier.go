package calling

import (
	"context"
	"errors"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Carrier sends messages separately, each on a way of its own, as HTTP does.
type Carrier interface {
	// Carry sends a message. For a request it gives back every frame that comes on its way, one after the other, until that
	// is done; for other messages, where back is nil, it returns when they were accepted. When ctx ends, it returns at once:
	// the way is given up. The error is a streamable.HTTPError where the server answered with no message; it wraps
	// [mcp.ErrConnection] where the server could not be reached.
	Carry(ctx context.Context, m *Outbound, back Receiver) error
	// Close ends what goes on, and returns when it has ended.
	Close() error
}

// Receiver takes the frames that come back for a request.
type Receiver interface {
	// Began is told what the frames are read from. It is closed when the response has come on another way.
	Began(from io.Closer)
	// Receive takes a frame, and reports whether the response was among those that it has taken.
	Receive(frame []byte) (done bool)
}

// Outbound is a message on its way to a server.
type Outbound struct {
	Frame []byte
	// Method and Params are those of a request or a notification; Method is empty for a response.
	Method string
	Params []byte
	// Revision is what is spoken; empty while that is not known.
	Revision mcp.Revision
	// Request says that a response is waited for.
	Request bool
}

// Separate is the calling side of a server whose messages are carried separately. Its zero value is of no use.
type Separate struct{ *caller }

// NewSeparate returns the calling side; Connect makes it ready. It owns the carrier from then on.
func NewSeparate(carrier Carrier, in mcp.Inbound, opts transport.ClientOptions) Separate {
	opts.Tap = nil // the carrier shows what passes, with its header fields
	post := &posting{carrier: carrier, closed: make(chan struct{})}
	c := newCaller(post, in, opts)
	post.caller, c.carrier = c, carrier
	go c.read()
	return Separate{c}
}

// Connect finds out which era the server speaks; see the function [Connect].
func (s Separate) Connect(ctx context.Context, endpoint string) error {
	return s.connect(ctx, endpoint)
}

// Receive takes a frame that came on no request's way.
func (s Separate) Receive(frame []byte) { s.frame(frame) }

// Down says that what was agreed with the server is lost: every request fails with the error. When it returns, the Inbound
// knows.
func (s Separate) Down(err error) {
	s.conn.(*posting).end(err)
	<-s.done
}

// Interrupted says that changes may have been lost which a legacy server tells of by itself: who listens to them is told.
func (s Separate) Interrupted() {
	if l, ok := s.dialect().(*legacyCaller); ok {
		l.interrupted()
	}
}

// Speaks returns what is spoken; empty while that is not known.
func (s Separate) Speaks() mcp.Revision { return s.spoken() }

func (c *caller) spoken() mcp.Revision {
	if speak := c.dialect(); speak != nil {
		return speak.revision()
	}
	return ""
}

// posting makes a Conn of a carrier, for messages that nothing comes back for.
type posting struct {
	carrier Carrier
	caller  *caller
	once    sync.Once
	closed  chan struct{}
	err     error // why; set before closed is
}

func (p *posting) Read() ([]byte, error) {
	<-p.closed
	return nil, p.err
}

func (p *posting) Write(frame []byte) error {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(p.caller.base, patience)
	defer cancel()
	return p.caller.post(ctx, frame)
}

// post sends a message that nothing comes back for.
func (c *caller) post(ctx context.Context, frame []byte) error {
	m := &Outbound{Frame: frame, Revision: c.spoken()}
	if msg, err := c.parser.Parse(frame); err == nil {
		m.Method, m.Params = msg.Method, msg.Params
	}
	return c.carrier.Carry(ctx, m, nil)
}

func (p *posting) end(err error) {
	p.once.Do(func() { p.err = err; close(p.closed) })
}

func (p *posting) Close() error {
	err := p.carrier.Close()
	p.end(mcp.ErrClosed)
	return err
}

// carry sends a request on a way of its own and waits for its response. Notifications are delivered as they come: those that
// come on that way by the goroutine that waits.
func (c *caller) carry(ctx context.Context, req *mcp.Request, speak dialect) (*mcp.Response, error) {
	x, err := c.register(ctx, req)
	if err != nil {
		return nil, err
	}
	defer c.drop(x)
	w := way{caller: c, id: x.id, x: x, ctx: ctx}
	listened := w.listenElsewhere(speak)
	err = c.carrier.Carry(ctx, c.outbound(req, speak, x), &w)
	listened()
	select {
	case w.reply = <-x.done: // it came on another way, or the caller is down
		w.answered = true
	default:
	}
	switch {
	case w.answered:
		return c.finish(x, speak, w.reply)
	case ctx.Err() != nil && speak.revision().Modern():
		c.take(x.id)
		return nil, context.Cause(ctx) // the server has seen the way end
	case ctx.Err() != nil:
		return c.giveUp(ctx, x)
	case err == nil:
		err = errUnanswered
	}
	c.take(x.id)
	return nil, err
}

var errUnanswered = errors.New("the server ended its answer without a response")

// carryAside is carry for a request of the handshake: the reply goes to x.done.
func (c *caller) carryAside(ctx context.Context, req *mcp.Request, speak dialectParams, x *exchange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return mcp.ErrClosed
	}
	c.wg.Add(1)
	m, w := c.outbound(req, speak, x), way{caller: c, id: x.id, ctx: ctx} // x is used again once it has its reply
	go func() {
		defer c.wg.Done()
		err := c.carrier.Carry(c.base, m, &w)
		if err == nil {
			err = errUnanswered
		}
		c.fail(w.id, err)
	}()
	return nil
}

func (c *caller) outbound(req *mcp.Request, speak dialectParams, x *exchange) *Outbound {
	m := &Outbound{
		Frame: c.request(req, speak, x), Method: req.Method, Params: req.Params, Request: true,
	}
	if d, ok := speak.(dialect); ok {
		m.Revision = d.revision()
	}
	return m
}

// way is what one request is carried on, and its response comes back on.
type way struct {
	caller   *caller
	id       jsonrpc.ID
	x        *exchange // nil where whoever waits does so elsewhere
	ctx      context.Context
	answered bool
	reply    reply

	delivering sync.Mutex // one notification after the other
}

// listenElsewhere delivers notifications of the request that come on another way, such as the standing stream of a legacy
// session, until the function that it returns is called.
func (w *way) listenElsewhere(speak dialect) (stop func()) {
	if w.x.notify == nil || speak.revision().Modern() {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-w.x.queue.wake:
				w.deliver(nil)
			case <-over:
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}

// deliver hands over what came on other ways, and then n, if it is not nil.
func (w *way) deliver(n *mcp.Notification) {
	w.delivering.Lock()
	defer w.delivering.Unlock()
	w.x.queue.deliver(w.x.notify)
	if n != nil {
		w.x.notify(*n)
	}
}

// Receive implements [Receiver].
func (w *way) Receive(frame []byte) (done bool) {
	c := w.caller
	if jsonrpc.IsBatch(frame) {
		c.batch(frame)
		return w.done()
	}
	msg, err := c.parser.Parse(frame)
	if err != nil {
		c.malformed(frame, msg.ID, err)
		return w.done()
	}
	switch {
	case msg.IsResponse():
		w.response(msg)
	case msg.IsNotification():
		w.notification(msg)
	default:
		c.questionIn(w.ctx, msg)
	}
	return w.done()
}

// Began implements [Receiver].
func (w *way) Began(from io.Closer) {
	c := w.caller
	c.mu.Lock()
	answered := c.inFlight(w.id) == nil
	if !answered && w.x != nil {
		w.x.from = from
	}
	c.mu.Unlock()
	if answered {
		from.Close()
	}
}

// done reports whether the request has its response, on this way or another.
func (w *way) done() bool {
	if w.answered {
		return true
	}
	w.caller.mu.Lock()
	defer w.caller.mu.Unlock()
	return w.caller.inFlight(w.id) == nil
}

// response takes a response. An error without id answers what could not be read: this request.
func (w *way) response(msg jsonrpc.Message) {
	if id := frames.UnquoteID(msg.ID); w.x == nil || !id.IsZero() && id != w.id {
		if id.IsZero() {
			msg.ID = w.id
		}
		w.caller.response(msg)
		return
	}
	if w.caller.take(w.id) != nil {
		w.answered, w.reply = true, reply{result: msg.Result, refused: msg.Error}
	}
}

// notification delivers what belongs to the request: all that comes on its way in the modern era, and in the legacy one what
// is said to.
func (w *way) notification(msg jsonrpc.Message) {
	own := msg.Method == mcp.NotificationProgress || msg.Method == mcp.NotificationMessage
	if modern := w.caller.spoken().Modern(); w.x == nil || !own && !(modern && w.x.method == mcp.MethodListen) {
		w.caller.notification(msg)
		return
	}
	n := mcp.Notification{Method: msg.Method, Params: msg.Params}
	if w.x.notify == nil {
		w.caller.in.Notify(n)
		return
	}
	w.deliver(&n)
}
