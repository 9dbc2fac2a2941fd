package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Serve answers the requests that come on a connection, in both eras at the same time, until the peer ends it (then the
// error is nil), ctx ends or the connection fails. When ctx ends, calls in flight have DrainTimeout to be answered. Each request has a goroutine of its own; Serve waits for them, within
// DrainTimeout, and closes the connection.
//
// A frame that cannot be used is answered where the protocol has a way to, logged otherwise, and the connection lives.
func Serve(ctx context.Context, conn Conn, h mcp.Handler, opts ServerOptions) error {
	s := newServer(ctx, tapSent(conn, opts.Tap), h, opts)
	stop := context.AfterFunc(ctx, func() {
		s.sayGoodbye()
		conn.Close()
	})
	defer stop()
	defer s.sweeper.Stop()
	err := s.read()
	s.drain(err)
	conn.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrClosed) {
		return nil
	}
	return err
}

// server is the serving side of one connection on which all messages share one channel.
type server struct {
	conn    Conn
	handler mcp.Handler
	opts    ServerOptions
	logger  *slog.Logger
	parser  jsonrpc.Parser
	modern  *modern
	base    context.Context
	cancel  context.CancelCauseFunc
	values  context.Context // base without its end
	wg      sync.WaitGroup  // goroutines
	busy    sync.WaitGroup  // calls in flight
	strays  strays
	meta    metaReader // of the reading loop
	work    chan *call // takes a call where a worker is idle
	sweeper *time.Timer
	active  atomic.Bool // since the last sweep

	mu      sync.Mutex
	calls   map[jsonrpc.ID]*call
	session *session // of a legacy client; nil before initialize
	over    error    // why no call begins any more
}

var methodNames = mcp.MethodNames()

func newServer(ctx context.Context, conn Conn, h mcp.Handler, opts ServerOptions) *server {
	s := &server{
		conn: conn, handler: h, opts: opts, logger: opts.Logger,
		parser: jsonrpc.Parser{Methods: methodNames}, calls: map[jsonrpc.ID]*call{}, work: make(chan *call),
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	if s.opts.Revisions == nil {
		s.opts.Revisions = mcp.Revisions()
	}
	if s.opts.Vocabulary == nil {
		s.opts.Vocabulary = mcp.NewVocabulary()
	}
	s.opts.MaxConcurrent = orDefault(opts.MaxConcurrent, DefaultMaxConcurrent)
	s.opts.DrainTimeout = orDefault(opts.DrainTimeout, 2*time.Second)
	s.opts.AskTimeout = orDefault(opts.AskTimeout, 10*time.Minute)
	s.modern = &modern{revisions: s.opts.Revisions, log: s.logFailure}
	s.base, s.cancel = context.WithCancelCause(ctx)
	s.values = context.WithoutCancel(ctx)
	s.mu.Lock() // sweep may run before AfterFunc has returned
	defer s.mu.Unlock()
	s.sweeper = time.AfterFunc(workerIdle, s.sweep)
	return s
}

func orDefault[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}

func (s *server) logFailure(r *mcp.Request, err error) {
	s.logger.Error("a request failed", "method", r.Method, "err", err)
}

// read is the connection's reading loop.
func (s *server) read() error {
	for {
		frame, err := s.conn.Read()
		switch {
		case errors.Is(err, ErrFrame):
			s.lost(err)
		case err != nil:
			return err
		default:
			s.frame(frame)
		}
	}
}

// lost is a frame that could not be read.
func (s *server) lost(err error) {
	refused := &mcp.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	var lost *FrameError
	switch {
	case !errors.As(err, &lost):
		s.refuseFrame(jsonrpc.ID{}, refused)
	case lost.Response:
		s.response(jsonrpc.Message{ID: lost.ID, Error: refused})
	default:
		s.refuseFrame(lost.ID, refused)
	}
}

func (s *server) write(frame []byte) error {
	err := s.conn.Write(frame)
	if err != nil && !errors.Is(err, mcp.ErrClosed) {
		s.logger.Warn("a message could not be sent", "err", err)
	}
	return err
}

// frame takes one frame apart and acts on it. It never blocks on a handler.
func (s *server) frame(frame []byte) {
	if jsonrpc.IsBatch(frame) {
		s.batch(frame)
		return
	}
	msg, err := s.parser.Parse(frame)
	if err != nil {
		s.opts.Tap.show(Stray, frame)
		if err.(*mcp.Error).Code == jsonrpc.CodeParse {
			msg.ID = jsonrpc.ID{} // a guess is no id to answer
		}
		if answer := s.malformed(frame, msg.ID, err.(*mcp.Error)); answer != nil {
			s.write(answer)
		}
		return
	}
	s.opts.Tap.show(Received, frame)
	s.message(msg, nil)
}

func (s *server) message(msg jsonrpc.Message, b *batch) {
	switch {
	case msg.IsRequest():
		s.request(msg, b)
	case msg.IsNotification():
		s.notification(msg)
	default:
		s.response(msg)
	}
}

// malformed returns the answer to a frame that is no message, nil for none. One that was meant as a response is not
// answered: its id is that of a question of this side, which fails.
func (s *server) malformed(frame []byte, id jsonrpc.ID, e *mcp.Error) []byte {
	if e.Code == jsonrpc.CodeParse || rawjson.Lookup(frame, "method") != nil || rawjson.Lookup(frame, "result") == nil && rawjson.Lookup(frame, "error") == nil {
		return s.refusal(id, e)
	}
	s.response(jsonrpc.Message{ID: id, Error: e})
	return nil
}

// refusal is the answer to what is no message. Without an id there is one only where the schema has it.
func (s *server) refusal(id jsonrpc.ID, e *mcp.Error) []byte {
	if n, log := s.strays.note(); log {
		s.logger.Warn("an unusable message was received", "err", e, "count", n)
	}
	if ss := s.legacySession(); id.IsZero() && ss != nil && ss.revision < mcp.Revision20251125 {
		return nil
	}
	return jsonrpc.AppendError(nil, id, e)
}

func (s *server) refuseFrame(id jsonrpc.ID, e *mcp.Error) {
	if answer := s.refusal(id, e); answer != nil {
		s.write(answer)
	}
}

func (s *server) legacySession() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// request admits a request and starts it.
func (s *server) request(msg jsonrpc.Message, b *batch) {
	c := &call{id: msg.ID, server: s, batch: b}
	c.req = mcp.Request{Method: msg.Method, Params: msg.Params, Principal: s.opts.Principal, Peer: c}
	c.req.Meta = s.meta.find(msg.Params)
	if refused := s.admit(c); refused != nil {
		c.send(jsonrpc.AppendError(nil, msg.ID, refused))
		return
	}
	s.dispatch(c)
}

// admit decides the request's era, fills it and enters it among the calls in flight.
func (s *server) admit(c *call) *mcp.Error {
	fields := s.meta.read(c.req.Meta)
	if refused := s.choose(c, fields); refused != nil {
		return refused
	}
	refused := c.era.request(&c.req, fields)
	if refused == nil {
		refused = s.enter(c)
	}
	if o, ok := c.era.(opening); ok && refused != nil {
		s.discard(o.session)
	}
	return refused
}

// choose finds the era in which a request is spoken: a version in its _meta is modern, initialize opens a session.
func (s *server) choose(c *call, fields metaFields) *mcp.Error {
	ss := s.legacySession()
	switch {
	case fields.version != nil && !(ss != nil && string(fields.version) == `"`+string(ss.revision)+`"`):
		c.era = s.modern
	case ss != nil:
		c.era = ss
	case c.req.Method == mcp.MethodInitialize:
		return s.open(c)
	case c.req.Method == mcp.MethodPing:
		c.era = &session{server: s, revision: mcp.LatestLegacyRevision}
	default:
		c.era = s.modern
	}
	return nil
}

// enter is where calls begin; done is where they end.
func (s *server) enter(c *call) *mcp.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return mcp.Errorf(jsonrpc.CodeInternal, "%s", s.over)
	}
	if _, taken := s.calls[c.id]; taken {
		s.logger.Warn("a request has the id of another one in flight and is not served", "id", c.id.String(), "method", c.req.Method)
		return mcp.Errorf(jsonrpc.CodeInvalidRequest, "id %s is in use by a request in flight", c.id)
	}
	if len(s.calls) >= s.opts.MaxConcurrent {
		return mcp.Errorf(jsonrpc.CodeInternal, "more than %d requests are in flight: wait for responses and try again", s.opts.MaxConcurrent)
	}
	c.ctx, c.cancel = context.WithCancelCause(s.values) // end cancels what is in calls
	s.calls[c.id] = c
	s.busy.Add(1)
	return nil
}

// leave gives the call's id free: from its response on the client may use it again.
func (s *server) leave(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c.id)
	c.left = true
}

func (s *server) done(c *call) {
	if !c.left {
		s.leave(c)
	}
	c.cancel(nil)
	s.busy.Done()
}

func (s *server) notification(msg jsonrpc.Message) {
	switch msg.Method {
	case mcp.NotificationCancelled:
		s.cancelCall(msg.Params)
	case mcp.NotificationInitialized:
		if ss := s.legacySession(); ss != nil {
			ss.begin()
		}
	default:
		s.notify(msg)
	}
}

// notify passes a client's notification to a handler that takes them.
func (s *server) notify(msg jsonrpc.Message) {
	h, ok := s.handler.(mcp.NotificationHandler)
	if !ok {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.logger.Error("the handler of a notification panicked", "method", msg.Method, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	h.NotifyMCP(s.base, mcp.Notification{Method: msg.Method, Params: msg.Params})
}

// cancelCall ends a call: its context with the client's reason, and its right to an answer.
func (s *server) cancelCall(params []byte) {
	id, err := jsonrpc.ParseID(rawjson.Lookup(params, "requestId"))
	if err != nil {
		return
	}
	s.mu.Lock()
	c := s.calls[id]
	s.mu.Unlock()
	if c == nil {
		return
	}
	if _, initialize := c.era.(opening); initialize {
		return // it cannot be cancelled
	}
	reason, _ := rawjson.String(rawjson.Lookup(params, "reason"))
	c.cancel(&cancelError{reason})
}

// cancelError is the cause of a context whose client cancelled the request.
type cancelError struct{ reason string }

func (e *cancelError) Error() string {
	if e.reason == "" {
		return errCancelled.Error()
	}
	return errCancelled.Error() + ": " + e.reason
}

func (e *cancelError) Is(target error) bool {
	return target == errCancelled || target == context.Canceled
}

func (s *server) response(msg jsonrpc.Message) {
	if ss := s.legacySession(); ss != nil && ss.answer(msg) {
		return
	}
	if n, log := s.strays.note(); log {
		s.logger.Warn("a response to nothing was received", "id", msg.ID.String(), "count", n)
	}
}
