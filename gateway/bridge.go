package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// bridge is a call of an upstream that asks live. It outlives the requests of the client: each of them is its front for a
// while, and between two the call is parked.
type bridge struct {
	core         *core
	upstream     *hub.Upstream
	capabilities mcp.ClientCapabilities
	ctx          context.Context // of the upstream's call
	cancel       context.CancelCauseFunc
	wake         chan struct{} // holds a token when there is a question
	done         chan struct{} // closed when the call has returned

	resp *mcp.Response // with err, what the call has come to; read after done is closed
	err  error

	mu            sync.Mutex
	request       *mcp.Request // what the client waits for; nil while the call is parked, unless its edge asks live
	requestCtx    context.Context
	questions     map[string]*question // that have no answer
	questionCount int
	unpark        func() // the parking
}

// question is one that the upstream waits for.
type question struct {
	request mcp.InputRequest
	answer  chan json.RawMessage // has room for one
}

// errUnanswered is the cause of a call whose client has not come back.
var errUnanswered = errors.New("nobody has answered what the server asked")

func newBridge(c *core, u *hub.Upstream, req *mcp.Request) *bridge {
	b := &bridge{
		core: c, upstream: u, capabilities: req.Capabilities(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), questions: map[string]*question{},
	}
	b.ctx, b.cancel = context.WithCancelCause(hub.WithAnswerer(context.Background(), b))
	return b
}

// startCall starts the call, and returns what comes first: its result or a question.
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

// resumeCall goes on with a parked call, with what the client has answered.
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
		b.wakeRequest() // they are asked again
	}
	return b.awaitOutcome(ctx)
}

func (b *bridge) attachRequest(ctx context.Context, req *mcp.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.request, b.requestCtx = req, ctx
}

// awaitOutcome returns what the client is told next.
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
		case <-b.done: // whatever it has asked
			continue
		default:
		}
		if res, err := b.parkCall(); res != nil || err != nil {
			return res, err
		}
	}
}

func (b *bridge) detachRequest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.request, b.requestCtx = nil, nil
}

// parkCall answers the client with the questions that are open, and keeps the call for its retry. There is nothing to do where
// the questions have gone meanwhile.
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

// asksLive reports whether the client's request goes on while the call is parked: its edge asks live. b.mu is held.
func (b *bridge) asksLive() bool { return !b.request.Revision.Modern() }

// ServeMCP implements [mcp.Handler]: it takes what the upstream asks while it works on the call.
func (b *bridge) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	asked := mcp.InputRequest{Method: req.Method, Params: stripQuestion(req.Params, b.capabilities)}
	needs, known := vocabulary.InputRequest(asked)
	if !known {
		return nil, mcp.MethodNotFound(req.Method)
	}
	if missing, any := mcp.Missing(b.capabilities, needs); any {
		raw, _ := json.Marshal(missing)
		return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "the client that made the call does not support %s: %s", req.Method, raw)
	}
	q := &question{asked, make(chan json.RawMessage, 1)}
	key := b.addQuestion(q)
	select {
	case answer := <-q.answer:
		return &mcp.Result{Raw: answer}, nil
	case <-ctx.Done(): // the upstream has taken it back, or the call is over
		b.mu.Lock()
		delete(b.questions, key)
		b.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

var vocabulary = mcp.NewVocabulary()

func (b *bridge) addQuestion(q *question) (key string) {
	b.mu.Lock()
	b.questionCount++
	key = "question-" + strconv.Itoa(b.questionCount)
	b.questions[key] = q
	b.mu.Unlock()
	b.wakeRequest()
	return key
}

func (b *bridge) wakeRequest() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// stripQuestion leaves out of a live question what input requests do not have, and the wish for a context that the client may ignore,
// and does not declare: servers of before 2025-11-25 could not know.
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
		return json.RawMessage("{}") // roots/list may come without; clients have failed on that
	}
	return params
}

// passNotification passes on what the call sends, while there is somebody who listens.
func (b *bridge) passNotification(n mcp.Notification) {
	b.mu.Lock()
	front, ctx := b.request, b.requestCtx
	b.mu.Unlock()
	if front != nil && front.Peer != nil {
		passNotification(ctx, front, n)
	}
}

// parkedCalls keeps the calls that wait for what their clients answer.
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

func (p *parkedCalls) setUp(o Options) {
	p.sealer, p.maxCalls, p.timeout = o.Keys.For("parked call"), o.MaxParked, o.ParkTimeout
	p.calls = map[string]*bridge{}
}

// startWork counts a call whose upstream may ask; false during a shutdown.
func (p *parkedCalls) startWork() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.work.Add(1)
	return true
}

func (p *parkedCalls) endWork() { p.work.Done() }

// addCall parks a call, and returns the state by which it is found. b.mu is held.
func (p *parkedCalls) addCall(b *bridge) (state string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return "", mcp.Errorf(jsonrpc.CodeInternal, "the gateway is shutting down")
	case len(p.calls) >= p.maxCalls:
		return "", mcp.Errorf(jsonrpc.CodeInternal, "%d calls wait for answers already", p.maxCalls)
	}
	p.lastID++
	id := strconv.Itoa(p.lastID)
	p.calls[id] = b
	end := func(why error) {
		if p.takeCall(id) != nil {
			b.cancel(why)
		}
	}
	expiry := time.AfterFunc(p.timeout, func() { end(fmt.Errorf("%w within %v", errUnanswered, p.timeout)) })
	b.unpark = func() { expiry.Stop() }
	if open := b.requestCtx; b.asksLive() { // who asks live may be refused, or cancelled, and comes back for neither
		gone := context.AfterFunc(open, func() { end(context.Cause(open)) })
		b.unpark = func() { expiry.Stop(); gone() }
	}
	return p.sealer.Seal([]byte(id), requestDigest(b.upstream, b.request)), nil
}

func (p *parkedCalls) takeCall(id string) *bridge {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.calls[id]
	delete(p.calls, id)
	return b
}

// requestDigest is what a state is good for: a request of the same principal, for the same thing, with the same arguments.
func requestDigest(u *hub.Upstream, req *mcp.Request) []byte {
	about := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(req.Params))
	d.UseNumber() // not everything is a float64
	_ = d.Decode(&about)
	for _, name := range []string{"_meta", "inputResponses", "requestState"} {
		delete(about, name)
	}
	canonical, _ := json.Marshal([]any{req.Method, req.Principal.ID, u.Name(), about}) // of what has been decoded
	sum := sha256.Sum256(canonical)
	return sum[:]
}

// claimCall returns the parked call that a request goes on with; nil where it is none of this gateway's retries.
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
		return nil, mcp.InvalidParams("%s: the call that this request goes on with has ended, or is being gone on with: call again", req.Method)
	}
	b.unpark()
	return b, nil
}

// closeAll ends what is parked, and waits for all calls.
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
