package serving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// Serve serves the requests that arrive on conn; see package overconn for its contract.
func Serve(ctx context.Context, conn transport.Conn, h mcp.Handler, opts transport.ServerOptions) error {
	isTapped := opts.Tap != nil
	opts.Tap = frames.WithSink(framesink.Serving(ctx), opts.Tap)
	s := newServer(ctx, frames.TapSent(conn, opts.Tap), h, opts)
	s.header, _ = conn.(transport.HeaderConn)
	s.principal, _ = conn.(interface{ FramePrincipal() mcp.Principal })
	if !isTapped { // a tap may wait or use the connection, which a delivery must not
		s.deliverer = frames.NewDeliverer(conn, opts.Tap)
	}
	s.waiting.waiter = connCutter{conn}
	s.batchAccount = s.waiting.account
	if c, ok := conn.(accountedConn); ok {
		s.batchAccount = c.Account()
	}
	stop := context.AfterFunc(ctx, func() {
		s.shutDown()
		conn.Close()
	})
	defer stop()
	defer s.sweeper.Stop()
	s.deliverer.SetReceiver(requestReceiver{s})
	err := s.readFrames()
	s.endConnection(err)
	conn.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrClosed) {
		return nil
	}
	return err
}

// server is the serving side of a connection on which all messages share one channel.
type server struct {
	*edge
	conn           transport.Conn
	deliverer      frames.Deliverer
	header         transport.HeaderConn                        // conn, if its frames have header fields; otherwise nil
	principal      interface{ FramePrincipal() mcp.Principal } // conn, if its frames have principals; otherwise nil
	base           context.Context
	cancel         context.CancelCauseFunc
	values         context.Context // base without its cancellation, the parent of calls
	wg             sync.WaitGroup  // counts goroutines
	calls          callTable
	waiting        frameMeter
	batchAccount   quota.Account
	unaddressed    frames.UnaddressedCounter
	meta           metaReader
	idleWorkers    chan *call // receives a call if a worker is idle
	sweeper        *time.Timer
	usedSinceSweep atomic.Bool // a call was dispatched since the last sweep

	session atomic.Pointer[session] // opened by initialize; nil before that

	mu             sync.Mutex
	dispatchClosed bool // idleWorkers is closed
}

func newServer(ctx context.Context, conn transport.Conn, h mcp.Handler, opts transport.ServerOptions) *server {
	s := &server{edge: newEdge(h, opts), conn: conn, idleWorkers: make(chan *call)}
	s.calls.limit = s.opts.MaxConcurrent
	s.waiting.account = quota.Account{Quota: s.opts.Quota, Client: clientOf(ctx, opts.Principal)}
	s.base, s.cancel = context.WithCancelCause(ctx)
	s.values = context.WithoutCancel(ctx)
	s.mu.Lock() // the timer may fire before s.sweeper is set
	defer s.mu.Unlock()
	s.sweeper = time.AfterFunc(workerIdle, s.stopIdleWorkers)
	return s
}

// readFrames is the reading loop. It returns the error that ended the connection.
func (s *server) readFrames() error {
	for {
		frame, err := s.conn.Read()
		switch {
		case errors.Is(err, transport.ErrFrame):
			s.handleLostFrame(err)
		case err != nil:
			return err
		default:
			s.handleFrame(frame)
		}
	}
}

// handleLostFrame handles a frame that could not be read, such as one over the size limit.
func (s *server) handleLostFrame(err error) {
	refused := &mcp.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	var lost *transport.FrameError
	switch {
	case !errors.As(err, &lost):
		s.refuseFrame(jsonrpc.ID{}, refused)
	case lost.Response:
		s.handleResponse(jsonrpc.Message{ID: lost.ID, Error: refused})
	default:
		s.refuseFrame(lost.ID, refused)
	}
}

// Write implements [Writer] for all calls of the connection. It logs errors, except a
// [quota.LimitError], after which the caller can still write a small frame.
func (s *server) Write(frame []byte) error {
	n := len(frame)
	if err := s.waiting.countBytes(n); err != nil {
		return err
	}
	defer s.waiting.subtractBytes(n)
	err := s.conn.Write(frame)
	if err != nil && !errors.Is(err, mcp.ErrClosed) {
		s.logger.Warn("a message could not be sent", "err", err)
	}
	return err
}

// TryWrite implements [transport.TryWriter]. It reports false if the connection does not.
func (s *server) TryWrite(frame []byte) bool {
	w, ok := s.conn.(transport.TryWriter)
	return ok && w.TryWrite(frame)
}

// handleFrame parses one frame and acts on it. It never waits for a handler.
func (s *server) handleFrame(frame []byte) {
	if mcpwire.IsBatch(frame) {
		s.serveBatch(frame)
		return
	}
	msg, err := jsonrpc.Parse(frame, frames.MethodNames)
	if err != nil {
		frames.Show(s.opts.Tap, transport.Malformed, frame, nil)
		if err.(*mcp.Error).Code == jsonrpc.CodeParse {
			msg.ID = jsonrpc.ID{} // an id guessed from broken JSON must not be answered
		}
		if answer := s.answerMalformed(frame, msg.ID, err.(*mcp.Error)); answer != nil {
			_ = s.Write(answer)
		}
		return
	}
	frames.Show(s.opts.Tap, transport.Received, frame, nil)
	s.handleMessage(msg, nil)
}

func (s *server) handleMessage(msg jsonrpc.Message, b *responseBatch) {
	switch {
	case msg.IsRequest():
		s.handleRequest(msg, b)
	case msg.IsNotification():
		s.handleNotification(msg)
	default:
		s.handleResponse(msg)
	}
}

// answerMalformed returns the answer to a malformed frame, or nil if it gets no answer. A
// notification with malformed params is logged, because notifications are not answered. A malformed
// response fails the question with its id.
func (s *server) answerMalformed(frame []byte, id jsonrpc.ID, e *mcp.Error) []byte {
	if e.Code != jsonrpc.CodeParse && isNotification(frame) {
		s.logUnusable(e)
		return nil
	}
	if e.Code == jsonrpc.CodeParse || rawjson.Lookup(frame, "method") != nil || rawjson.Lookup(frame, "result") == nil && rawjson.Lookup(frame, "error") == nil {
		return s.encodeRefusal(id, e)
	}
	s.handleResponse(jsonrpc.Message{ID: id, Error: e})
	return nil
}

// isNotification reports whether a malformed frame is a notification with malformed params.
func isNotification(frame []byte) bool {
	method, _ := rawjson.String(rawjson.Lookup(frame, "method"))
	params := rawjson.Lookup(frame, "params")
	return method != "" && params != nil && !rawjson.IsObject(params) && rawjson.Lookup(frame, "id") == nil &&
		rawjson.Lookup(frame, "result") == nil && rawjson.Lookup(frame, "error") == nil
}

// encodeRefusal logs e and returns the error response to an unusable frame. It returns nil if the
// frame has no id and the session's schema has no error without an id.
func (s *server) encodeRefusal(id jsonrpc.ID, e *mcp.Error) []byte {
	s.logUnusable(e)
	if ss := s.legacySession(); id.IsZero() && ss != nil && ss.Revision < mcp.Revision20251125 {
		return nil
	}
	return jsonrpc.AppendError(nil, id, e)
}

func (s *server) refuseFrame(id jsonrpc.ID, e *mcp.Error) {
	if answer := s.encodeRefusal(id, e); answer != nil {
		_ = s.Write(answer)
	}
}

func (s *server) legacySession() *session { return s.session.Load() }

// handleRequest admits a request and starts to serve it.
func (s *server) handleRequest(msg jsonrpc.Message, b *responseBatch) {
	c := s.newCall(msg, b)
	if refused := s.admitCall(c); refused != nil {
		c.sendResponse(jsonrpc.AppendError(nil, msg.ID, refused))
		return
	}
	s.dispatchCall(c)
}

func (s *server) newCall(msg jsonrpc.Message, b *responseBatch) *call {
	c := &call{id: msg.ID, edge: s.edge, out: s, batch: b}
	c.req = mcp.Request{Method: msg.Method, Params: msg.Params, Principal: s.opts.Principal, Peer: c}
	c.req.Meta = s.meta.findMeta(msg.Params)
	if s.header != nil {
		c.req.Header = s.header.Header()
	}
	if s.principal != nil {
		c.req.Principal = s.principal.FramePrincipal()
	}
	return c
}

// admitCall chooses the era of a call, fills its request and adds it to the calls in flight.
func (s *server) admitCall(c *call) *mcp.Error {
	fields := s.meta.readFields(c.req.Meta)
	if refused := s.chooseEra(c, fields); refused != nil {
		return refused
	}
	refused := c.era.fillRequest(&c.req, fields)
	if refused == nil {
		refused = s.calls.addCall(s.values, c)
	}
	if refused == nil && c.req.Method == mcp.MethodListen {
		refused = s.openStream(c)
	}
	if o, ok := c.era.(initializing); ok && refused != nil {
		o.discard()
	}
	return refused
}

// chooseEra sets the era of a call. A protocol version in _meta means modern. An initialize
// request opens a session, to which later requests without a version belong.
func (s *server) chooseEra(c *call, fields metaFields) *mcp.Error {
	ss := s.legacySession()
	switch {
	case fields.version != nil && !(ss != nil && string(fields.version) == `"`+string(ss.Revision)+`"`):
		c.era = s.modern
	case ss != nil:
		c.era = ss
	case c.req.Method == mcpwire.MethodInitialize:
		return s.openSession(c)
	case c.req.Method == mcpwire.MethodPing:
		c.era = newSession(s.edge, SessionState{Revision: mcp.LatestLegacyRevision})
	default:
		c.era = s.modern
	}
	return nil
}

func (s *server) handleNotification(msg jsonrpc.Message) {
	switch msg.Method {
	case mcpwire.NotificationCancelled:
		if err := s.calls.handleCancelled(msg.Params); err != nil {
			s.logUnusable(err)
		}
	case mcpwire.NotificationInitialized:
		if ss := s.legacySession(); ss != nil {
			ss.releaseLists()
		}
	default:
		if _, known := frames.MethodNames[msg.Method]; known && !strings.HasPrefix(msg.Method, "notifications/") {
			s.logUnusable(fmt.Errorf("%s without an id cannot be answered", msg.Method))
			return
		}
		s.passNotification(s.base, msg)
	}
}

// logUnusable counts and logs a message that is neither usable nor answerable.
func (s *server) logUnusable(err error) {
	if n, log := s.unaddressed.Add(); log {
		s.logger.Warn("received an unusable message", "err", err, "count", n)
	}
}

func (s *server) handleResponse(msg jsonrpc.Message) {
	if ss := s.legacySession(); ss != nil && ss.deliverAnswer(msg) {
		return
	}
	if n, log := s.unaddressed.Add(); log {
		s.logger.Warn("received a response that answers no request", "id", msg.ID.String(), "count", n)
	}
}
