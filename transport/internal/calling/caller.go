package calling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// caller is the calling side of one connection. It implements [mcp.Transport] and [mcp.Notifier].
type caller struct {
	conn         transport.Conn
	carrier      Carrier // sends each request separately; nil if requests are written to conn
	deliverer    frames.Deliverer
	in           mcp.Inbound
	opts         transport.ClientOptions
	logger       *slog.Logger
	base         context.Context // parent of the contexts of questions; ends with the connection
	cancel       context.CancelCauseFunc
	done         chan struct{} // closed when the reading loop has ended
	wg           sync.WaitGroup
	receivers    []*exchange  // scratch memory of the reading loop: the exchanges that get the current notification
	activeWrites atomic.Int64 // number of frames that are being written
	unaddressed  frames.UnaddressedCounter
	serialTurn   chan struct{}  // held by the running call if calls run one at a time; otherwise nil
	sink         framesink.Sink // the recorder's; nil without one
	lateProbe    *lateProbe     // used by Connect only; nil if the probe was answered

	delivery    sync.Mutex
	deliveredTo []*exchange // scratch memory of receiveChange; guarded by delivery

	mu        sync.Mutex
	era       era // nil until the era is known
	lastID    int64
	pending   map[int64]*exchange                    // requests in flight, by id: this side uses integer ids
	free      []*exchange                            // finished exchanges for reuse
	unheard   exchange                               // takes notifications of requests that want none
	questions map[jsonrpc.ID]context.CancelCauseFunc // questions of the server that are being answered, by id

	sweepTimer *time.Timer // of the default limits; nil before the first request
	isSweeping bool        // sweepTimer is set

	err       error // why the connection has ended; nil while it lasts
	closed    bool
	connected bool // Connect has returned, so the Inbound is told when the connection ends
}

// exchange is a request in flight and, later, its reply. Exchanges are reused.
type exchange struct {
	id            jsonrpc.ID
	method        string
	ctx           context.Context
	taskID        string                  // of a tasks/result request; otherwise empty
	wantsLogs     bool                    // the request has a log level
	wantsProgress bool                    // the request has a progress token
	filter        *mcp.SubscriptionFilter // of a subscriptions/listen request; otherwise nil
	lateProbe     bool                    // a probe that Connect no longer waits for; a response without an id is not its response
	done          chan reply

	source io.Closer // body of the HTTP response that should hold the reply, or nil
	abort  func()    // ends a carried request, or nil
	age    requestAge

	replyRead bool // the reply has been received from done

	notify func(mcp.Notification) // receives the request's notifications; may be nil
	queue  notificationQueue
	inline bool // notify may be called on any goroutine; see notificationQueue.startInline
}

// deliverReply passes the reply to the waiting goroutine, which may reuse x from then on. The
// caller must have removed x from the requests in flight.
func (x *exchange) deliverReply(r reply) {
	wake := x.queue.wake
	x.done <- r
	select {
	case wake <- struct{}{}:
	default:
	}
}

// reply ends an exchange: with a result, with the server's error, or with the error of the
// connection.
type reply struct {
	result  json.RawMessage
	refused *jsonrpc.Error
	err     error
}

func (r reply) failure() error {
	if r.err != nil {
		return r.err
	}
	if r.refused != nil {
		return r.refused
	}
	return nil
}

func newCaller(conn transport.Conn, in mcp.Inbound, opts transport.ClientOptions) *caller {
	c := &caller{
		conn: conn, in: in, opts: opts, logger: opts.Logger,
		done: make(chan struct{}), pending: map[int64]*exchange{}, questions: map[jsonrpc.ID]context.CancelCauseFunc{},
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	if c.opts.Info.Name == "" {
		c.opts.Info = mcp.Implementation{Name: "dowel", Version: "0"}
	}
	if opts.SerializeAsks {
		c.serialTurn = make(chan struct{}, 1)
	}
	c.base, c.cancel = context.WithCancelCause(context.Background())
	return c
}

func (c *caller) setEra(e era) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era = e
}

// markConnected ends Connect. It returns an error if the connection has been lost meanwhile.
func (c *caller) markConnected() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected = c.err == nil
	return c.err
}

func (c *caller) currentEra() era {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.era
}

// Close implements [mcp.Transport].
func (c *caller) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.conn.Close()
	<-c.done
	const handlerTimeout = 2 * time.Second // for the handlers of questions, whose contexts have ended
	if !timeout.Wait(&c.wg, handlerTimeout) {
		c.logger.Error("handlers of the server's requests were still running 2 seconds after Close")
	}
	return err
}

// readFrames is the reading loop. When it ends, it fails all exchanges.
func (c *caller) readFrames() {
	defer close(c.done)
	for {
		frame, err := c.conn.Read()
		switch {
		case errors.Is(err, transport.ErrFrame):
			c.handleLostFrame(err)
		case err != nil:
			c.failConnection(err)
			return
		default:
			c.handleFrame(frame)
		}
	}
}

// failConnection fails the exchanges in flight and, unless Close was called, tells the Inbound.
func (c *caller) failConnection(err error) {
	c.mu.Lock()
	closed := c.closed
	switch {
	case closed:
		err = fmt.Errorf("%w: %w", mcp.ErrConnection, mcp.ErrClosed)
	case errors.Is(err, mcp.ErrConnection):
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%w: the server ended the connection", mcp.ErrConnection)
	default:
		err = fmt.Errorf("%w: %w", mcp.ErrConnection, err)
	}
	c.err = err
	pending := c.pending
	c.pending = map[int64]*exchange{}
	if c.sweepTimer != nil {
		c.sweepTimer.Stop()
	}
	live := c.connected
	c.mu.Unlock()
	for _, x := range pending {
		c.dropRequest(x.id, err)
		x.deliverReply(reply{err: err})
	}
	c.cancel(err)
	if live && !closed {
		c.in.Down(err)
	}
}

func (c *caller) handleFrame(frame []byte) {
	if mcpwire.IsBatch(frame) {
		c.handleBatch(frame)
		return
	}
	msg, err := jsonrpc.Parse(frame, frames.MethodNames)
	if err != nil {
		frames.Show(c.opts.Tap, transport.Malformed, frame, nil)
		c.handleMalformed(frame, msg.ID, err)
		return
	}
	frames.Show(c.opts.Tap, transport.Received, frame, nil)
	c.handleMessage(msg)
}

func (c *caller) handleMessage(msg jsonrpc.Message) {
	switch {
	case msg.IsResponse():
		c.handleResponse(msg)
	case msg.IsNotification():
		c.handleNotification(msg)
	default:
		c.handleQuestion(nil, jsonrpc.ID{}, msg)
	}
}

// handleBatch handles the messages of a batch one by one. Servers of revision 2025-03-26 may send
// batches.
func (c *caller) handleBatch(frame []byte) {
	raws, err := mcpwire.SplitBatch(frame, frames.MaxBatch)
	if e := c.currentEra(); err == nil && (e == nil || !mcpwire.AllowsBatches(e.revision())) {
		err = fmt.Errorf("a batch, which belongs to revision %s only", mcp.Revision20250326)
	}
	if err != nil {
		frames.Show(c.opts.Tap, transport.Malformed, frame, nil)
		c.logUnaddressed(frame, err)
		c.failBatch(raws, fmt.Errorf("the server answered with %w", err))
		return
	}
	frames.Show(c.opts.Tap, transport.Received, frame, nil)
	for _, raw := range raws {
		if msg, err := jsonrpc.Parse(raw, frames.MethodNames); err != nil {
			c.handleMalformed(raw, msg.ID, err)
		} else {
			c.handleMessage(msg)
		}
	}
}

func (c *caller) handleResponse(msg jsonrpc.Message) {
	id := frames.UnquoteID(msg.ID)
	if id.IsZero() {
		id = c.onlyAwaitedID() // an error without an id answers an unreadable request
	}
	if x := c.takeExchange(id); x != nil {
		from := x.source
		x.deliverReply(reply{result: msg.Result, refused: msg.Error})
		if from != nil {
			from.Close()
		}
		return
	}
	c.unaddressed.Add()
	c.logger.Debug("received a response that answers no request", "id", msg.ID.String())
}

// takeExchange removes an exchange from those in flight and returns it, or nil. The caller must
// deliver its reply.
func (c *caller) takeExchange(id jsonrpc.ID) *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.findExchange(id)
	c.removeExchange(id)
	return x
}

// findExchange returns the exchange with the id, or nil. The caller holds c.mu, here and for
// removeExchange.
func (c *caller) findExchange(id jsonrpc.ID) *exchange {
	n, _ := id.Int() // 0 for other ids, which no exchange has
	return c.pending[n]
}

func (c *caller) removeExchange(id jsonrpc.ID) {
	n, _ := id.Int()
	delete(c.pending, n)
}

// handleNotification passes a notification to the requests that it belongs to, or else to the
// Inbound. The reading loop calls it; with a carrier, each stream does, at the same time.
func (c *caller) handleNotification(msg jsonrpc.Message) {
	n := mcp.Notification{Method: msg.Method, Params: msg.Params}
	if msg.Method == mcpwire.NotificationCancelled && c.handleCancelled(msg.Params) {
		return
	}
	e := c.currentEra()
	if e == nil {
		return // no request can get notifications before the handshake
	}
	var receivers []*exchange
	if c.carrier != nil {
		receivers = e.findReceivers(n, nil)
	} else {
		c.receivers = e.findReceivers(n, c.receivers[:0])
		receivers = c.receivers
	}
	c.noteSign(receivers...)
	for _, x := range receivers {
		if x.notify != nil {
			x.queue.push(n)
		}
	}
	if len(receivers) == 0 {
		c.in.Notify(n)
	}
}

// handleCancelled handles a cancellation by the server: of a question, or of a subscription,
// which it ends without an error. It reports whether the notification has been handled.
func (c *caller) handleCancelled(params []byte) bool {
	id, err := jsonrpc.ParseID(rawjson.Lookup(params, "requestId"))
	if err != nil {
		c.logUnaddressed(params, fmt.Errorf("%s without a requestId: %w", mcpwire.NotificationCancelled, err))
		return true
	}
	c.mu.Lock()
	cancel := c.questions[id]
	x := c.findExchange(id)
	if x != nil && x.method == mcp.MethodListen {
		c.removeExchange(id)
	} else {
		x = nil
	}
	c.mu.Unlock()
	if cancel != nil || x != nil {
		reason, _ := rawjson.String(rawjson.Lookup(params, "reason"))
		c.logger.Debug("the server has cancelled a question or ended a subscription", "id", id.String(), "reason", reason)
	}
	if cancel != nil {
		cancel(&frames.CancelledError{})
	}
	if x != nil {
		c.dropRequest(x.id, nil)
		x.deliverReply(reply{result: []byte("{}")})
	}
	return true
}

// Notify implements [mcp.Notifier].
func (c *caller) Notify(ctx context.Context, n mcp.Notification) error {
	c.mu.Lock()
	err, e := c.err, c.era
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if n.Method == mcp.NotificationRootsChanged && e.revision().Modern() {
		return nil // modern servers ask for the roots each time
	}
	frame := jsonrpc.AppendNotification(nil, n.Method, n.Params)
	if c.carrier != nil {
		return c.postMessage(ctx, frame)
	}
	return c.writeFrame(ctx, frame)
}
