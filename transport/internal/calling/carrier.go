package calling

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// Carrier sends each message separately, as HTTP does. It is safe for concurrent use.
type Carrier interface {
	// Carry sends m. If m is a request, Carry passes each frame of its HTTP response to back, one
	// after the other, and returns when the response is done. Otherwise back is nil and Carry
	// returns when the server has accepted m. When ctx ends, Carry gives up and returns at once.
	//
	// The error is a streamable.HTTPError if the server's answer was not a message. It
	// wraps [mcp.ErrConnection] if the server could not be reached.
	Carry(ctx context.Context, m *Outbound, back Receiver) error
	// Close ends all transfers and returns when they have ended.
	Close() error
}

// StreamOpener is implemented by a Carrier that receives notifications and questions of a legacy
// session on a stream of its own.
type StreamOpener interface {
	// AwaitStream waits until the stream is open, so that messages from then on are received. It
	// gives up a while after the dial or when ctx ends.
	AwaitStream(ctx context.Context)
}

// Receiver receives the frames of the response to a request.
type Receiver interface {
	// SetAbort tells the receiver how to abort the transfer. Carry calls it before the transfer,
	// and with nil after it. abort must not call the receiver.
	SetAbort(abort func())
	// Began tells the receiver the source of the frames. The receiver closes it if the response
	// arrives elsewhere.
	Began(from io.Closer)
	// Receive handles a frame. done reports whether the request has been answered.
	Receive(frame []byte) (done bool)
	// IsAnswered reports whether the request has been answered, so that the rest of the response is
	// not needed.
	IsAnswered() bool
}

// Outbound is a message to be sent to a server.
type Outbound struct {
	Frame []byte
	// Method and Params belong to a request or notification. Method is empty for a response.
	Method string
	Params []byte
	// Revision is the revision of the connection, or "" before the handshake.
	Revision mcp.Revision
	// Request reports whether the message is a request, which has a response.
	Request bool
	// Header is the Header of an [mcp.Request], or nil.
	Header map[string][]string
}

// Caller is the calling side of a server that gets each message separately. Use [NewCaller]. It
// is safe for concurrent use.
type Caller struct{ *caller }

// NewCaller returns a Caller that owns carrier. Call Connect before any other method. opts.Tap is
// ignored: the carrier shows the frames together with their header fields.
func NewCaller(carrier Carrier, in mcp.Inbound, opts transport.ClientOptions) Caller {
	opts.Tap = nil // the carrier calls it
	post := &carrierConn{carrier: carrier, closed: make(chan struct{})}
	c := newCaller(post, in, opts)
	post.caller, c.carrier = c, carrier
	go c.readFrames()
	return Caller{c}
}

// Connect finds the server's era, as the function [Connect] does. If it fails, it has closed the
// Caller.
func (s Caller) Connect(ctx context.Context, endpoint string) error {
	s.sink = framesink.Dialing(ctx)
	return s.connectTo(ctx, endpoint)
}

// Receive handles a frame that arrived outside the response to a request.
func (s Caller) Receive(frame []byte) { s.handleFrame(frame) }

// Down fails all requests with err because the server has lost the session. It returns when the
// Inbound has been told.
func (s Caller) Down(err error) {
	s.conn.(*carrierConn).closeWith(err)
	<-s.done
}

// Interrupted ends the subscriptions of a legacy session, because changes may have been lost. A
// modern subscription has a stream of its own.
func (s Caller) Interrupted() {
	if l, ok := s.currentEra().(*legacyEra); ok {
		l.interruptListeners()
	}
}

// Speaks returns the revision of the connection, or "" before the handshake.
func (s Caller) Speaks() mcp.Revision { return s.currentRevision() }

func (c *caller) currentRevision() mcp.Revision {
	if e := c.currentEra(); e != nil {
		return e.revision()
	}
	return ""
}

// carrierConn makes a Conn of a carrier, for messages without a response.
type carrierConn struct {
	carrier Carrier
	caller  *caller
	once    sync.Once
	closed  chan struct{}
	err     error // returned by Read; set before closed is closed
}

func (p *carrierConn) Read() ([]byte, error) {
	<-p.closed
	return nil, p.err
}

func (p *carrierConn) Write(frame []byte) error {
	const writeTimeout = 30 * time.Second // because Write has no context of its own
	ctx, cancel := context.WithTimeout(p.caller.base, writeTimeout)
	defer cancel()
	return p.caller.postMessage(ctx, frame)
}

// postMessage sends a notification or a response.
func (c *caller) postMessage(ctx context.Context, frame []byte) error {
	m := &Outbound{Frame: frame, Revision: c.currentRevision()}
	if msg, err := jsonrpc.Parse(frame, frames.MethodNames); err == nil {
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

// carryRequest sends a request through the carrier and waits for its response. The calling
// goroutine delivers the notifications that arrive in the HTTP response.
func (c *caller) carryRequest(ctx context.Context, req *mcp.Request, e era) (*mcp.Response, error) {
	x, err := c.registerExchange(ctx, req)
	if err != nil {
		return nil, err
	}
	defer c.releaseExchange(x)
	c.linkRequest(ctx, x)
	w := carriedRequest{caller: c, id: x.id, exchange: x, ctx: ctx}
	listened := w.deliverQueued(e)
	err = c.carrier.Carry(ctx, c.newOutbound(req, e, x), &w)
	listened()
	select {
	case w.reply = <-x.done: // the reply arrived elsewhere, or the connection has ended
		w.hasReply = true
	default:
	}
	switch {
	case w.hasReply:
		return c.finishExchange(x, e, w.reply)
	case ctx.Err() != nil && e.revision().Modern():
		c.takeExchange(x.id)
		return nil, context.Cause(ctx) // closing the response has cancelled the request
	case ctx.Err() != nil:
		return c.cancelExchange(ctx, x, nil)
	case err == nil:
		err = errUnanswered
	}
	c.takeExchange(x.id)
	c.dropRequest(x.id, err)
	return nil, err
}

var errUnanswered = errors.New("the server ended its answer without a response")

// carryInBackground sends a request of the handshake. The reply is sent to x.done.
func (c *caller) carryInBackground(ctx context.Context, req *mcp.Request, e paramsEncoder, x *exchange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return mcp.ErrClosed
	}
	c.wg.Add(1)
	m, w := c.newOutbound(req, e, x), carriedRequest{caller: c, id: x.id, ctx: ctx} // x may be reused once it has its reply
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
		Frame: c.encodeRequest(req, e, x), Method: req.Method, Params: req.Params, Request: true, Header: req.Header,
	}
	if d, ok := e.(era); ok {
		m.Revision = d.revision()
	}
	return m
}

// carriedRequest is a request that a carrier sends, and the [Receiver] of its response.
type carriedRequest struct {
	caller   *caller
	id       jsonrpc.ID
	exchange *exchange // nil for a request of the handshake: another goroutine awaits its reply
	ctx      context.Context
	hasReply bool
	reply    reply

	delivering sync.Mutex // keeps notifications in order
}

// deliverQueued delivers the request's notifications that arrive outside its HTTP response, until
// stop is called: on the GET stream of a legacy session, or changes on the response to the call
// that has made them.
func (w *carriedRequest) deliverQueued(e era) (stop func()) {
	if w.exchange.notify == nil || e.revision().Modern() && w.exchange.method != mcp.MethodListen {
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

// deliverNotification delivers the queued notifications, and then n unless it is nil.
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
	if mcpwire.IsBatch(frame) {
		c.handleBatch(frame)
		return w.IsAnswered()
	}
	msg, err := jsonrpc.Parse(frame, frames.MethodNames)
	if err != nil {
		c.handleMalformed(frame, msg.ID, err)
		return w.IsAnswered()
	}
	switch {
	case msg.IsResponse():
		w.handleResponse(msg)
	case msg.IsNotification():
		w.handleNotification(msg)
	default:
		c.handleQuestion(w.ctx, w.id, msg)
	}
	return w.IsAnswered()
}

// SetAbort implements [Receiver].
func (w *carriedRequest) SetAbort(abort func()) {
	if w.exchange == nil {
		return // Connect has a limit
	}
	w.caller.mu.Lock()
	defer w.caller.mu.Unlock()
	w.exchange.abort = abort
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

// IsAnswered implements [Receiver]. The answer may have arrived in the HTTP response or elsewhere.
func (w *carriedRequest) IsAnswered() bool {
	if w.hasReply {
		return true
	}
	w.caller.mu.Lock()
	defer w.caller.mu.Unlock()
	return w.caller.findExchange(w.id) == nil
}

// handleResponse handles a response. An error without an id answers this request, which the
// server could not read.
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

// handleNotification delivers a notification to the request if it belongs to it, and handles it
// like any other otherwise.
func (w *carriedRequest) handleNotification(msg jsonrpc.Message) {
	if w.exchange == nil || !w.owns(msg.Method) {
		w.caller.handleNotification(msg)
		return
	}
	n := mcp.Notification{Method: msg.Method, Params: msg.Params}
	w.caller.noteSign(w.exchange)
	if w.exchange.notify == nil {
		w.caller.in.Notify(n)
		return
	}
	w.deliverNotification(&n)
}

// owns reports whether a notification in the HTTP response belongs to the request. Servers send
// there only what relates to the request: progress, log messages, and notifications of extensions.
// Other notifications of the core, such as a change that a call has made, also concern others. In
// the modern era, everything on the response to subscriptions/listen belongs to it.
func (w *carriedRequest) owns(method string) bool {
	switch method {
	case mcpwire.NotificationCancelled, mcpwire.NotificationElicitationCompleted, mcpwire.NotificationTask, mcpwire.NotificationTaskStatus, mcp.NotificationAcknowledged:
	default:
		if !isChange(method) {
			return true
		}
	}
	return w.exchange.method == mcp.MethodListen && w.caller.currentRevision().Modern()
}
