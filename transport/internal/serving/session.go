package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// session is the state that the handshake of a legacy client opened: identity, capabilities and
// log level of the client, its subscriptions, and the questions that it has not answered yet.
type session struct {
	SessionState
	edge         *edge
	out          Writer          // writes frames that belong to no call
	base         context.Context // parent of subscriptions
	wg           *sync.WaitGroup // counts the goroutines of subscriptions
	principal    mcp.Principal
	discard      func()        // closes the session if initialize fails, so that the client may try again; nil later
	greeted      chan struct{} // closed when initialize has been answered; nil if no request can overtake it
	tasks        taskState
	watchesLists bool // subscribes to list changes during the handshake

	mu          sync.Mutex
	closed      bool
	offered     *mcp.ServerCapabilities // result of initialize; nil if another process has sent it
	logLevel    mcp.LoggingLevel
	cancelLists context.CancelFunc       // ends the subscription to list changes
	lists       *subscription            // subscription to list changes, from initialize on
	resources   map[string]*subscription // subscriptions to resources, by URI
	questions   map[jsonrpc.ID]chan jsonrpc.Message
	lastID      int64
}

// SessionState is the outcome of a legacy handshake. Later revisions send the same facts with
// every request.
type SessionState struct {
	Revision     mcp.Revision
	Capabilities json.RawMessage // of the client
	ClientInfo   json.RawMessage // unverified, for display only; nil if the client sent none
}

// readInitialize parses the params of initialize and chooses the revision of the session.
func (e *edge) readInitialize(params []byte) (st SessionState, refused *mcp.Error) {
	var p struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ClientInfo      json.RawMessage `json:"clientInfo"`
	}
	if err := mcp.Decode(params, &p); err != nil || p.ProtocolVersion == "" {
		return st, mcp.InvalidParams("initialize needs protocolVersion, capabilities and clientInfo")
	}
	revision := e.chooseRevision(mcp.Revision(p.ProtocolVersion))
	if revision == "" {
		return st, refuseHandshake(p.ProtocolVersion, e.opts.Revisions)
	}
	// Drop capabilities that the revision does not have.
	known := mcpwire.AdaptParams(revision, mcpwire.MethodInitialize, params)
	capabilities := mcpwire.WithoutTasksCapability(rawjson.Lookup(known, "capabilities"))
	return SessionState{revision, capabilities, p.ClientInfo}, nil
}

// refuseHandshake returns the error for an initialize request that asks for a revision which the
// edge does not speak. Its message names the revisions, because legacy clients do not read the
// data.
func refuseHandshake(asked string, revisions []mcp.Revision) *mcp.Error {
	refused := mcpwire.UnsupportedVersion(asked, revisions)
	refused.Message = fmt.Sprintf("%s %q: this server speaks %v", refused.Message, asked, revisions)
	return refused
}

func newSession(e *edge, st SessionState) *session {
	return &session{edge: e, SessionState: st, logLevel: mcp.LevelInfo}
}

// openSession opens a session for the initialize request c.
func (s *server) openSession(c *call) *mcp.Error {
	st, refused := s.readInitialize(c.req.Params)
	if refused != nil {
		return refused
	}
	ss := newSession(s.edge, st)
	ss.out, ss.base, ss.wg, ss.principal, ss.watchesLists = s, s.base, &s.wg, s.opts.Principal, true
	ss.discard = func() { s.discardSession(ss) }
	ss.greeted = make(chan struct{})
	s.session.Store(ss)
	c.era = initializing{ss}
	return nil
}

// awaitGreeting waits until initialize has been answered, so that the answers to requests sent
// right behind it follow its own.
func (ss *session) awaitGreeting(ctx context.Context) {
	select {
	case <-ss.greeted:
		return
	default:
	}
	if ss.greeted == nil {
		return
	}
	select {
	case <-ss.greeted:
	case <-ctx.Done():
	}
}

// discardSession closes the session if initialize fails, so that the client may try again.
func (s *server) discardSession(ss *session) {
	s.session.CompareAndSwap(ss, nil)
	ss.endSession()
}

// chooseRevision returns the requested revision if the edge speaks it, otherwise the newest
// legacy revision, or "" if the edge speaks none.
func (e *edge) chooseRevision(asked mcp.Revision) mcp.Revision {
	if !asked.Modern() && slices.Contains(e.opts.Revisions, asked) {
		return asked
	}
	for _, r := range e.opts.Revisions {
		if !r.Modern() {
			return r
		}
	}
	return ""
}

// initializing is the era of the initialize request. It passes the request to the handler as
// server/discover.
type initializing struct{ *session }

// answerOwn subscribes to list changes before the client can cause one. The handler answers the
// request itself.
func (o initializing) answerOwn(c *call) (*mcp.Result, error, bool) {
	const subscribeTimeout = time.Second // if the handler is slower, the client can miss the first changes
	if !o.watchesLists {
		return nil, nil, false
	}
	timer := time.NewTimer(subscribeTimeout)
	defer timer.Stop()
	select {
	case <-o.watchLists():
	case <-timer.C:
	case <-c.ctx.Done():
	}
	return nil, nil, false
}

func (o initializing) fillRequest(r *mcp.Request, f metaFields) *mcp.Error {
	o.fillIdentity(r)
	r.Method, r.Params = mcp.MethodDiscover, nil
	return f.setProgressToken(r)
}

func (o initializing) appendResult(dst []byte, c *call, res *mcp.Result) ([]byte, error) {
	raw, err := frames.AppendResult(nil, res)
	if err != nil {
		return dst, err
	}
	info := res.ServerInfo
	if info == nil {
		if info = rawjson.Lookup(rawjson.Lookup(raw, "_meta"), mcpwire.MetaServerInfo); info == nil {
			info = json.RawMessage(`{"name":"unknown","version":"unknown"}`)
		}
	}
	capabilities := o.offerTasks(frames.OrEmptyObject(rawjson.Lookup(raw, "capabilities")))
	if err := o.storeCapabilities(capabilities); err != nil {
		return dst, err
	}
	out := append([]byte(`{"protocolVersion":"`), o.Revision...)
	out = append(append(out, `","capabilities":`...), capabilities...)
	out = append(append(out, `,"serverInfo":`...), info...)
	if instructions := rawjson.Lookup(raw, "instructions"); instructions != nil {
		out = append(append(out, `,"instructions":`...), instructions...)
	}
	out = mcpwire.AdaptResult(o.Revision, mcpwire.MethodInitialize, append(out, '}'))
	return jsonrpc.AppendResult(dst, c.id, out), nil
}

// storeCapabilities stores the capabilities that initialize offers.
func (ss *session) storeCapabilities(capabilities []byte) error {
	offers := new(mcp.ServerCapabilities)
	if err := mcp.Decode(capabilities, offers); err != nil {
		return err
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.offered = offers
	return nil
}

func (o initializing) encodeError(r *mcp.Request, err error) (*mcp.Result, *mcp.Error) {
	o.discard()
	return o.session.encodeError(r, err)
}

func (ss *session) currentLevel() mcp.LoggingLevel {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.logLevel
}

func (ss *session) setLevel(params []byte) *mcp.Error {
	level, _ := rawjson.String(rawjson.Lookup(params, "level"))
	if mcp.LoggingLevel(level).Severity() < 0 {
		return mcp.InvalidParams("%q is not a log level: use one of %v", level, mcpwire.LoggingLevels())
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.logLevel = mcp.LoggingLevel(level)
	return nil
}

// endSession ends the subscriptions and fails the questions.
func (ss *session) endSession() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.closed = true
	if ss.cancelLists != nil {
		ss.cancelLists()
	}
	for _, l := range ss.resources {
		l.cancel()
	}
	for id, answer := range ss.questions {
		close(answer)
		delete(ss.questions, id)
	}
}

// askClient sends a question of call c to the client and waits for the answer, up to AskTimeout.
func (ss *session) askClient(ctx context.Context, c *call, q mcp.InputRequest) (json.RawMessage, error) {
	id, answer, err := ss.registerQuestion()
	if err != nil {
		return nil, err
	}
	defer ss.forgetQuestion(id)
	if err := c.out.Write(jsonrpc.AppendRequest(nil, id, q.Method, ss.adaptQuestion(id, q))); err != nil {
		return nil, err
	}
	timer := time.NewTimer(ss.edge.opts.AskTimeout)
	defer timer.Stop()
	select {
	case msg, isAnswered := <-answer:
		if !isAnswered {
			return nil, &unansweredError{fmt.Sprintf("the client did not answer %s: %s", q.Method, errSessionOver)}
		}
		if msg.Error != nil {
			return nil, &refusedQuestionError{unansweredError{fmt.Sprintf("the client refused %s: %s", q.Method, msg.Error.Message)}}
		}
		return mcpwire.AdaptAnswer(ss.Revision, q, msg.Result), nil
	case <-ctx.Done():
		cause, reason := context.Cause(ctx), "the request that asked is over"
		if errors.Is(cause, errTaskOver) {
			reason = cause.Error()
		}
		ss.withdrawQuestion(c, id, reason)
		return nil, cause
	case <-timer.C:
		ss.withdrawQuestion(c, id, "nobody answered in time")
		return nil, &unansweredError{fmt.Sprintf("the client did not answer %s within %v", q.Method, ss.edge.opts.AskTimeout)}
	}
}

// unansweredError says why a question has no answer. It is sent to the client and its model.
type unansweredError struct{ reason string }

func (e *unansweredError) Error() string { return e.reason }

// refusedQuestionError is the unansweredError of a question that the client has answered
// with an error.
type refusedQuestionError struct{ unansweredError }

func (e *refusedQuestionError) Unwrap() error { return &e.unansweredError }

var errSessionOver = errors.New("the session is over")

func (ss *session) registerQuestion() (jsonrpc.ID, chan jsonrpc.Message, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return jsonrpc.ID{}, nil, errSessionOver
	}
	ss.lastID++
	id := jsonrpc.IntID(ss.lastID)
	if ss.edge.idPrefix != "" {
		id, _ = jsonrpc.ParseID(rawjson.AppendString(nil, ss.edge.idPrefix+"-"+strconv.FormatInt(ss.lastID, 10))) // a string is an id
	}
	answer := make(chan jsonrpc.Message, 1)
	if ss.questions == nil {
		ss.questions = map[jsonrpc.ID]chan jsonrpc.Message{}
	}
	ss.questions[id] = answer
	return id, answer, nil
}

// adaptQuestion returns the params of a question in the form of the session's revision.
func (ss *session) adaptQuestion(id jsonrpc.ID, q mcp.InputRequest) json.RawMessage {
	params := q.Params
	if q.Method == mcp.MethodElicit && string(rawjson.Lookup(params, "mode")) == `"url"` && rawjson.Lookup(params, "elicitationId") == nil {
		name := "elicitation-" + strings.Trim(id.String(), `"`)
		params = rawjson.Set(params, "elicitationId", strconv.AppendQuote(nil, name))
	}
	return mcpwire.AdaptParams(ss.Revision, q.Method, params)
}

func (ss *session) forgetQuestion(id jsonrpc.ID) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.questions, id)
}

func (ss *session) withdrawQuestion(c *call, id jsonrpc.ID, reason string) {
	params, err := mcp.Encode(mcpwire.CancelledParams{RequestID: id.Append(nil), Reason: reason})
	if err == nil {
		_ = c.out.Write(jsonrpc.AppendNotification(nil, mcpwire.NotificationCancelled, params))
	}
}

// deliverAnswer passes a response to the question that it answers. It reports false if no
// question has its id.
func (ss *session) deliverAnswer(msg jsonrpc.Message) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	id := frames.UnquoteID(msg.ID)
	answer, ok := ss.questions[id]
	if !ok {
		return false
	}
	delete(ss.questions, id)
	answer <- msg
	return true
}
