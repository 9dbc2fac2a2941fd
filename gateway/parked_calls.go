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

// parkedCalls are the calls that wait for answers of their clients.
type parkedCalls struct {
	sealer         *mcp.Sealer
	replicas       replicaCalls
	maxCalls       int // of all clients; negative means no limit
	maxClientCalls int // of each client; negative means no limit
	timeout        time.Duration

	mu     sync.Mutex
	calls  map[string]*bridge
	lastID int
	closed bool
	work   sync.WaitGroup
}

// setUp prepares the zero value.
func (p *parkedCalls) setUp(o Options) {
	p.sealer, p.timeout = o.Keys.For("parked call"), o.ParkTimeout
	limits := o.Quota.Limits()
	p.maxCalls, p.maxClientCalls = limits.Questions, limits.ClientQuestions
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
	if p.closed {
		return "", mcp.Errorf(jsonrpc.CodeInternal, "the gateway is shutting down")
	}
	if !p.makeRoom(b.caller) {
		return "", mcp.Errorf(jsonrpc.CodeInternal, "%d calls wait for answers already, which is the limit of this server (questions): try again later", p.maxCalls)
	}
	p.lastID++
	id := strconv.Itoa(p.lastID)
	b.parkedID, p.calls[id] = p.lastID, b
	end := func(why error) {
		if p.takeCall(id) != nil {
			b.drop(why)
		}
	}
	expiry := time.AfterFunc(p.timeout, func() { end(fmt.Errorf("%w within %v", errUnanswered, p.timeout)) })
	b.unpark = func() { expiry.Stop() }
	if open := b.requestCtx; b.asksLive() { // the edge does not come back if its client declines or cancels
		stopWatch := context.AfterFunc(open, func() { end(context.Cause(open)) })
		b.unpark = func() { expiry.Stop(); stopWatch() }
	}
	return p.sealer.Seal([]byte(p.replicas.nameOf(id)), requestDigest(b.upstream, b.request)), nil
}

// makeRoom makes sure that one more call of a client can be parked. At the client's limit its
// oldest call is cancelled, and at the limit of all the oldest call of clients without a name. It
// reports false if that makes no room. p.mu is held.
func (p *parkedCalls) makeRoom(caller hub.Caller) bool {
	anonymous := hub.Caller{}
	if own := p.countCalls(caller); caller != anonymous && p.maxClientCalls >= 0 && own >= p.maxClientCalls {
		return p.evictOldest(caller, fmt.Errorf("the client has %d newer calls that wait for its answers, which is the limit (clientQuestions)", own))
	}
	if p.maxCalls >= 0 && len(p.calls) >= p.maxCalls {
		return p.evictOldest(anonymous, fmt.Errorf("%d newer calls wait for answers, which is the limit of this server (questions)", p.maxCalls))
	}
	return true
}

// countCalls returns the number of parked calls of a client. p.mu is held.
func (p *parkedCalls) countCalls(caller hub.Caller) (n int) {
	for _, b := range p.calls {
		if b.caller == caller {
			n++
		}
	}
	return n
}

// evictOldest cancels the oldest parked call of a client. It reports false for a client without
// parked calls. p.mu is held.
func (p *parkedCalls) evictOldest(caller hub.Caller, why error) bool {
	var oldest *bridge
	for _, b := range p.calls {
		if b.caller == caller && (oldest == nil || b.parkedID < oldest.parkedID) {
			oldest = b
		}
	}
	if oldest == nil {
		return false
	}
	delete(p.calls, strconv.Itoa(oldest.parkedID))
	oldest.unpark()
	oldest.drop(why)
	return true
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

// ownsState reports whether a request repeats a call that was parked. Modern upstreams have states
// of their own.
func (p *parkedCalls) ownsState(u *hub.Upstream, req *mcp.Request) bool {
	raw := rawjson.Lookup(req.Params, "requestState")
	if raw == nil {
		return false
	}
	text, _ := rawjson.String(raw)
	_, err := p.sealer.Open(text, requestDigest(u, req))
	return err == nil
}

// errNotOurState is the error for a request state that does not open.
func errNotOurState(req *mcp.Request) error {
	return mcp.InvalidParams("%s: the request state is not one of this server's, or of another request", req.Method)
}

// parkedName returns the name of the parked call that a request repeats, or "" if the request has
// no state.
func (p *parkedCalls) parkedName(u *hub.Upstream, req *mcp.Request) (string, error) {
	raw := rawjson.Lookup(req.Params, "requestState")
	if raw == nil {
		return "", nil
	}
	text, _ := rawjson.String(raw)
	name, err := p.sealer.Open(text, requestDigest(u, req))
	if err != nil {
		return "", errNotOurState(req)
	}
	return string(name), nil
}

// continueCall continues the parked call that a request repeats, here or at the replica that has
// parked it. isRetry is false if the request has no state.
func (p *parkedCalls) continueCall(ctx context.Context, u *hub.Upstream, req *mcp.Request) (res *mcp.Result, err error, isRetry bool) {
	name, err := p.parkedName(u, req)
	if name == "" || err != nil {
		return nil, err, err != nil
	}
	if owner, _, isHere := p.replicas.splitName(name); !isHere && p.replicas.network != nil {
		res, err = p.replicas.runRemotely(ctx, owner, u, req)
		return res, err, true
	}
	b, err := p.claimHere(u, req)
	if err != nil {
		return nil, err, true
	}
	res, err = b.resumeCall(ctx, req)
	return res, err, true
}

// claimHere returns the call of this process that a request repeats. A state can be claimed once.
func (p *parkedCalls) claimHere(u *hub.Upstream, req *mcp.Request) (*bridge, error) {
	name, err := p.parkedName(u, req)
	if err != nil || name == "" {
		return nil, errNotOurState(req)
	}
	_, id, isHere := p.replicas.splitName(name)
	var b *bridge
	if isHere {
		b = p.takeCall(id)
	}
	if b == nil {
		return nil, mcp.InvalidParams("%s: the call that this request continues has ended, or another request continues it: call again", req.Method)
	}
	b.unpark()
	return b, nil
}

// closeAll cancels the parked calls, and waits for all bridges.
func (p *parkedCalls) closeAll() {
	p.replicas.leave()
	p.mu.Lock()
	p.closed = true
	calls := maps.Clone(p.calls)
	clear(p.calls)
	p.mu.Unlock()
	for _, b := range calls {
		b.unpark()
		b.drop(errors.New("the gateway is shutting down"))
	}
	p.work.Wait()
}
