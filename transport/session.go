package transport

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxSubscriptions bounds the resources that one legacy session may subscribe to.
const maxSubscriptions = 1024

// session is what a legacy handshake opened: the client's identity and capabilities, its log level, its subscriptions,
// and the questions it has been asked.
type session struct {
	server       *server
	revision     mcp.Revision
	capabilities mcp.Object
	clientInfo   mcp.Object

	mu        sync.Mutex
	logLevel  mcp.LoggingLevel
	listening context.CancelFunc            // of the list changes; nil before initialized
	resources map[string]context.CancelFunc // by URI
	questions map[jsonrpc.ID]chan jsonrpc.Message
	lastID    int64
	closed    bool
}

// open begins a session with the initialize request that c is, unless there is one.
func (s *server) open(c *call) *mcp.Error {
	var p struct {
		ProtocolVersion string     `json:"protocolVersion"`
		Capabilities    mcp.Object `json:"capabilities"`
		ClientInfo      mcp.Object `json:"clientInfo"`
	}
	if err := mcp.Decode(c.req.Params, &p); err != nil || p.ProtocolVersion == "" {
		return mcp.InvalidParams("initialize needs protocolVersion, capabilities and clientInfo")
	}
	revision := s.negotiate(mcp.Revision(p.ProtocolVersion))
	if revision == "" {
		return mcp.UnsupportedVersion(p.ProtocolVersion, s.opts.Revisions)
	}
	ss := &session{
		server: s, revision: revision, capabilities: p.Capabilities, clientInfo: p.ClientInfo, logLevel: mcp.LevelInfo,
		resources: map[string]context.CancelFunc{}, questions: map[jsonrpc.ID]chan jsonrpc.Message{},
	}
	s.mu.Lock()
	s.session = ss
	s.mu.Unlock()
	c.era = opening{ss}
	return nil
}

// negotiate returns the revision of a legacy session: the one asked for where it is spoken, else the newest.
func (s *server) negotiate(asked mcp.Revision) mcp.Revision {
	if !asked.Modern() && speaks(s.opts.Revisions, asked) {
		return asked
	}
	for _, r := range s.opts.Revisions {
		if !r.Modern() {
			return r
		}
	}
	return ""
}

// opening is the session while it answers initialize: the request goes to the handler as server/discover.
type opening struct{ *session }

func (o opening) own(*call) (*mcp.Result, error, bool) { return nil, nil, false }

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
	capabilities := rawjson.Lookup(raw, "capabilities")
	if capabilities == nil {
		capabilities = []byte("{}")
	}
	out := append([]byte(`{"protocolVersion":"`), o.revision...)
	out = append(append(out, `","capabilities":`...), capabilities...)
	out = append(append(out, `,"serverInfo":`...), info...)
	if instructions := rawjson.Lookup(raw, "instructions"); instructions != nil {
		out = append(append(out, `,"instructions":`...), instructions...)
	}
	out = mcp.AdaptResult(o.revision, mcp.MethodInitialize, append(out, '}'))
	return jsonrpc.AppendResult(dst, c.id, out), nil
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

// begin starts to pass on changes of lists, once.
func (ss *session) begin() {
	ss.mu.Lock()
	started := ss.listening != nil || ss.closed
	if !started {
		ctx, cancel := context.WithCancel(ss.server.base)
		ss.listening = cancel
		l := &listener{session: ss, acked: make(chan mcp.SubscriptionFilter, 1)}
		ss.listen(ctx, l, mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
	}
	ss.mu.Unlock()
}

// end stops the session's subscriptions and fails its questions.
func (ss *session) end() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.closed = true
	if ss.listening != nil {
		ss.listening()
	}
	for _, cancel := range ss.resources {
		cancel()
	}
}

// listen runs a subscription against the handler, as a modern client would.
func (ss *session) listen(ctx context.Context, l *listener, f mcp.SubscriptionFilter) {
	params, err := mcp.Encode(mcp.ListenParams{Notifications: f})
	if err != nil {
		panic(err) // a filter made of booleans and strings
	}
	req := &mcp.Request{
		Method: mcp.MethodListen, Params: params, Revision: ss.revision, ClientCapabilities: ss.capabilities,
		ClientInfo: ss.clientInfo, Principal: ss.server.opts.Principal, Peer: l,
	}
	c := &call{req: *req, server: ss.server, ctx: ctx}
	ss.server.wg.Add(1)
	go func() {
		defer ss.server.wg.Done()
		defer close(l.acked)
		if _, err := c.invoke(req); err != nil && ctx.Err() == nil {
			ss.server.logger.Debug("the server takes no subscriptions", "err", err)
		}
	}()
}

// listener is the peer of a session's own subscription.
type listener struct {
	session *session
	acked   chan mcp.SubscriptionFilter // the acknowledged filter; closed when the subscription has ended
}

func (l *listener) Notify(context.Context, mcp.Notification) error { return nil }

func (l *listener) Change(ctx context.Context, change mcp.Change) error {
	if change.Method == mcp.NotificationAcknowledged {
		var p mcp.AcknowledgedParams
		if err := mcp.Decode(change.Params, &p); err != nil {
			return err
		}
		l.acked <- p.Notifications
		return nil
	}
	if ctx.Err() != nil {
		return mcp.ErrPeerGone
	}
	return l.session.server.write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
}

// subscribe passes on changes of one resource, if the handler agrees.
func (ss *session) subscribe(ctx context.Context, params []byte) *mcp.Error {
	uri, _ := rawjson.String(rawjson.Lookup(params, "uri"))
	if uri == "" {
		return mcp.InvalidParams("uri must be a non-empty string")
	}
	l, refused := ss.reserve(uri)
	if l == nil {
		return refused
	}
	select {
	case f, ok := <-l.acked:
		if ok && len(f.ResourceSubscriptions) > 0 {
			return nil
		}
		ss.unsubscribe(uri)
		if !ok {
			return mcp.MethodNotFound(mcp.MethodSubscribe)
		}
		return mcp.ResourceNotFound(uri)
	case <-ctx.Done():
		ss.unsubscribe(uri)
		return mcp.Errorf(jsonrpc.CodeInternal, "cancelled")
	}
}

// reserve starts the subscription to a resource; nil without an error means that there is one.
func (ss *session) reserve(uri string) (*listener, *mcp.Error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if _, subscribed := ss.resources[uri]; subscribed || ss.closed {
		return nil, nil
	}
	if len(ss.resources) >= maxSubscriptions {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidRequest, "more than %d resources are subscribed to", maxSubscriptions)
	}
	ctx, cancel := context.WithCancel(ss.server.base)
	ss.resources[uri] = cancel
	l := &listener{session: ss, acked: make(chan mcp.SubscriptionFilter, 1)}
	ss.listen(ctx, l, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	return l, nil
}

func (ss *session) unsubscribe(uri string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if cancel, ok := ss.resources[uri]; ok {
		cancel()
		delete(ss.resources, uri)
	}
}

// ask sends the client a question and waits for its answer.
func (ss *session) ask(ctx context.Context, q mcp.InputRequest) (mcp.Object, error) {
	id, answer, err := ss.question()
	if err != nil {
		return nil, err
	}
	defer ss.forget(id)
	if err := ss.server.write(jsonrpc.AppendRequest(nil, id, q.Method, ss.questionParams(id, q))); err != nil {
		return nil, err
	}
	timer := time.NewTimer(ss.server.opts.AskTimeout)
	defer timer.Stop()
	select {
	case msg := <-answer:
		if msg.Error != nil {
			return nil, fmt.Errorf("the client refused %s: %s", q.Method, msg.Error.Message)
		}
		return msg.Result, nil
	case <-ctx.Done():
		ss.withdraw(id, "the request that asked is over")
		return nil, context.Cause(ctx)
	case <-timer.C:
		ss.withdraw(id, "nobody answered in time")
		return nil, fmt.Errorf("the client did not answer %s within %v", q.Method, ss.server.opts.AskTimeout)
	}
}

var errSessionOver = errors.New("the session is over")

func (ss *session) question() (jsonrpc.ID, chan jsonrpc.Message, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return jsonrpc.ID{}, nil, errSessionOver
	}
	ss.lastID++
	id := jsonrpc.IntID(ss.lastID)
	answer := make(chan jsonrpc.Message, 1)
	ss.questions[id] = answer
	return id, answer, nil
}

// questionParams gives a question the form of the session's revision.
func (ss *session) questionParams(id jsonrpc.ID, q mcp.InputRequest) mcp.Object {
	params := q.Params
	if q.Method == mcp.MethodElicit && string(rawjson.Lookup(params, "mode")) == `"url"` && rawjson.Lookup(params, "elicitationId") == nil {
		n, _ := id.Int()
		params = rawjson.Set(params, "elicitationId", strconv.AppendQuote(nil, "elicitation-"+strconv.FormatInt(n, 10)))
	}
	return mcp.AdaptParams(ss.revision, q.Method, params)
}

func (ss *session) forget(id jsonrpc.ID) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.questions, id)
}

func (ss *session) withdraw(id jsonrpc.ID, reason string) {
	params, err := mcp.Encode(mcp.CancelledParams{RequestID: id.Append(nil), Reason: reason})
	if err == nil {
		_ = ss.server.write(jsonrpc.AppendNotification(nil, mcp.NotificationCancelled, params))
	}
}

// answer takes the response to a question; false if there was none.
func (ss *session) answer(msg jsonrpc.Message) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	answer, ok := ss.questions[msg.ID]
	if !ok {
		return false
	}
	delete(ss.questions, msg.ID)
	answer <- msg
	return true
}
