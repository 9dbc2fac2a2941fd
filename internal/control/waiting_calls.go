package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// waitingCall is a call of a client whose questions wait for answers. The call is known by the
// request state of its questions. If the user answers all of them here first, the call continues at
// once, and its result waits for the client's next request.
type waitingCall struct {
	id   string                     // principal and request state
	asks map[string]*Ask            // by key; without an answer
	here map[string]json.RawMessage // answers that the user gave here, by key

	run      func(ctx context.Context, answers map[string]json.RawMessage) (*mcp.Result, error) // nil: only the client continues the call
	ctx      context.Context                                                                    // of run
	cancel   context.CancelCauseFunc
	release  []func() bool // the timers and contexts that end the wait
	answered chan struct{} // closed when all questions are answered here
	done     chan struct{} // closed when run has returned, with the result
	res      *mcp.Result
	err      error
}

var errNotCollected = errors.New("the client did not come back for the result")

// Middleware adds the questions of clients' calls. It must be outside of the audit log, so that a
// call that continues is recorded.
func (a *Asks) Middleware() mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if !mcpwire.MayAsk(req.Method) {
				return next.ServeMCP(ctx, req)
			}
			if call := a.claim(req); call != nil {
				if res, err, ok := call.collect(ctx); ok {
					a.watchClient(req, res)
					return res, err
				}
				req = addAnswers(req, call.here)
			}
			if able, ok := a.enable(req); ok {
				return a.answerInside(ctx, next, able)
			}
			var target audit.Target
			res, err := next.ServeMCP(audit.WithTarget(ctx, &target), req)
			if err == nil && res.Type == mcp.ResultInputRequired {
				a.wait(ctx, next, req, target, res)
				a.watchClient(req, res)
			}
			return res, err
		})
	}
}

// decodeQuestions returns the questions of a result.
func decodeQuestions(res *mcp.Result) (*mcp.InputRequiredResult, error) {
	if asked, ok := res.Value.(*mcp.InputRequiredResult); ok {
		return asked, nil
	}
	asked := &mcp.InputRequiredResult{}
	return asked, mcp.Decode(res.Raw, asked)
}

// stateID returns the id of the waiting call of a request state.
func stateID(req *mcp.Request, state string) string { return req.Principal.ID + "\x00" + state }

// clientName returns the name by which the user knows the client of a request.
func clientName(req *mcp.Request) string {
	if req.Principal.ID != "" {
		return req.Principal.ID
	}
	name, _ := rawjson.String(rawjson.Lookup(req.ClientInfo, "name"))
	return shorten(name, 200)
}

// asksOf returns the questions of a result that a person answers, by key.
func asksOf(req *mcp.Request, target audit.Target, asked *mcp.InputRequiredResult) map[string]*Ask {
	all := map[string]*Ask{}
	for key, q := range asked.InputRequests {
		var ask *Ask
		switch q.Method {
		case mcp.MethodElicit:
			var p mcp.ElicitParams
			if mcp.Decode(q.Params, &p) != nil {
				continue
			}
			p.Message = trimAsker(target.Server, p.Message)
			ask = newAsk(&p)
		case mcp.MethodCreateMessage:
			ask = &Ask{Kind: "sampling", Since: time.Now(), Message: shorten(string(q.Params), maxAskText)}
		default:
			continue // no person answers roots
		}
		ask.Client, ask.Method, ask.Server, ask.Name = clientName(req), req.Method, target.Server, target.Name
		all[key] = ask
	}
	return all
}

// wait adds the questions of a result. The caller passes the result to the client.
func (a *Asks) wait(ctx context.Context, next mcp.Handler, req *mcp.Request, target audit.Target, res *mcp.Result) {
	asked, err := decodeQuestions(res)
	if err != nil || asked.RequestState == nil {
		return // the edge reports an error; without a state nobody can tell when the call continues
	}
	call := &waitingCall{id: stateID(req, *asked.RequestState), asks: asksOf(req, target, asked), here: map[string]json.RawMessage{}, answered: make(chan struct{}), done: make(chan struct{})}
	if len(call.asks) == 0 {
		return
	}
	call.ctx, call.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	obstacle := a.obstacleOf(req, call, asked)
	if obstacle == "" {
		again := copyRequest(req, *asked.RequestState)
		call.run = func(ctx context.Context, answers map[string]json.RawMessage) (*mcp.Result, error) {
			return a.continueCall(ctx, next, addAnswers(again, answers))
		}
	}
	isLegacy := !req.Revision.Modern()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(call.asks)) {
		ask := call.asks[key]
		ask.Expires, ask.Stays = ask.Since.Add(askTimeout), !isLegacy
		if ask.Obstacle == "" {
			ask.Obstacle = obstacle
		}
		ask.deliver = func(r *mcp.ElicitResult) bool { return a.deliver(call, key, r) }
		a.openAskLocked(ask)
	}
	if len(a.waiting) >= maxWaiting {
		a.drop(a.waiting[0], errNoAsk)
	}
	a.waiting = append(a.waiting, call)
	call.release = []func() bool{
		time.AfterFunc(askTimeout, func() { a.dropCall(call, errNotCollected) }).Stop,
		context.AfterFunc(a.life, func() { a.dropCall(call, context.Cause(a.life)) }),
	}
	if isLegacy { // its request continues while its client is asked
		call.release = append(call.release, context.AfterFunc(ctx, func() { a.dropCall(call, context.Cause(ctx)) }))
	}
}

// obstacleOf says why a call cannot be answered here, or returns "".
func (a *Asks) obstacleOf(req *mcp.Request, call *waitingCall, asked *mcp.InputRequiredResult) string {
	if hasSampling(call.asks) {
		return "Its client's model answers."
	}
	if len(call.asks) < len(asked.InputRequests) {
		return "Its client answers, because it has to tell its folders, too."
	}
	if len(req.Params) > maxAskParams {
		return "Its call is too large to be continued here."
	}
	return ""
}

// hasSampling reports whether a model is asked, too.
func hasSampling(asks map[string]*Ask) bool {
	for _, ask := range asks {
		if ask.Kind == "sampling" {
			return true
		}
	}
	return false
}

// copyRequest returns a request with a state that outlives its message.
func copyRequest(req *mcp.Request, state string) *mcp.Request {
	again := *req
	again.Peer, again.ProgressToken = nil, nil
	again.ClientCapabilities, again.ClientInfo = bytes.Clone(req.ClientCapabilities), bytes.Clone(req.ClientInfo)
	again.Params = rawjson.Replace(bytes.Clone(req.Params), "requestState", rawjson.AppendString(nil, state))
	again.Meta = rawjson.Lookup(again.Params, "_meta")
	return &again
}

// addAnswers returns a request with further answers, or the request if there are none.
func addAnswers(req *mcp.Request, answers map[string]json.RawMessage) *mcp.Request {
	if len(answers) == 0 {
		return req
	}
	all := rawjson.Lookup(req.Params, "inputResponses")
	if !rawjson.IsObject(all) {
		all = []byte("{}")
	}
	for key, answer := range answers {
		all = rawjson.Replace(all, key, answer)
	}
	more := *req
	more.Params = rawjson.Replace(req.Params, "inputResponses", all)
	more.Meta = rawjson.Lookup(more.Params, "_meta")
	return &more
}

// deliver takes an answer that the user gave here. a.mu is held.
func (a *Asks) deliver(call *waitingCall, key string, r *mcp.ElicitResult) bool {
	text, err := mcp.Encode(r)
	if err != nil || call.asks[key] == nil {
		return false
	}
	delete(call.asks, key)
	call.here[key] = text
	if len(call.asks) > 0 {
		return true
	}
	close(call.answered)
	if call.run != nil {
		a.running.Go(func() {
			defer close(call.done)
			call.res, call.err = call.run(call.ctx, call.here)
		})
	}
	return true
}

// continueCall runs a call with the answers of the user. Its further questions wait like the first.
func (a *Asks) continueCall(ctx context.Context, next mcp.Handler, req *mcp.Request) (*mcp.Result, error) {
	var target audit.Target
	res, err := next.ServeMCP(audit.WithTarget(ctx, &target), req)
	if err == nil && res.Type == mcp.ResultInputRequired {
		a.wait(ctx, next, req, target, res)
	}
	return res, err
}

// isAnswered reports whether the user has answered all questions here.
func (c *waitingCall) isAnswered() bool {
	select {
	case <-c.answered:
		return true
	default:
		return false
	}
}

// collect returns the result of a call that continues here. ok is false if the client continues it.
func (c *waitingCall) collect(ctx context.Context) (res *mcp.Result, err error, ok bool) {
	if !c.isAnswered() {
		return nil, nil, false
	}
	defer context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })()
	<-c.done
	c.cancel(nil)
	return c.res, c.err, true
}

// claim returns the waiting call that a request continues, or nil. Its client has the call again.
func (a *Asks) claim(req *mcp.Request) *waitingCall {
	state, ok := rawjson.String(rawjson.Lookup(req.Params, "requestState"))
	if !ok {
		return nil
	}
	id := stateID(req, state)
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.waiting, func(c *waitingCall) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	call := a.waiting[i]
	answers := rawjson.Lookup(req.Params, "inputResponses")
	for key, ask := range call.asks {
		action, known := rawjson.String(rawjson.Lookup(rawjson.Lookup(answers, key), "action"))
		if !known {
			action = "answered"
		}
		a.closeAskLocked(ask, action, "client")
	}
	clear(call.asks)
	a.removeCall(call)
	return call
}

// removeCall removes a call without ending it. a.mu is held.
func (a *Asks) removeCall(call *waitingCall) {
	a.waiting = slices.DeleteFunc(a.waiting, func(c *waitingCall) bool { return c == call })
	for _, release := range call.release {
		release()
	}
}

// dropCall is drop for a caller that does not hold a.mu.
func (a *Asks) dropCall(call *waitingCall, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.waiting, call) {
		a.drop(call, why)
	}
}

// drop ends a call whose client does not come back. a.mu is held.
func (a *Asks) drop(call *waitingCall, why error) {
	for _, ask := range call.asks {
		a.closeAskLocked(ask, "unanswered", "")
	}
	clear(call.asks)
	a.removeCall(call)
	call.cancel(why)
}

// watchClient makes the edge of a legacy client withdraw the questions of a result when they are
// answered here.
func (a *Asks) watchClient(req *mcp.Request, res *mcp.Result) {
	peer, ok := req.Peer.(mcpwire.Withdrawer)
	if !ok || res == nil || res.Type != mcp.ResultInputRequired {
		return
	}
	asked, err := decodeQuestions(res)
	if err != nil || asked.RequestState == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, call := range a.waiting {
		if call.id == stateID(req, *asked.RequestState) {
			peer.WithdrawWhen(call.answered)
		}
	}
}
