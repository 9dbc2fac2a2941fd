package transport

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// session is what a legacy handshake opened: the client's identity and capabilities, its log level, its subscriptions,
// and the questions it has been asked.
type session struct {
	SessionState
	edge      *edge
	out       Writer          // takes what belongs to no call
	eager     bool            // listens to changes of lists from the handshake on
	base      context.Context // of its subscriptions
	wg        *sync.WaitGroup // of their goroutines
	principal mcp.Principal
	discard   func() // closes it because initialize has failed: the client may try again
	place     string // goes into the ids of its questions, where other processes may ask in the same session; else empty

	mu        sync.Mutex
	offers    *mcp.ServerCapabilities // what initialize told the client; nil where that is not known here
	logLevel  mcp.LoggingLevel
	listening context.CancelFunc   // ends lists
	lists     *listener            // to changes of lists; from initialize on
	resources map[string]*listener // by URI
	questions map[jsonrpc.ID]chan jsonrpc.Message
	lastID    int64
	closed    bool
}

// SessionState is what a legacy session is from its handshake on: what is said with every request in later revisions.
type SessionState struct {
	Revision     mcp.Revision
	Capabilities mcp.Object // of the client
	ClientInfo   mcp.Object // for display only; nil where the client does not name itself
}

// handshake reads the params of initialize.
func (e *edge) handshake(params []byte) (st SessionState, refused *mcp.Error) {
	var p struct {
		ProtocolVersion string     `json:"protocolVersion"`
		Capabilities    mcp.Object `json:"capabilities"`
		ClientInfo      mcp.Object `json:"clientInfo"`
	}
	if err := mcp.Decode(params, &p); err != nil || p.ProtocolVersion == "" {
		return st, mcp.InvalidParams("initialize needs protocolVersion, capabilities and clientInfo")
	}
	revision := e.negotiate(mcp.Revision(p.ProtocolVersion))
	if revision == "" {
		refused = mcp.UnsupportedVersion(p.ProtocolVersion, e.opts.Revisions)
		refused.Message = fmt.Sprintf("%s %q: this server speaks %v", refused.Message, p.ProtocolVersion, e.opts.Revisions)
		return st, refused
	}
	// What a revision does not have, its clients cannot declare.
	known := mcpwire.AdaptParams(revision, mcp.MethodInitialize, params)
	return SessionState{revision, rawjson.Lookup(known, "capabilities"), p.ClientInfo}, nil
}

func newSession(e *edge, st SessionState) *session {
	return &session{edge: e, SessionState: st, logLevel: mcp.LevelInfo}
}

// open begins a session with the initialize request that c is, unless there is one.
func (s *server) open(c *call) *mcp.Error {
	st, refused := s.handshake(c.req.Params)
	if refused != nil {
		return refused
	}
	ss := newSession(s.edge, st)
	ss.out, ss.base, ss.wg, ss.principal, ss.eager = s, s.base, &s.wg, s.opts.Principal, true
	ss.discard = func() { s.discard(ss) }
	s.mu.Lock()
	s.session = ss
	s.mu.Unlock()
	c.era = opening{ss}
	return nil
}

// discard closes a session whose initialize has failed: the client may try again.
func (s *server) discard(ss *session) {
	s.mu.Lock()
	if s.session == ss {
		s.session = nil
	}
	s.mu.Unlock()
	ss.end()
}

// negotiate returns the revision of a legacy session: the one asked for where it is spoken, else the newest.
func (e *edge) negotiate(asked mcp.Revision) mcp.Revision {
	if !asked.Modern() && speaks(e.opts.Revisions, asked) {
		return asked
	}
	for _, r := range e.opts.Revisions {
		if !r.Modern() {
			return r
		}
	}
	return ""
}

// opening is the session while it answers initialize: the request goes to the handler as server/discover.
type opening struct{ *session }

// own listens to changes of lists before the client can cause one. The handler answers the rest.
func (o opening) own(c *call) (*mcp.Result, error, bool) {
	const patience = time.Second // a handler that takes longer may miss the first changes
	if !o.eager {
		return nil, nil, false
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-o.watchLists():
	case <-timer.C:
	case <-c.ctx.Done():
	}
	return nil, nil, false
}

func (o opening) request(r *mcp.Request, f metaFields) *mcp.Error {
	o.fill(r)
	r.Method, r.Params = mcp.MethodDiscover, nil
	return f.progress(r)
}

func (o opening) appendResult(dst []byte, c *call, res *mcp.Result) ([]byte, error) {
	raw, err := rawBody(nil, res)
	if err != nil {
		return dst, err
	}
	info := res.ServerInfo
	if info == nil {
		if info = rawjson.Lookup(rawjson.Lookup(raw, "_meta"), mcp.MetaServerInfo); info == nil {
			info = mcp.Object(`{"name":"unknown","version":"unknown"}`)
		}
	}
	capabilities := orEmpty(rawjson.Lookup(raw, "capabilities"))
	if err := o.told(capabilities); err != nil {
		return dst, err
	}
	out := append([]byte(`{"protocolVersion":"`), o.Revision...)
	out = append(append(out, `","capabilities":`...), capabilities...)
	out = append(append(out, `,"serverInfo":`...), info...)
	if instructions := rawjson.Lookup(raw, "instructions"); instructions != nil {
		out = append(append(out, `,"instructions":`...), instructions...)
	}
	out = mcpwire.AdaptResult(o.Revision, mcp.MethodInitialize, append(out, '}'))
	return jsonrpc.AppendResult(dst, c.id, out), nil
}

// told remembers what the server offers.
func (ss *session) told(capabilities []byte) error {
	offers := new(mcp.ServerCapabilities)
	if err := mcp.Decode(capabilities, offers); err != nil {
		return err
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.offers = offers
	return nil
}

func (o opening) refuse(r *mcp.Request, err error) (*mcp.Result, *mcp.Error) {
	o.discard()
	return o.session.refuse(r, err)
}

func (ss *session) level() mcp.LoggingLevel {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.logLevel
}

func (ss *session) setLevel(params []byte) *mcp.Error {
	level, _ := rawjson.String(rawjson.Lookup(params, "level"))
	if mcp.LoggingLevel(level).Severity() < 0 {
		return mcp.InvalidParams("%q is no log level: use one of %v", level, mcp.LoggingLevels)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.logLevel = mcp.LoggingLevel(level)
	return nil
}

// end stops the session's subscriptions and fails its questions.
func (ss *session) end() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.closed = true
	if ss.listening != nil {
		ss.listening()
	}
	for _, l := range ss.resources {
		l.cancel()
	}
	for id, answer := range ss.questions {
		answer <- jsonrpc.Message{ID: id, Error: mcp.Errorf(jsonrpc.CodeInternal, "%s", errSessionOver)}
		delete(ss.questions, id)
	}
}

// ask sends the client a question of a call, and waits for its answer.
func (ss *session) ask(ctx context.Context, c *call, q mcp.InputRequest) (mcp.Object, error) {
	id, answer, err := ss.question()
	if err != nil {
		return nil, err
	}
	defer ss.forget(id)
	if err := c.out.Write(jsonrpc.AppendRequest(nil, id, q.Method, ss.questionParams(id, q))); err != nil {
		return nil, err
	}
	timer := time.NewTimer(ss.edge.opts.AskTimeout)
	defer timer.Stop()
	select {
	case msg := <-answer:
		if msg.Error != nil {
			return nil, &askError{fmt.Sprintf("the client refused %s: %s", q.Method, msg.Error.Message)}
		}
		return mcpwire.AdaptAnswer(ss.Revision, q, msg.Result), nil
	case <-ctx.Done():
		ss.withdraw(c, id, "the request that asked is over")
		return nil, context.Cause(ctx)
	case <-timer.C:
		ss.withdraw(c, id, "nobody answered in time")
		return nil, &askError{fmt.Sprintf("the client did not answer %s within %v", q.Method, ss.edge.opts.AskTimeout)}
	}
}

// askError says why a question has no answer: to the client, which knows, and to its model.
type askError struct{ reason string }

func (e *askError) Error() string { return e.reason }

var errSessionOver = errors.New("the session is over")

func (ss *session) question() (jsonrpc.ID, chan jsonrpc.Message, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return jsonrpc.ID{}, nil, errSessionOver
	}
	ss.lastID++
	id := jsonrpc.IntID(ss.lastID)
	if ss.place != "" {
		id = jsonrpc.StringID(ss.place + "-" + strconv.FormatInt(ss.lastID, 10))
	}
	answer := make(chan jsonrpc.Message, 1)
	if ss.questions == nil {
		ss.questions = map[jsonrpc.ID]chan jsonrpc.Message{}
	}
	ss.questions[id] = answer
	return id, answer, nil
}

// questionParams gives a question the form of the session's revision.
func (ss *session) questionParams(id jsonrpc.ID, q mcp.InputRequest) mcp.Object {
	params := q.Params
	if q.Method == mcp.MethodElicit && string(rawjson.Lookup(params, "mode")) == `"url"` && rawjson.Lookup(params, "elicitationId") == nil {
		name := "elicitation-" + strings.Trim(id.String(), `"`)
		params = rawjson.Set(params, "elicitationId", strconv.AppendQuote(nil, name))
	}
	return mcpwire.AdaptParams(ss.Revision, q.Method, params)
}

func (ss *session) forget(id jsonrpc.ID) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.questions, id)
}

func (ss *session) withdraw(c *call, id jsonrpc.ID, reason string) {
	params, err := mcp.Encode(mcp.CancelledParams{RequestID: id.Append(nil), Reason: reason})
	if err == nil {
		_ = c.out.Write(jsonrpc.AppendNotification(nil, mcp.NotificationCancelled, params))
	}
}

// answer takes the response to a question; false if there was none.
func (ss *session) answer(msg jsonrpc.Message) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	id := unquoted(msg.ID)
	answer, ok := ss.questions[id]
	if !ok {
		return false
	}
	delete(ss.questions, id)
	answer <- msg
	return true
}
