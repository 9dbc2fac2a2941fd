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

	mu    sync.Mutex
	front *mcp.Request // what the client waits for; nil while the call is parked, unless its edge asks live
	open  context.Context
	asked map[string]*question // that have no answer
	count int
	leave func() // the parking
}

// question is one that the upstream waits for.
type question struct {
	request mcp.InputRequest
	answer  chan json.RawMessage // has room for one
}

// errParked is the cause of a call whose client has not come back.
var errParked = errors.New("nobody has answered what the server asked")

func newBridge(c *core, u *hub.Upstream, req *mcp.Request) *bridge {
	b := &bridge{
		core: c, upstream: u, capabilities: req.Capabilities(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), asked: map[string]*question{},
	}
	b.ctx, b.cancel = context.WithCancelCause(hub.Answering(context.Background(), b))
	return b
}

// begin starts the call, and returns what comes first: its result or a question.
func (b *bridge) begin(ctx context.Context, req *mcp.Request, params json.RawMessage) (*mcp.Result, error) {
	if !b.core.parked.enter() {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the gateway is shutting down")
	}
	b.attach(ctx, req)
	out := outbound(req, params, b.notified)
	if req.Peer == nil {
		out.Notify = nil
	}
	go func() {
		defer b.core.parked.leave()
		b.resp, b.err = b.upstream.RoundTrip(b.ctx, caller(req), out)
		close(b.done)
		b.cancel(nil)
	}()
	return b.wait(ctx)
}

// resume goes on with a parked call, with what the client has answered.
func (b *bridge) resume(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	b.attach(ctx, req)
	b.mu.Lock()
	for it := rawjson.Object(rawjson.Lookup(req.Params, "inputResponses")); it.Next(); {
		if q := b.asked[string(it.Key)]; q != nil && rawjson.IsObject(it.Value) {
			delete(b.asked, string(it.Key))
			q.answer <- append(json.RawMessage(nil), it.Value...)
		}
	}
	left := len(b.asked)
	b.mu.Unlock()
	if left > 0 {
		b.nudge() // they are asked again
	}
	return b.wait(ctx)
}

func (b *bridge) attach(ctx context.Context, req *mcp.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.front, b.open = req, ctx
}

// wait returns what the client is told next.
func (b *bridge) wait(ctx context.Context) (*mcp.Result, error) {
	for {
		select {
		case <-b.done:
			b.detach()
			return outcome(b.resp, b.err)
		case <-ctx.Done():
			b.detach()
			b.cancel(context.Cause(ctx))
			return nil, context.Cause(ctx)
		case <-b.wake:
		}
		select {
		case <-b.done: // whatever it has asked
			continue
		default:
		}
		if res, err := b.park(); res != nil || err != nil {
			return res, err
		}
	}
}

func (b *bridge) detach() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.front, b.open = nil, nil
}

// park answers the client with the questions that are open, and keeps the call for its retry. There is nothing to do where
// the questions have gone meanwhile.
func (b *bridge) park() (*mcp.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) == 0 {
		return nil, nil
	}
	result := &mcp.InputRequiredResult{InputRequests: map[string]mcp.InputRequest{}}
	for key, q := range b.asked {
		result.InputRequests[key] = q.request
	}
	state, err := b.core.parked.keep(b)
	if err != nil {
		b.cancel(err)
		return nil, err
	}
	if !b.live() {
		b.front, b.open = nil, nil
	}
	result.RequestState = &state
	return &mcp.Result{Type: mcp.ResultInputRequired, Value: result}, nil
}

// live reports whether the client's request goes on while the call is parked: its edge asks live. b.mu is held.
func (b *bridge) live() bool { return !b.front.Revision.Modern() }

// ServeMCP implements [mcp.Handler]: it takes what the upstream asks while it works on the call.
func (b *bridge) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	asked := mcp.InputRequest{Method: req.Method, Params: strip(req.Params, b.capabilities)}
	needs, known := vocabulary.InputRequest(asked)
	if !known {
		return nil, mcp.MethodNotFound(req.Method)
	}
	if missing, any := mcp.Missing(b.capabilities, needs); any {
		raw, _ := json.Marshal(missing)
		return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "the client that made the call does not support %s: %s", req.Method, raw)
	}
	q := &question{asked, make(chan json.RawMessage, 1)}
	key := b.ask(q)
	select {
	case answer := <-q.answer:
		return &mcp.Result{Raw: answer}, nil
	case <-ctx.Done(): // the upstream has taken it back, or the call is over
		b.mu.Lock()
		delete(b.asked, key)
		b.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

var vocabulary = mcp.NewVocabulary()

func (b *bridge) ask(q *question) (key string) {
	b.mu.Lock()
	b.count++
	key = "question-" + strconv.Itoa(b.count)
	b.asked[key] = q
	b.mu.Unlock()
	b.nudge()
	return key
}

func (b *bridge) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// strip leaves out of a live question what input requests do not have, and the wish for a context that the client may ignore,
// and does not declare: servers of before 2025-11-25 could not know.
func strip(params json.RawMessage, can mcp.ClientCapabilities) json.RawMessage {
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

// notified passes on what the call sends, while there is somebody who listens.
func (b *bridge) notified(n mcp.Notification) {
	b.mu.Lock()
	front, ctx := b.front, b.open
	b.mu.Unlock()
	if front != nil && front.Peer != nil {
		pass(ctx, front, n)
	}
}

// parking keeps the calls that wait for what their clients answer.
type parking struct {
	sealer *mcp.Sealer
	most   int
	time   time.Duration

	mu     sync.Mutex
	calls  map[string]*bridge
	last   int
	closed bool
	work   sync.WaitGroup
}

func (p *parking) init(o Options) {
	p.sealer, p.most, p.time = o.Keys.For("parked call"), o.MaxParked, o.Park
	p.calls = map[string]*bridge{}
}

// enter counts a call whose upstream may ask; false during a shutdown.
func (p *parking) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.work.Add(1)
	return true
}

func (p *parking) leave() { p.work.Done() }

// keep parks a call, and returns the state by which it is found. b.mu is held.
func (p *parking) keep(b *bridge) (state string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return "", mcp.Errorf(jsonrpc.CodeInternal, "the gateway is shutting down")
	case len(p.calls) >= p.most:
		return "", mcp.Errorf(jsonrpc.CodeInternal, "%d calls wait for answers already", p.most)
	}
	p.last++
	id := strconv.Itoa(p.last)
	p.calls[id] = b
	end := func(why error) {
		if p.take(id) != nil {
			b.cancel(why)
		}
	}
	expiry := time.AfterFunc(p.time, func() { end(fmt.Errorf("%w within %v", errParked, p.time)) })
	b.leave = func() { expiry.Stop() }
	if open := b.open; b.live() { // who asks live may be refused, or cancelled, and comes back for neither
		gone := context.AfterFunc(open, func() { end(context.Cause(open)) })
		b.leave = func() { expiry.Stop(); gone() }
	}
	return p.sealer.Seal([]byte(id), bound(b.upstream, b.front)), nil
}

func (p *parking) take(id string) *bridge {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.calls[id]
	delete(p.calls, id)
	return b
}

// bound is what a state is good for: a request of the same principal, for the same thing, with the same arguments.
func bound(u *hub.Upstream, req *mcp.Request) []byte {
	canonical, _ := json.Marshal([]string{req.Method, req.Principal.ID, u.Name()}) // strings can be written
	about, _ := rawjson.AppendMembers([]byte{'{'}, req.Params, func(key []byte) bool {
		return slices.Contains([]string{"_meta", "inputResponses", "requestState"}, string(key))
	})
	canonical = rawjson.AppendCanonical(canonical, append(about, '}'))
	sum := sha256.Sum256(canonical)
	return sum[:]
}

// claim returns the parked call that a request goes on with; nil where it is none of this gateway's retries.
func (p *parking) claim(u *hub.Upstream, req *mcp.Request) (*bridge, error) {
	raw := rawjson.Lookup(req.Params, "requestState")
	if raw == nil {
		return nil, nil
	}
	text, _ := rawjson.String(raw)
	id, err := p.sealer.Open(text, bound(u, req))
	if err != nil {
		return nil, mcp.InvalidParams("%s: the request state is not one of this server's, or of another request", req.Method)
	}
	b := p.take(string(id))
	if b == nil {
		return nil, mcp.InvalidParams("%s: the call that this request goes on with has ended, or is being gone on with: call again", req.Method)
	}
	b.leave()
	return b, nil
}

// close ends what is parked, and waits for all calls.
func (p *parking) close() {
	p.mu.Lock()
	p.closed = true
	calls := maps.Clone(p.calls)
	clear(p.calls)
	p.mu.Unlock()
	for _, b := range calls {
		b.leave()
		b.cancel(errors.New("the gateway is shutting down"))
	}
	p.work.Wait()
}
