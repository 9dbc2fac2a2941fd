package serving

import (
	"context"
	"crypto/rand"
	"fmt"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/transport"
	"maps"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Edge serves requests that are carried separately, each with a way back of its own, as HTTP does. What shares one channel is
// served by [Serve]. An Edge is safe for concurrent use.
type Edge struct {
	edge
	place string // of questions: another process must not take their answers for those to its own
}

// NewEdge returns the edge of h. MaxConcurrent bounds the requests in flight of one legacy session; Principal is not used.
func NewEdge(h mcp.Handler, opts transport.ServerOptions) *Edge {
	return &Edge{*newEdge(h, opts), rand.Text()[:10]}
}

// Parse reads one frame; see [jsonrpc.Parser.Parse].
func (e *Edge) Parse(frame []byte) (jsonrpc.Message, error) { return e.parser.Parse(frame) }

// Revisions are those that the edge speaks.
func (e *Edge) Revisions() []mcp.Revision { return e.opts.Revisions }

// Incoming is a request with what its carrier knows of it.
type Incoming struct {
	jsonrpc.Message
	Principal mcp.Principal
	Header    map[string][]string // canonical names; not nil where the carrier has header fields
	// Out takes what comes before the response: notifications, and the questions of a legacy session.
	Out Writer
}

// Outgoing is what a request comes to.
type Outgoing struct {
	// Frame is the response; nil where nobody waits for it any more: the request was cancelled, or its ctx has ended.
	Frame []byte
	// Error is the error that Frame holds, nil for a result.
	Error *mcp.Error
}

func refusal(id jsonrpc.ID, e *mcp.Error) Outgoing {
	return Outgoing{jsonrpc.AppendError(nil, id, e), e}
}

// Serve serves a request of the modern era, until it is settled or ctx ends: that cancels it.
func (e *Edge) Serve(ctx context.Context, in *Incoming) Outgoing {
	c, refused := e.admit(in)
	if refused != nil {
		return refusal(in.ID, refused)
	}
	c.ctx = ctx
	frame, refused := c.answer()
	return Outgoing{frame, refused}
}

// admit is not part of Serve, on whose stack a subscription waits.
func (e *Edge) admit(in *Incoming) (*call, *mcp.Error) {
	c := e.call(in, e.modern)
	return c, c.era.request(&c.req, readMeta(c.req.Meta))
}

func (e *Edge) call(in *Incoming, speak era) *call {
	c := &call{id: in.ID, edge: &e.edge, out: in.Out, era: speak}
	c.req = mcp.Request{
		Method: in.Method, Params: in.Params, Principal: in.Principal, Header: in.Header, Peer: c,
		Meta: rawjson.Lookup(in.Params, "_meta"),
	}
	return c
}

// Notify passes a client's notification to a handler that takes them.
func (e *Edge) Notify(ctx context.Context, msg jsonrpc.Message) { e.notify(ctx, msg) }

// Shutdown is the cause with which a carrier ends the ctx of a subscription that it wants to end well: with a result.
func Shutdown() error { return errShutdown }

// Session is a legacy session whose messages are carried separately.
type Session struct {
	session
	edge  *Edge
	calls inFlight
	stop  context.CancelCauseFunc
	work  sync.WaitGroup
}

// NewSession returns the session of a handshake that is over, here or elsewhere. What belongs to no call goes to out. The
// session lives until End.
func (e *Edge) NewSession(st SessionState, p mcp.Principal, out Writer) *Session {
	s := &Session{session: session{edge: &e.edge, SessionState: st, logLevel: mcp.LevelInfo, principal: p, out: out, place: e.place}, edge: e}
	s.calls.most = e.opts.MaxConcurrent
	s.base, s.stop = context.WithCancelCause(context.Background())
	s.wg = &s.work
	return s
}

// Initialize answers initialize. The session is nil where it was refused.
func (e *Edge) Initialize(ctx context.Context, in *Incoming, out Writer) (Outgoing, *Session) {
	st, refused := e.handshake(in.Params)
	if refused != nil {
		return refusal(in.ID, refused), nil
	}
	st.Capabilities, st.ClientInfo = kept(st.Capabilities), kept(st.ClientInfo)
	s := e.NewSession(st, in.Principal, out)
	s.discard = func() { s.End(errSessionOver) }
	answer := s.serve(ctx, in, opening{&s.session})
	if answer.Error != nil || answer.Frame == nil {
		s.discard()
		return answer, nil
	}
	return answer, s
}

// kept copies what must outlive its frame.
func kept(raw mcp.Object) mcp.Object { return append(mcp.Object(nil), raw...) }

// Serve serves a request of the session. The end of ctx does not cancel it: the client's word does, and the session's end.
func (s *Session) Serve(ctx context.Context, in *Incoming) Outgoing {
	return s.serve(ctx, in, &s.session)
}

func (s *Session) serve(ctx context.Context, in *Incoming, speak era) Outgoing {
	c := s.edge.call(in, speak)
	refused := speak.request(&c.req, readMeta(c.req.Meta))
	if refused == nil {
		refused = s.calls.enter(context.WithoutCancel(ctx), c)
	}
	if refused != nil {
		return refusal(in.ID, refused)
	}
	defer s.calls.done(c)
	frame, refused := c.answer()
	return Outgoing{frame, refused}
}

// Receive takes a message that is no request. It reports false for a response to nothing.
func (s *Session) Receive(msg jsonrpc.Message) bool {
	switch {
	case msg.IsResponse():
		return s.answer(msg)
	case msg.Method == mcp.NotificationCancelled:
		if err := s.calls.cancelled(msg.Params); err != nil {
			s.edge.logger.Warn("an unusable message was received", "err", err)
		}
	case msg.Method != mcp.NotificationInitialized:
		s.edge.notify(s.base, msg)
	}
	return true
}

// Busy reports whether calls are in flight.
func (s *Session) Busy() bool {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	return s.calls.count() > 0
}

// Subscriptions returns the URIs of the resources that the client has subscribed to, in order.
func (s *Session) Subscriptions() []string {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	return slices.Sorted(maps.Keys(s.resources))
}

// Subscribe makes the subscriptions those that the client has made elsewhere. What the handler does not agree to any more is
// left out.
func (s *Session) Subscribe(ctx context.Context, uris []string) {
	for _, uri := range s.Subscriptions() {
		if !slices.Contains(uris, uri) {
			s.unsubscribe(uri)
		}
	}
	for _, uri := range uris {
		if params, err := mcp.Encode(mcp.ReadResourceParams{URI: uri}); err == nil {
			_ = s.subscribe(ctx, params, nil) // a URI that is gone has no changes
		}
	}
}

// LogLevel returns the level that the client has set.
func (s *Session) LogLevel() mcp.LoggingLevel { return s.level() }

// SetLogLevel sets it, where it was set elsewhere.
func (s *Session) SetLogLevel(l mcp.LoggingLevel) {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	s.logLevel = l
}

// Cancel ends the contexts of the session's calls with a cause. Where that is an [mcp.Error] it is what they are answered with,
// if their handlers say no more than that.
func (s *Session) Cancel(cause error) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.each(func(c *call) { c.cancel(cause) })
}

// End cancels everything that runs for the session, with its cause.
func (s *Session) End(cause error) {
	s.end()
	s.calls.end(fmt.Errorf("%w: %w", mcp.ErrConnection, cause))
	s.stop(cause)
}

// Wait returns when the goroutines and calls of a session that has ended have ended too, or reports false at the drain
// timeout.
func (s *Session) Wait() bool {
	limit := s.edge.opts.DrainTimeout
	return timeout.Wait(&s.calls.busy, limit) && timeout.Wait(&s.work, limit)
}
