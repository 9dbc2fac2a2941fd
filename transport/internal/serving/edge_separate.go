package serving

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// Edge serves requests that arrive one by one and have a response channel each, as over HTTP. Use
// [Serve] if all messages share one channel. An Edge is safe for concurrent use.
type Edge struct {
	edge
}

// NewEdge returns an edge that calls h. opts.MaxConcurrent limits the calls in flight of one
// legacy session; opts.Principal is ignored, because each request has its own.
func NewEdge(h mcp.Handler, opts transport.ServerOptions) *Edge {
	e := &Edge{*newEdge(h, opts)}
	e.idPrefix = rand.Text()[:instanceLength]
	return e
}

// Instance returns a name that no edge of another process has. The ids of this edge's questions are
// strings that begin with it and a hyphen.
func (e *Edge) Instance() string { return e.idPrefix }

// InstanceOfQuestion returns the instance that has asked the question with an id. ok is false for
// an id of another form.
func InstanceOfQuestion(id jsonrpc.ID) (instance string, ok bool) {
	text, isString := rawjson.String(id.Append(nil))
	instance, number, found := strings.Cut(text, "-")
	return instance, isString && found && number != "" && len(instance) == instanceLength
}

const instanceLength = 10

// Parse parses one frame, as [jsonrpc.Parse] does.
func (e *Edge) Parse(frame []byte) (jsonrpc.Message, error) {
	return jsonrpc.Parse(frame, frames.MethodNames)
}

// Revisions returns the revisions that the edge speaks, newest first.
func (e *Edge) Revisions() []mcp.Revision { return e.opts.Revisions }

// Extensions returns the extensions that the edge understands: the options' extensions, or the
// handler's if the options have none.
func (e *Edge) Extensions() []mcp.Extension { return e.opts.Extensions }

// Incoming is a request and the facts that came with it on the wire.
type Incoming struct {
	jsonrpc.Message
	Principal mcp.Principal
	Header    map[string][]string // canonical names; nil if not over HTTP
	// Out writes the frames that precede the response: notifications, and the questions of a
	// legacy session.
	Out Writer
}

// Outgoing is the outcome of a request.
type Outgoing struct {
	// Frame is the response. It is nil if the client no longer waits for it, because the request
	// was cancelled or its context has ended.
	Frame []byte
	// Error is the error in Frame, or nil if Frame holds a result.
	Error *mcp.Error
}

func newRefusal(id jsonrpc.ID, e *mcp.Error) Outgoing {
	return Outgoing{jsonrpc.AppendError(nil, id, e), e}
}

// Serve serves a modern request. The end of ctx cancels it.
func (e *Edge) Serve(ctx context.Context, in *Incoming) Outgoing {
	c, refused := e.admitRequest(in)
	if refused != nil {
		return newRefusal(in.ID, refused)
	}
	c.ctx = ctx
	frame, refused := c.answerRequest()
	return Outgoing{frame, refused}
}

// admitRequest is separate from Serve to keep the stack small on which a subscription waits.
func (e *Edge) admitRequest(in *Incoming) (*call, *mcp.Error) {
	c := e.newCall(in, e.modern)
	return c, c.era.fillRequest(&c.req, readMeta(c.req.Meta))
}

func (e *edge) newCall(in *Incoming, spoken era) *call {
	c := &call{id: in.ID, edge: e, out: in.Out, era: spoken}
	c.req = mcp.Request{
		Method: in.Method, Params: in.Params, Principal: in.Principal, Header: in.Header, Peer: c,
		Meta: rawjson.Lookup(in.Params, "_meta"),
	}
	return c
}

// Notify passes a client's notification to the handler if the handler takes notifications.
func (e *Edge) Notify(ctx context.Context, msg jsonrpc.Message) { e.passNotification(ctx, msg) }

// Shutdown returns the cause to cancel the context of a subscription with, if the subscription
// should end with a result.
func Shutdown() error { return errShutdown }

// Session is a legacy session over a transport that carries each message separately.
type Session struct {
	session
	calls callTable
	stop  context.CancelCauseFunc
	work  sync.WaitGroup
}

// NewSession returns a session whose handshake is over, possibly in another process. Frames that
// belong to no call are written to out. The caller must call End.
func (e *Edge) NewSession(st SessionState, p mcp.Principal, out Writer) *Session {
	s := &Session{session: session{edge: &e.edge, SessionState: st, logLevel: mcp.LevelInfo, principal: p, out: out}}
	s.calls.limit = e.opts.MaxConcurrent
	s.base, s.stop = context.WithCancelCause(context.Background())
	s.wg = &s.work
	return s
}

// Initialize answers the initialize request and returns the session that it opens, or nil if the
// request failed.
func (e *Edge) Initialize(ctx context.Context, in *Incoming, out Writer) (Outgoing, *Session) {
	st, refused := e.readInitialize(in.Params)
	if refused != nil {
		return newRefusal(in.ID, refused), nil
	}
	st.Capabilities, st.ClientInfo = slices.Clone(st.Capabilities), slices.Clone(st.ClientInfo) // they outlive the frame
	s := e.NewSession(st, in.Principal, out)
	s.discard = func() { s.End(errSessionOver) }
	answer := s.serveIn(ctx, in, initializing{&s.session})
	if answer.Error != nil || answer.Frame == nil {
		s.discard()
		return answer, nil
	}
	s.discard = nil
	return answer, s
}

// Serve serves a request of the session. The end of ctx does not cancel it;
// notifications/cancelled and the end of the session do.
func (s *Session) Serve(ctx context.Context, in *Incoming) Outgoing {
	return s.serveIn(ctx, in, &s.session)
}

func (s *Session) serveIn(ctx context.Context, in *Incoming, e era) Outgoing {
	c := s.edge.newCall(in, e)
	refused := e.fillRequest(&c.req, readMeta(c.req.Meta))
	if refused == nil {
		refused = s.calls.addCall(context.WithoutCancel(ctx), c)
	}
	if refused != nil {
		return newRefusal(in.ID, refused)
	}
	defer s.calls.finishCall(c)
	frame, refused := c.answerRequest()
	return Outgoing{frame, refused}
}

// Receive handles a notification or a response. It reports false for a response that answers no
// question of this session.
func (s *Session) Receive(msg jsonrpc.Message) bool {
	switch {
	case msg.IsResponse():
		return s.deliverAnswer(msg)
	case msg.Method == mcpwire.NotificationCancelled:
		if err := s.calls.handleCancelled(msg.Params); err != nil {
			s.edge.logger.Warn("received an unusable message", "err", err)
		}
	case msg.Method != mcpwire.NotificationInitialized:
		s.edge.passNotification(s.base, msg)
	}
	return true
}

// Busy reports whether the session has calls in flight.
func (s *Session) Busy() bool {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	return s.calls.countCalls() > 0
}

// Subscriptions returns the sorted URIs of the resources that the client has subscribed to.
func (s *Session) Subscriptions() []string {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	return slices.Sorted(maps.Keys(s.resources))
}

// Restored is the outcome of [Session.Subscribe]. A URI to which the session was subscribed before
// is in none of its fields.
type Restored struct {
	Added   []string // URIs that the handler has accepted
	Refused []string // URIs that the handler has refused
	Pending []string // URIs for which the handler has not answered before the context ended
}

// Subscribe adds subscriptions to uris, to which the client has subscribed in another process. It
// ends those to the URIs in last, of the call before, that are not in uris; others may be about to
// begin. The handler is asked for all at once, because it may wait for a server that starts.
func (s *Session) Subscribe(ctx context.Context, last, uris []string) (r Restored) {
	for _, uri := range last {
		if !slices.Contains(uris, uri) {
			s.unsubscribe(uri)
		}
	}
	var started []*subscription
	for _, uri := range uris {
		switch l, refused := s.startSubscription(uri, nil); {
		case refused != nil:
			r.Refused = append(r.Refused, uri)
		case l != nil:
			started = append(started, l)
		}
	}
	for _, l := range started {
		switch refused := s.awaitSubscription(ctx, l); {
		case refused == nil:
			r.Added = append(r.Added, l.uri)
		case ctx.Err() != nil:
			r.Pending = append(r.Pending, l.uri)
		default:
			r.Refused = append(r.Refused, l.uri)
		}
	}
	return r
}

// Go runs f on a goroutine that Wait waits for. ctx ends with the session. If the session has
// ended, f does not run.
func (s *Session) Go(f func(ctx context.Context)) {
	if !s.beginWork() {
		return
	}
	go func() {
		defer s.work.Done()
		f(s.base)
	}()
}

// LogLevel returns the client's log level, info unless it has set one.
func (s *Session) LogLevel() mcp.LoggingLevel { return s.currentLevel() }

// SetLogLevel sets the log level that the client has set in another process.
func (s *Session) SetLogLevel(l mcp.LoggingLevel) {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	s.logLevel = l
}

// Cancel cancels the contexts of the session's calls with cause. If cause is an [mcp.Error], a
// call whose handler returns nothing more specific is answered with it.
func (s *Session) Cancel(cause error) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.forEachCall(func(c *call) { c.lazy.Cancel(cause) })
}

// End ends the session: it cancels its calls and subscriptions with cause and fails its
// questions.
func (s *Session) End(cause error) {
	s.endSession()
	s.calls.cancelAll(fmt.Errorf("%w: %w", mcp.ErrConnection, cause))
	s.stop(cause)
}

// Wait waits until the calls and goroutines of an ended session have ended. It reports false if
// that takes longer than the drain timeout.
func (s *Session) Wait() bool {
	limit := s.edge.opts.DrainTimeout
	return timeout.Wait(&s.calls.running, limit) && timeout.Wait(&s.work, limit)
}
