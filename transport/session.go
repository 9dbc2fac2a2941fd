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
	offers    mcp.ServerCapabilities // what initialize told the client
	logLevel  mcp.LoggingLevel
	listening context.CancelFunc            // ends lists
	lists     *listener                     // to changes of lists; from initialize on
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
	// What a revision does not have, its clients cannot declare.
	known := mcp.AdaptParams(revision, mcp.MethodInitialize, c.req.Params)
	ss := &session{
		server: s, revision: revision, capabilities: rawjson.Lookup(known, "capabilities"), clientInfo: p.ClientInfo, logLevel: mcp.LevelInfo,
		resources: map[string]context.CancelFunc{}, questions: map[jsonrpc.ID]chan jsonrpc.Message{},
	}
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

// own listens to changes of lists before the client can cause one. The handler answers the rest.
func (o opening) own(c *call) (*mcp.Result, error, bool) {
	const patience = time.Second // a handler that takes longer may miss the first changes
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
	out := append([]byte(`{"protocolVersion":"`), o.revision...)
	out = append(append(out, `","capabilities":`...), capabilities...)
	out = append(append(out, `,"serverInfo":`...), info...)
	if instructions := rawjson.Lookup(raw, "instructions"); instructions != nil {
		out = append(append(out, `,"instructions":`...), instructions...)
	}
	out = mcp.AdaptResult(o.revision, mcp.MethodInitialize, append(out, '}'))
	return jsonrpc.AppendResult(dst, c.id, out), nil
}

// told remembers what the server offers.
func (ss *session) told(capabilities []byte) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return mcp.Decode(capabilities, &ss.offers)
}

func (o opening) refuse(r *mcp.Request, err error) (*mcp.Result, *mcp.Error) {
	o.server.discard(o.session)
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

// watchLists starts to listen to changes of lists, which are held back until the client has ended the handshake. What it
// returns is ready once the handler listens, or does not.
func (ss *session) watchLists() <-chan mcp.SubscriptionFilter {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	l := &listener{session: ss, acked: make(chan mcp.SubscriptionFilter, 1), holds: true}
	if ss.closed {
		close(l.acked)
		return l.acked
	}
	ctx, cancel := context.WithCancel(ss.server.base)
	ss.lists, ss.listening = l, cancel
	ss.listen(ctx, l, mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
	return l.acked
}

// begin passes on changes of lists from now on.
func (ss *session) begin() {
	ss.mu.Lock()
	l := ss.lists
	ss.mu.Unlock()
	if l != nil {
		l.release()
	}
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
	for id, answer := range ss.questions {
		answer <- jsonrpc.Message{ID: id, Error: mcp.Errorf(jsonrpc.CodeInternal, "%s", errSessionOver)}
		delete(ss.questions, id)
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
	l.ctx = ctx
	c := &call{req: *req, server: ss.server, ctx: ctx}
	ss.server.wg.Add(1)
	go func() {
		defer ss.server.wg.Done()
		defer l.end()
		if _, err := c.invoke(req); err != nil && ctx.Err() == nil {
			ss.server.logger.Debug("the server takes no subscriptions", "err", err)
		}
	}()
}

// listener is the peer of a session's own subscription.
type listener struct {
	session *session
	acked   chan mcp.SubscriptionFilter // the acknowledged filter; closed when the subscription has ended
	ctx     context.Context             // of the subscription

	mu    sync.Mutex // orders what is sent for the subscription
	over  bool
	holds bool // until the handshake has ended
	held  []mcp.Change
}

func (l *listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	close(l.acked)
}

func (l *listener) Notify(context.Context, mcp.Notification) error { return nil }

func (l *listener) Change(_ context.Context, change mcp.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.ctx.Err() != nil {
		return mcp.ErrPeerGone
	}
	if change.Method == mcp.NotificationAcknowledged {
		var p mcp.AcknowledgedParams
		if err := mcp.Decode(change.Params, &p); err != nil {
			return err
		}
		select {
		case l.acked <- p.Notifications:
		default: // acknowledged again
		}
		return nil
	}
	if l.holds {
		l.hold(change)
		return nil
	}
	return l.session.server.write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
}

// hold keeps one change of each kind.
func (l *listener) hold(change mcp.Change) {
	for _, held := range l.held {
		if held.Method == change.Method {
			return
		}
	}
	l.held = append(l.held, change)
}

// release sends what was held back, and holds back no more.
func (l *listener) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, change := range l.held {
		_ = l.session.server.write(jsonrpc.AppendNotification(nil, change.Method, change.Params))
	}
	l.holds, l.held = false, nil
}

func uriOf(params []byte) (string, *mcp.Error) {
	uri, _ := rawjson.String(rawjson.Lookup(params, "uri"))
	if uri == "" {
		return "", mcp.InvalidParams("uri must be a non-empty string")
	}
	return uri, nil
}

// subscribe passes on changes of one resource, if the handler agrees.
func (ss *session) subscribe(ctx context.Context, params []byte) *mcp.Error {
	uri, refused := uriOf(params)
	if refused != nil {
		return refused
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
	if ss.offers.Resources == nil || !ss.offers.Resources.Subscribe {
		return nil, mcp.MethodNotFound(mcp.MethodSubscribe)
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
			return nil, &askError{fmt.Sprintf("the client refused %s: %s", q.Method, msg.Error.Message)}
		}
		return msg.Result, nil
	case <-ctx.Done():
		ss.withdraw(id, "the request that asked is over")
		return nil, context.Cause(ctx)
	case <-timer.C:
		ss.withdraw(id, "nobody answered in time")
		return nil, &askError{fmt.Sprintf("the client did not answer %s within %v", q.Method, ss.server.opts.AskTimeout)}
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
	id := unquoted(msg.ID)
	answer, ok := ss.questions[id]
	if !ok {
		return false
	}
	delete(ss.questions, id)
	answer <- msg
	return true
}
