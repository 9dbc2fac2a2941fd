package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// bridge connects an upstream's call, which asks live questions, with a client's requests, which
// are answered by input_required and repeated with the answers. The call outlives those requests.
// Between two of them it is parked.
type bridge struct {
	core         *core
	upstream     *hub.Upstream
	caller       hub.Caller
	capabilities mcp.ClientCapabilities
	ctx          context.Context // of the upstream's call
	cancel       context.CancelCauseFunc
	wake         chan struct{} // holds a token when there is a question
	done         chan struct{} // closed when the upstream's call has returned

	resp *mcp.Response // result of the upstream's call, with err; valid after done is closed
	err  error

	mu            sync.Mutex
	request       *mcp.Request // the client's current request; nil while parked, unless its edge asks live
	requestCtx    context.Context
	questions     map[string]*question // questions without an answer, by key
	questionCount int
	unpark        func() // stops the timers of the parked call
	parkedID      int    // guarded by the lock of parkedCalls
}

// question is a question of the upstream without an answer.
type question struct {
	request mcp.InputRequest
	answer  chan json.RawMessage // has room for one
}

// errUnanswered cancels a call when its client does not come back.
var errUnanswered = errors.New("nobody has answered what the server asked")

func newBridge(c *core, u *hub.Upstream, req *mcp.Request) *bridge {
	b := &bridge{
		core: c, upstream: u, caller: callerOf(req), capabilities: req.Capabilities(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), questions: map[string]*question{},
	}
	b.ctx, b.cancel = context.WithCancelCause(hub.WithAnswerer(context.Background(), mcp.HandlerFunc(b.answerQuestion)))
	return b
}

// startCall starts the upstream's call, and returns its result or its first questions.
func (b *bridge) startCall(ctx context.Context, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	if !b.core.parked.startWork() {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the gateway is shutting down")
	}
	b.attachRequest(ctx, req)
	out := upstreamRequest(req, params, b.passNotification)
	if req.Peer == nil {
		out.Notify = nil
	}
	go func() {
		defer b.core.parked.endWork()
		b.resp, b.err = b.upstream.RoundTrip(b.ctx, callerOf(req), out)
		close(b.done)
		b.cancel(nil)
	}()
	return b.awaitOutcome(ctx)
}

// resumeCall continues a parked call with the answers of the client's repeated request.
func (b *bridge) resumeCall(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	b.attachRequest(ctx, req)
	b.mu.Lock()
	for it := rawjson.Object(rawjson.Lookup(req.Params, "inputResponses")); it.Next(); {
		if q := b.questions[string(it.Key)]; q != nil && rawjson.IsObject(it.Value) {
			delete(b.questions, string(it.Key))
			q.answer <- append(json.RawMessage(nil), it.Value...)
		}
	}
	left := len(b.questions)
	b.mu.Unlock()
	if left > 0 {
		b.wakeRequest() // the open ones are asked again
	}
	return b.awaitOutcome(ctx)
}

// attachRequest makes req the client's current request.
func (b *bridge) attachRequest(ctx context.Context, req *mcp.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.request, b.requestCtx = req, ctx
}

// awaitOutcome returns the result of the call or, if questions come first, an input_required
// result.
func (b *bridge) awaitOutcome(ctx context.Context) (*mcp.Result, error) {
	for {
		select {
		case <-b.done:
			b.detachRequest()
			return clientResult(b.resp, b.err)
		case <-ctx.Done():
			b.detachRequest()
			b.cancel(context.Cause(ctx))
			return nil, context.Cause(ctx)
		case <-b.wake:
		}
		select {
		case <-b.done: // the result ends all questions
			continue
		default:
		}
		if res, err := b.parkCall(); res != nil || err != nil {
			return res, err
		}
	}
}

// detachRequest ends the client's current request.
func (b *bridge) detachRequest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.request, b.requestCtx = nil, nil
}

// parkCall parks the call and returns an input_required result with all open questions. It returns
// nil if none is open any more.
func (b *bridge) parkCall() (*mcp.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.questions) == 0 {
		return nil, nil
	}
	result := &mcp.InputRequiredResult{InputRequests: map[string]mcp.InputRequest{}}
	for key, q := range b.questions {
		result.InputRequests[key] = q.request
	}
	state, err := b.core.parked.addCall(b)
	if err != nil {
		b.cancel(err)
		return nil, err
	}
	if !b.asksLive() {
		b.request, b.requestCtx = nil, nil
	}
	result.RequestState = &state
	return &mcp.Result{Type: mcp.ResultInputRequired, Value: result}, nil
}

// asksLive reports whether the client's request continues while the call is parked: the edge of a
// legacy client asks the questions live. b.mu is held.
func (b *bridge) asksLive() bool { return !b.request.Revision.Modern() }

// answerQuestion answers the upstream's live questions with the client's
// answers.
func (b *bridge) answerQuestion(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	asked := mcp.InputRequest{Method: req.Method, Params: stripQuestion(req.Params, b.capabilities)}
	needs, known := mcpwire.Vocabulary(nil).InputRequest(asked)
	if !known {
		return nil, mcp.MethodNotFound(req.Method)
	}
	if missing, any := mcpwire.MissingCapabilities(b.capabilities, needs); any {
		raw, _ := json.Marshal(missing)
		return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "the client that made the call does not support %s: %s", req.Method, raw)
	}
	q := &question{asked, make(chan json.RawMessage, 1)}
	key := b.addQuestion(q)
	select {
	case answer := <-q.answer:
		return &mcp.Result{Raw: answer}, nil
	case <-ctx.Done(): // the upstream has cancelled the question, or the call has ended
		b.mu.Lock()
		delete(b.questions, key)
		b.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

// addQuestion opens a question and returns its key.
func (b *bridge) addQuestion(q *question) (key string) {
	b.mu.Lock()
	b.questionCount++
	key = "question-" + strconv.Itoa(b.questionCount)
	b.questions[key] = q
	b.mu.Unlock()
	b.wakeRequest()
	return key
}

// wakeRequest makes the client's request look at the open questions.
func (b *bridge) wakeRequest() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// stripQuestion removes the parts of a live question that input requests do not have. It also
// removes includeContext if the client does not declare it: servers before 2025-11-25 could not
// know, and clients may ignore it.
func stripQuestion(params json.RawMessage, can mcp.ClientCapabilities) json.RawMessage {
	if can.Sampling != nil && can.Sampling.Context == nil && rawjson.Lookup(params, "includeContext") != nil {
		params = rawjson.Set(params, "includeContext", nil)
	}
	for _, name := range []string{"elicitationId", "task"} {
		if rawjson.Lookup(params, name) != nil {
			params = rawjson.Set(params, name, nil)
		}
	}
	if meta := rawjson.Lookup(params, "_meta"); meta != nil && rawjson.Lookup(meta, "progressToken") != nil {
		params = rawjson.Replace(params, "_meta", rawjson.Set(meta, "progressToken", nil))
	}
	if len(params) == 0 {
		return json.RawMessage("{}") // roots/list may have none, and some clients fail without
	}
	return params
}

// passNotification sends a notification of the call to the client's current request. Without one it
// is lost.
func (b *bridge) passNotification(n mcp.Notification) {
	b.mu.Lock()
	front, ctx := b.request, b.requestCtx
	b.mu.Unlock()
	if front != nil && front.Peer != nil {
		passNotification(ctx, front, n)
	}
}

// parkedCalls are the calls that wait for answers of their clients.
type parkedCalls struct {
	sealer   *mcp.Sealer
	maxCalls int
	timeout  time.Duration

	mu     sync.Mutex
	calls  map[string]*bridge
	lastID int
	closed bool
	work   sync.WaitGroup
}

// setUp prepares the zero value.
func (p *parkedCalls) setUp(o Options) {
	p.sealer, p.maxCalls, p.timeout = o.Keys.For("parked call"), o.MaxParked, o.ParkTimeout
	p.calls = map[string]*bridge{}
}

// startWork counts a bridge. It reports false after closeAll.
func (p *parkedCalls) startWork() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.work.Add(1)
	return true
}

// endWork ends a bridge that startWork has counted.
func (p *parkedCalls) endWork() { p.work.Done() }

// addCall parks a call, and returns the sealed request state that identifies it. b.mu is held.
func (p *parkedCalls) addCall(b *bridge) (state string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return "", mcp.Errorf(jsonrpc.CodeInternal, "the gateway is shutting down")
	case len(p.calls) >= p.maxCalls:
		return "", mcp.Errorf(jsonrpc.CodeInternal, "%d calls wait for answers already", p.maxCalls)
	}
	p.evictOldest(b.caller)
	p.lastID++
	id := strconv.Itoa(p.lastID)
	b.parkedID, p.calls[id] = p.lastID, b
	end := func(why error) {
		if p.takeCall(id) != nil {
			b.cancel(why)
		}
	}
	expiry := time.AfterFunc(p.timeout, func() { end(fmt.Errorf("%w within %v", errUnanswered, p.timeout)) })
	b.unpark = func() { expiry.Stop() }
	if open := b.requestCtx; b.asksLive() { // the edge does not come back if its client declines or cancels
		stopWatch := context.AfterFunc(open, func() { end(context.Cause(open)) })
		b.unpark = func() { expiry.Stop(); stopWatch() }
	}
	return p.sealer.Seal([]byte(id), requestDigest(b.upstream, b.request)), nil
}

// maxClientParked limits the parked calls of one client.
const maxClientParked = 64

// errEvicted cancels a parked call whose client has too many.
var errEvicted = fmt.Errorf("the client has %d newer calls that wait for its answers", maxClientParked)

// evictOldest makes room for one more call of a client: it cancels the oldest one if the client has
// the maximum. Clients without a name share the limit of all calls. p.mu is held.
func (p *parkedCalls) evictOldest(caller hub.Caller) {
	if caller == (hub.Caller{}) {
		return
	}
	var oldest *bridge
	n := 0
	for _, b := range p.calls {
		if b.caller == caller {
			if n++; oldest == nil || b.parkedID < oldest.parkedID {
				oldest = b
			}
		}
	}
	if n >= maxClientParked {
		delete(p.calls, strconv.Itoa(oldest.parkedID))
		oldest.unpark()
		oldest.cancel(errEvicted)
	}
}

// takeCall removes and returns a parked call, or returns nil.
func (p *parkedCalls) takeCall(id string) *bridge {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.calls[id]
	delete(p.calls, id)
	return b
}

// requestDigest returns a digest that a request state is bound to. A repeated request has the same
// digest: same method, principal, upstream and params, apart from answers.
func requestDigest(u *hub.Upstream, req *mcp.Request) []byte {
	canonical, _ := json.Marshal([]string{req.Method, req.Principal.ID, u.Name()}) // strings can be written
	about, _ := rawjson.AppendMembers([]byte{'{'}, req.Params, func(key []byte) bool {
		return slices.Contains([]string{"_meta", "inputResponses", "requestState"}, string(key))
	})
	canonical = rawjson.AppendCanonical(canonical, append(about, '}'))
	sum := sha256.Sum256(canonical)
	return sum[:]
}

// claimCall returns the parked call that a request repeats. It returns nil if the request has no
// state. A state can be claimed once.
func (p *parkedCalls) claimCall(u *hub.Upstream, req *mcp.Request) (*bridge, error) {
	raw := rawjson.Lookup(req.Params, "requestState")
	if raw == nil {
		return nil, nil
	}
	text, _ := rawjson.String(raw)
	id, err := p.sealer.Open(text, requestDigest(u, req))
	if err != nil {
		return nil, mcp.InvalidParams("%s: the request state is not one of this server's, or of another request", req.Method)
	}
	b := p.takeCall(string(id))
	if b == nil {
		return nil, mcp.InvalidParams("%s: the call that this request continues has ended, or another request continues it: call again", req.Method)
	}
	b.unpark()
	return b, nil
}

// closeAll cancels the parked calls, and waits for all bridges.
func (p *parkedCalls) closeAll() {
	p.mu.Lock()
	p.closed = true
	calls := maps.Clone(p.calls)
	clear(p.calls)
	p.mu.Unlock()
	for _, b := range calls {
		b.unpark()
		b.cancel(errors.New("the gateway is shutting down"))
	}
	p.work.Wait()
}
