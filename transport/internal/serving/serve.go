package serving

import (
	"context"
	"errors"
	"fmt"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Serve answers the requests that come on a connection, in both eras at the same time, until the peer ends it (then the
// error is nil), ctx ends or the connection fails. When ctx ends, calls in flight have DrainTimeout to be answered. Each
// request has a goroutine of its own; Serve waits for them, within DrainTimeout, and closes the connection.
//
// A frame that cannot be used is answered where the protocol has a way to, logged otherwise, and the connection lives.
func Serve(ctx context.Context, conn transport.Conn, h mcp.Handler, opts transport.ServerOptions) error {
	s := newServer(ctx, frames.TapSent(conn, opts.Tap), h, opts)
	s.header, _ = conn.(transport.HeaderConn)
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
	*edge
	conn    transport.Conn
	header  transport.HeaderConn // is the connection, where its frames have header fields
	base    context.Context
	cancel  context.CancelCauseFunc
	values  context.Context // base without its end
	wg      sync.WaitGroup  // goroutines
	calls   inFlight
	strays  frames.UnaddressedCounter
	meta    metaReader // of the reading loop
	work    chan *call // takes a call where a worker is idle
	sweeper *time.Timer
	active  atomic.Bool // since the last sweep

	mu      sync.Mutex
	session *session // of a legacy client; nil before initialize
	over    bool     // nothing is dispatched any more
}

func newServer(ctx context.Context, conn transport.Conn, h mcp.Handler, opts transport.ServerOptions) *server {
	s := &server{edge: newEdge(h, opts), conn: conn, work: make(chan *call)}
	s.calls.most = s.opts.MaxConcurrent
	s.base, s.cancel = context.WithCancelCause(ctx)
	s.values = context.WithoutCancel(ctx)
	s.mu.Lock() // sweep may run before AfterFunc has returned
	defer s.mu.Unlock()
	s.sweeper = time.AfterFunc(workerIdle, s.sweep)
	return s
}

// read is the connection's reading loop.
func (s *server) read() error {
	for {
		frame, err := s.conn.Read()
		switch {
		case errors.Is(err, transport.ErrFrame):
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
	var lost *transport.FrameError
	switch {
	case !errors.As(err, &lost):
		s.refuseFrame(jsonrpc.ID{}, refused)
	case lost.Response:
		s.response(jsonrpc.Message{ID: lost.ID, Error: refused})
	default:
		s.refuseFrame(lost.ID, refused)
	}
}

// Write implements [Writer]: calls of all kinds share the connection.
func (s *server) Write(frame []byte) error {
	err := s.conn.Write(frame)
	if err != nil && !errors.Is(err, mcp.ErrClosed) {
		s.logger.Warn("a message could not be sent", "err", err)
	}
	return err
}

// TryWrite implements [transport.TryWriter] as far as the connection does.
func (s *server) TryWrite(frame []byte) bool {
	w, ok := s.conn.(transport.TryWriter)
	return ok && w.TryWrite(frame)
}

// frame takes one frame apart and acts on it. It never blocks on a handler.
func (s *server) frame(frame []byte) {
	if jsonrpc.IsBatch(frame) {
		s.batch(frame)
		return
	}
	msg, err := s.parser.Parse(frame)
	if err != nil {
		frames.Show(s.opts.Tap, transport.Stray, frame, nil)
		if err.(*mcp.Error).Code == jsonrpc.CodeParse {
			msg.ID = jsonrpc.ID{} // a guess is no id to answer
		}
		if answer := s.malformed(frame, msg.ID, err.(*mcp.Error)); answer != nil {
			s.Write(answer)
		}
		return
	}
	frames.Show(s.opts.Tap, transport.Received, frame, nil)
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
	s.unusable(e)
	if ss := s.legacySession(); id.IsZero() && ss != nil && ss.Revision < mcp.Revision20251125 {
		return nil
	}
	return jsonrpc.AppendError(nil, id, e)
}

func (s *server) refuseFrame(id jsonrpc.ID, e *mcp.Error) {
	if answer := s.refusal(id, e); answer != nil {
		s.Write(answer)
	}
}

func (s *server) legacySession() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// request admits a request and starts it.
func (s *server) request(msg jsonrpc.Message, b *batch) {
	c := &call{id: msg.ID, edge: s.edge, out: s, batch: b}
	c.req = mcp.Request{Method: msg.Method, Params: msg.Params, Principal: s.opts.Principal, Peer: c}
	c.req.Meta = s.meta.find(msg.Params)
	if s.header != nil {
		c.req.Header = s.header.Header()
	}
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
		refused = s.calls.enter(s.values, c)
	}
	if o, ok := c.era.(opening); ok && refused != nil {
		o.discard()
	}
	return refused
}

// choose finds the era in which a request is spoken: a version in its _meta is modern, initialize opens a session.
func (s *server) choose(c *call, fields metaFields) *mcp.Error {
	ss := s.legacySession()
	switch {
	case fields.version != nil && !(ss != nil && string(fields.version) == `"`+string(ss.Revision)+`"`):
		c.era = s.modern
	case ss != nil:
		c.era = ss
	case c.req.Method == mcp.MethodInitialize:
		return s.open(c)
	case c.req.Method == mcp.MethodPing:
		c.era = newSession(s.edge, SessionState{Revision: mcp.LatestLegacyRevision})
	default:
		c.era = s.modern
	}
	return nil
}

func (s *server) notification(msg jsonrpc.Message) {
	switch msg.Method {
	case mcp.NotificationCancelled:
		if err := s.calls.cancelled(msg.Params); err != nil {
			s.unusable(err)
		}
	case mcp.NotificationInitialized:
		if ss := s.legacySession(); ss != nil {
			ss.begin()
		}
	default:
		if _, known := frames.MethodNames[msg.Method]; known && !strings.HasPrefix(msg.Method, "notifications/") {
			s.unusable(fmt.Errorf("%s without an id, which nobody can be answered", msg.Method))
			return
		}
		s.notify(s.base, msg)
	}
}

// unusable counts what cannot be used and answered to nobody, and logs it.
func (s *server) unusable(err error) {
	if n, log := s.strays.Add(); log {
		s.logger.Warn("an unusable message was received", "err", err, "count", n)
	}
}

func (s *server) response(msg jsonrpc.Message) {
	if ss := s.legacySession(); ss != nil && ss.answer(msg) {
		return
	}
	if n, log := s.strays.Add(); log {
		s.logger.Warn("a response to nothing was received", "id", msg.ID.String(), "count", n)
	}
}
