package calling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// caller is the calling side of one connection on which all messages share one channel.
type caller struct {
	conn    transport.Conn
	carrier Carrier // carries requests; nil where they share the conn
	in      mcp.Inbound
	opts    transport.ClientOptions
	logger  *slog.Logger
	parser  jsonrpc.Parser
	base    context.Context // of what the server asks
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when the reading loop has ended
	wg      sync.WaitGroup
	takers  []*exchange  // of the notification at hand; of the reading loop
	writes  atomic.Int64 // frames that are being written
	strays  frames.UnaddressedCounter
	turn    chan struct{} // held by a call, where calls run one at a time
	late    *lateAnswer   // nil for none; of who connects

	mu      sync.Mutex
	speak   dialect // nil until the era is known
	lastID  int64
	pending map[int64]*exchange                    // by number: ids of this side are integers
	free    []*exchange                            // answered, and used again
	asked   map[jsonrpc.ID]context.CancelCauseFunc // questions of the server that are being answered
	err     error                                  // why the connection is over
	closed  bool
	live    bool // Connect has returned: the Inbound hears of the connection's end
}

// exchange is a request in flight.
type exchange struct {
	id     jsonrpc.ID
	method string
	ctx    context.Context
	logs   bool                    // whether it may have log messages
	steps  bool                    // whether progress is asked for
	filter *mcp.SubscriptionFilter // of a subscription
	late   bool                    // a probe that nobody waits for; what names no request does not answer it
	done   chan reply

	from io.Closer // what its way back is read from; nil where there is none of its own

	answered bool // the reply has been read

	notify func(mcp.Notification) // nil where nobody listens
	queue  queue
}

// end gives an exchange, which has been taken, its reply. Who waits for it may use the exchange again from then on.
func (x *exchange) end(r reply) {
	wake := x.queue.wake
	x.done <- r
	select {
	case wake <- struct{}{}:
	default:
	}
}

// reply ends an exchange: a response, or the error of the connection.
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
		conn: conn, in: in, opts: opts, logger: opts.Logger, parser: jsonrpc.Parser{Methods: frames.MethodNames},
		done: make(chan struct{}), pending: map[int64]*exchange{}, asked: map[jsonrpc.ID]context.CancelCauseFunc{},
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	if c.opts.Vocabulary == nil {
		c.opts.Vocabulary = mcp.NewVocabulary()
	}
	if c.opts.Info.Name == "" {
		c.opts.Info = mcp.Implementation{Name: "dowel", Version: "0"}
	}
	if opts.SerializeAsks {
		c.turn = make(chan struct{}, 1)
	}
	c.base, c.cancel = context.WithCancelCause(context.Background())
	return c
}

func (c *caller) ready(speak dialect) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.speak = speak
}

// connected ends Connect, with the error of a connection that is lost already.
func (c *caller) connected() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = c.err == nil
	return c.err
}

func (c *caller) dialect() dialect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.speak
}

// Close implements [mcp.Transport].
func (c *caller) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.conn.Close()
	<-c.done
	const patience = 2 * time.Second // for handlers of questions, whose contexts have ended
	if !timeout.Wait(&c.wg, patience) {
		c.logger.Error("answers to the server's questions went on after Close; they were left behind")
	}
	return err
}

// read is the connection's reading loop; what ends it ends every exchange.
func (c *caller) read() {
	defer close(c.done)
	for {
		frame, err := c.conn.Read()
		switch {
		case errors.Is(err, transport.ErrFrame):
			c.lost(err)
		case err != nil:
			c.down(err)
			return
		default:
			c.frame(frame)
		}
	}
}

// down fails everything that waits, once, and tells the Inbound unless Close was called.
func (c *caller) down(err error) {
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
	live := c.live
	c.mu.Unlock()
	for _, x := range pending {
		x.end(reply{err: err})
	}
	c.cancel(err)
	if live && !closed {
		c.in.Down(err)
	}
}

func (c *caller) frame(frame []byte) {
	if jsonrpc.IsBatch(frame) {
		c.batch(frame)
		return
	}
	msg, err := c.parser.Parse(frame)
	if err != nil {
		frames.Show(c.opts.Tap, transport.Stray, frame, nil)
		c.malformed(frame, msg.ID, err)
		return
	}
	frames.Show(c.opts.Tap, transport.Received, frame, nil)
	c.message(msg)
}

func (c *caller) message(msg jsonrpc.Message) {
	switch {
	case msg.IsResponse():
		c.response(msg)
	case msg.IsNotification():
		c.notification(msg)
	default:
		c.question(msg)
	}
}

// batch takes the messages of a batch one by one; a server of revision 2025-03-26 may send them.
func (c *caller) batch(frame []byte) {
	raws, err := jsonrpc.Batch(frame, frames.MaxBatch)
	if speak := c.dialect(); err == nil && (speak == nil || !speak.revision().Batches()) {
		err = fmt.Errorf("a batch, which belongs to revision %s only", mcp.Revision20250326)
	}
	if err != nil {
		frames.Show(c.opts.Tap, transport.Stray, frame, nil)
		c.stray(frame, err)
		c.failAll(raws, fmt.Errorf("the server answered with %w", err))
		return
	}
	frames.Show(c.opts.Tap, transport.Received, frame, nil)
	for _, raw := range raws {
		if msg, err := c.parser.Parse(raw); err != nil {
			c.malformed(raw, msg.ID, err)
		} else {
			c.message(msg)
		}
	}
}

func (c *caller) response(msg jsonrpc.Message) {
	id := frames.UnquoteID(msg.ID)
	if id.IsZero() {
		id = c.only() // an error without id answers what could not be read
	}
	if x := c.take(id); x != nil {
		from := x.from
		x.end(reply{result: msg.Result, refused: msg.Error})
		if from != nil {
			from.Close()
		}
		return
	}
	c.strays.Add()
	c.logger.Debug("a response came to nothing that is in flight", "id", msg.ID.String())
}

// take removes an exchange from those in flight: whoever takes it ends it.
func (c *caller) take(id jsonrpc.ID) *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.inFlight(id)
	c.forget(id)
	return x
}

// inFlight returns the exchange with the id, or nil. c.mu is held, as it is for forget.
func (c *caller) inFlight(id jsonrpc.ID) *exchange {
	n, _ := id.Int() // 0, which is never given, for anything else
	return c.pending[n]
}

func (c *caller) forget(id jsonrpc.ID) {
	n, _ := id.Int()
	delete(c.pending, n)
}

func (c *caller) notification(msg jsonrpc.Message) {
	n := mcp.Notification{Method: msg.Method, Params: msg.Params}
	if msg.Method == mcp.NotificationCancelled && c.cancelled(msg.Params) {
		return
	}
	speak := c.dialect()
	if speak == nil {
		return // nothing is owed before the handshake
	}
	c.takers = speak.notification(n, c.takers[:0])
	for _, x := range c.takers {
		if x.notify != nil {
			x.queue.push(n)
		}
	}
	if len(c.takers) == 0 {
		c.in.Notify(n)
	}
}

// cancelled takes the server's cancellation of a question, or of a subscription: that is its graceful end.
func (c *caller) cancelled(params []byte) bool {
	id, err := jsonrpc.ParseID(rawjson.Lookup(params, "requestId"))
	if err != nil {
		c.stray(params, fmt.Errorf("%s without a requestId: %w", mcp.NotificationCancelled, err))
		return true
	}
	c.mu.Lock()
	cancel := c.asked[id]
	x := c.inFlight(id)
	if x != nil && x.method == mcp.MethodListen {
		c.forget(id)
	} else {
		x = nil
	}
	c.mu.Unlock()
	if cancel != nil {
		cancel(&frames.CancelledError{})
	}
	if x != nil {
		x.end(reply{result: []byte("{}")})
	}
	return true
}

// Notify implements [mcp.Notifier].
func (c *caller) Notify(ctx context.Context, n mcp.Notification) error {
	c.mu.Lock()
	err, speak := c.err, c.speak
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if n.Method == mcp.NotificationRootsChanged && speak.revision().Modern() {
		return nil // servers ask for roots each time
	}
	frame := jsonrpc.AppendNotification(nil, n.Method, n.Params)
	if c.carrier != nil {
		return c.post(ctx, frame)
	}
	return c.send(ctx, frame)
}
