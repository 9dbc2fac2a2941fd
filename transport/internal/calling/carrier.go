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
	// the way is given up. The error is an HTTPError of package overhttp where the server answered with no message; it wraps
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

// Caller is the calling side of a server whose messages are carried separately. Its zero value is of no use.
type Caller struct{ *caller }

// NewCaller returns the calling side; Connect makes it ready. It owns the carrier from then on.
func NewCaller(carrier Carrier, in mcp.Inbound, opts transport.ClientOptions) Caller {
	opts.Tap = nil // the carrier shows what passes, with its header fields
	post := &carrierConn{carrier: carrier, closed: make(chan struct{})}
	c := newCaller(post, in, opts)
	post.caller, c.carrier = c, carrier
	go c.readFrames()
	return Caller{c}
}

// Connect finds out which era the server speaks; see the function [Connect].
func (s Caller) Connect(ctx context.Context, endpoint string) error {
	return s.connectTo(ctx, endpoint)
}

// Receive takes a frame that came on no request's way.
func (s Caller) Receive(frame []byte) { s.handleFrame(frame) }

// Down says that what was agreed with the server is lost: every request fails with the error. When it returns, the Inbound
// knows.
func (s Caller) Down(err error) {
	s.conn.(*carrierConn).closeWith(err)
	<-s.done
}

// Interrupted says that changes may have been lost which a legacy server tells of by itself: who listens to them is told.
func (s Caller) Interrupted() {
	if l, ok := s.currentEra().(*legacyEra); ok {
		l.interruptListeners()
	}
}

// Speaks returns what is spoken; empty while that is not known.
func (s Caller) Speaks() mcp.Revision { return s.currentRevision() }

func (c *caller) currentRevision() mcp.Revision {
	if e := c.currentEra(); e != nil {
		return e.revision()
	}
	return ""
}

// carrierConn makes a Conn of a carrier, for messages that nothing comes back for.
type carrierConn struct {
	carrier Carrier
	caller  *caller
	once    sync.Once
	closed  chan struct{}
	err     error // why; set before closed is
}

func (p *carrierConn) Read() ([]byte, error) {
	<-p.closed
	return nil, p.err
}

func (p *carrierConn) Write(frame []byte) error {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(p.caller.base, patience)
	defer cancel()
	return p.caller.postMessage(ctx, frame)
}

// postMessage sends a message that nothing comes back for.
func (c *caller) postMessage(ctx context.Context, frame []byte) error {
	m := &Outbound{Frame: frame, Revision: c.currentRevision()}
	if msg, err := c.parser.Parse(frame); err == nil {
		m.Method, m.Params = msg.Method, msg.Params
	}
	return c.carrier.Carry(ctx, m, nil)
}

func (p *carrierConn) closeWith(err error) {
	p.once.Do(func() { p.err = err; close(p.closed) })
}

func (p *carrierConn) Close() error {
	err := p.carrier.Close()
	p.closeWith(mcp.ErrClosed)
	return err
}

// carryRequest sends a request on a way of its own and waits for its response. Notifications are delivered as they come: those that
// come on that way by the goroutine that waits.
func (c *caller) carryRequest(ctx context.Context, req *mcp.Request, e era) (*mcp.Response, error) {
	x, err := c.registerExchange(ctx, req)
	if err != nil {
		return nil, err
	}
	defer c.releaseExchange(x)
	w := carriedRequest{caller: c, id: x.id, exchange: x, ctx: ctx}
	listened := w.deliverQueued(e)
	err = c.carrier.Carry(ctx, c.newOutbound(req, e, x), &w)
	listened()
	select {
	case w.reply = <-x.done: // it came on another way, or the caller is down
		w.hasReply = true
	default:
	}
	switch {
	case w.hasReply:
		return c.finishExchange(x, e, w.reply)
	case ctx.Err() != nil && e.revision().Modern():
		c.takeExchange(x.id)
		return nil, context.Cause(ctx) // the server has seen the way end
	case ctx.Err() != nil:
		return c.cancelExchange(ctx, x, nil)
	case err == nil:
		err = errUnanswered
	}
	c.takeExchange(x.id)
	return nil, err
}

var errUnanswered = errors.New("the server ended its answer without a response")

// carryInBackground is carry for a request of the handshake: the reply goes to x.done.
func (c *caller) carryInBackground(ctx context.Context, req *mcp.Request, e paramsEncoder, x *exchange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return mcp.ErrClosed
	}
	c.wg.Add(1)
	m, w := c.newOutbound(req, e, x), carriedRequest{caller: c, id: x.id, ctx: ctx} // x is used again once it has its reply
	go func() {
		defer c.wg.Done()
		err := c.carrier.Carry(c.base, m, &w)
		if err == nil {
			err = errUnanswered
		}
		c.failExchange(w.id, err)
	}()
	return nil
}

func (c *caller) newOutbound(req *mcp.Request, e paramsEncoder, x *exchange) *Outbound {
	m := &Outbound{
		Frame: c.encodeRequest(req, e, x), Method: req.Method, Params: req.Params, Request: true,
	}
	if d, ok := e.(era); ok {
		m.Revision = d.revision()
	}
	return m
}

// carriedRequest is what one request is carried on, and its response comes back on.
type carriedRequest struct {
	caller   *caller
	id       jsonrpc.ID
	exchange *exchange // nil where whoever waits does so elsewhere
	ctx      context.Context
	hasReply bool
	reply    reply

	delivering sync.Mutex // one notification after the other
}

// deliverQueued delivers notifications of the request that come on another way, such as the standing stream of a legacy
// session, until the function that it returns is called.
func (w *carriedRequest) deliverQueued(e era) (stop func()) {
	if w.exchange.notify == nil || e.revision().Modern() {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-w.exchange.queue.wake:
				w.deliverNotification(nil)
			case <-over:
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}

// deliverNotification hands over what came on other ways, and then n, if it is not nil.
func (w *carriedRequest) deliverNotification(n *mcp.Notification) {
	w.delivering.Lock()
	defer w.delivering.Unlock()
	w.exchange.queue.deliverAll(w.exchange.notify)
	if n != nil {
		w.exchange.notify(*n)
	}
}

// Receive implements [Receiver].
func (w *carriedRequest) Receive(frame []byte) (done bool) {
	c := w.caller
	if jsonrpc.IsBatch(frame) {
		c.handleBatch(frame)
		return w.isDone()
	}
	msg, err := c.parser.Parse(frame)
	if err != nil {
		c.handleMalformed(frame, msg.ID, err)
		return w.isDone()
	}
	switch {
	case msg.IsResponse():
		w.handleResponse(msg)
	case msg.IsNotification():
		w.handleNotification(msg)
	default:
		c.handleQuestion(w.ctx, msg)
	}
	return w.isDone()
}

// Began implements [Receiver].
func (w *carriedRequest) Began(from io.Closer) {
	c := w.caller
	c.mu.Lock()
	answered := c.findExchange(w.id) == nil
	if !answered && w.exchange != nil {
		w.exchange.source = from
	}
	c.mu.Unlock()
	if answered {
		from.Close()
	}
}

// isDone reports whether the request has its response, on this way or another.
func (w *carriedRequest) isDone() bool {
	if w.hasReply {
		return true
	}
	w.caller.mu.Lock()
	defer w.caller.mu.Unlock()
	return w.caller.findExchange(w.id) == nil
}

// handleResponse takes a response. An error without id answers what could not be read: this request.
func (w *carriedRequest) handleResponse(msg jsonrpc.Message) {
	if id := frames.UnquoteID(msg.ID); w.exchange == nil || !id.IsZero() && id != w.id {
		if id.IsZero() {
			msg.ID = w.id
		}
		w.caller.handleResponse(msg)
		return
	}
	if w.caller.takeExchange(w.id) != nil {
		w.hasReply, w.reply = true, reply{result: msg.Result, refused: msg.Error}
	}
}

// handleNotification delivers what belongs to the request: all that comes on its way in the modern era, and in the legacy one what
// is said to.
func (w *carriedRequest) handleNotification(msg jsonrpc.Message) {
	own := msg.Method == mcp.NotificationProgress || msg.Method == mcp.NotificationMessage
	if modern := w.caller.currentRevision().Modern(); w.exchange == nil || !own && !(modern && w.exchange.method == mcp.MethodListen) {
		w.caller.handleNotification(msg)
		return
	}
	n := mcp.Notification{Method: msg.Method, Params: msg.Params}
	if w.exchange.notify == nil {
		w.caller.in.Notify(n)
		return
	}
	w.deliverNotification(&n)
}
