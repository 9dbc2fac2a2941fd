package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	// turnLimit is how long a call of an item that has never asked, or a call with an answer, waits
	// for its turn. A call that has waited so long runs beside the calls of other callers.
	turnLimit = 5 * time.Second
	// askingTurnLimit is the same for items that have asked before. Their calls wait for other
	// calls that work, but not for users.
	askingTurnLimit = time.Minute
	// askingPause is how long a call keeps its turn after a question. A call that asks several
	// questions at once sends them within this time.
	askingPause = 50 * time.Millisecond
	// askerLimit is how long a question waits until only one caller can have caused it.
	askerLimit = time.Minute
	// maxCallerQuestions limits the open questions of one caller.
	maxCallerQuestions = 64
	// maxQuietItems limits the items that a router remembers.
	maxQuietItems = 10_000
)

// questionRouter finds the call that a question of a legacy server belongs to. Over stdio and
// HTTP+SSE all messages share one channel, and a question does not name its call. So the router
// makes sure that only one caller's calls can be the cause:
//
//   - A call that may ask runs only in its turn. Calls of the same caller share a turn, because
//     the same user answers them. Tools, prompts and resources that have completed without a
//     question need no turn.
//   - A call that has asked gives its turn away until the answer is there: a server that waits for
//     an answer asks no further question for the same call. So a question that a person reads does
//     not hold up other clients.
//   - A call that has waited too long runs without a turn. If a question arrives while calls
//     of several callers run, it waits until all but one caller's have ended. It is refused after
//     [askerLimit], and never shown to a user who may be the wrong one.
type questionRouter struct {
	server    string
	serialize bool // calls without a turn never run

	mu      sync.Mutex
	calls   map[*trackedCall]struct{} // that run or wait for an answer
	queue   []*trackedCall            // that wait for a turn, the next one first
	quiet   map[quietItem]bool        // items that have completed: true if they have never asked
	changed chan struct{}             // closed at the next change of the fields above; nil if nothing waits for it
}

// trackedCall is a call on a connection with a questionRouter. The router's lock guards it.
type trackedCall struct {
	caller   Caller
	item     quietItem
	answerer mcp.Handler
	clock    *callClock // nil without limits
	ctx      context.Context
	end      context.CancelFunc // ends ctx

	startedAt time.Time // before the request was sent
	hasTurn   bool
	openCount int  // questions without an answer
	isBlocked bool // waits for answers, and has given its turn away
	hasAsked  bool
	isTask    bool // waits for the result of a task: it needs no turn
}

// errCallEnded ends a question when its call has ended.
var errCallEnded = errors.New("the call that caused the question has ended")

func newQuestionRouter(server string, serialize bool) *questionRouter {
	return &questionRouter{
		server: server, serialize: serialize, calls: map[*trackedCall]struct{}{}, quiet: map[quietItem]bool{},
	}
}

// isSameCaller reports whether the same client makes both calls. Clients without a name cannot be
// told apart.
func (c *trackedCall) isSameCaller(other *trackedCall) bool {
	return c == other || c.caller != (Caller{}) && c.caller == other.caller
}

// quietItem is a tool or prompt, or all resources: there may be any number of URIs.
type quietItem struct{ method, name string }

func itemOf(req *mcp.Request) quietItem {
	if req.Method == mcp.MethodReadResource {
		return quietItem{method: req.Method}
	}
	name, _ := rawjson.String(rawjson.Lookup(req.Params, "name"))
	return quietItem{req.Method, name}
}

// newTaskCall returns the call that waits for the result of a task. It needs no turn, and causes no
// other question: the questions of a task name the task, so that the transport knows the call.
func newTaskCall(ctx context.Context, caller Caller, req *mcp.Request) *trackedCall {
	call := newTrackedCall(ctx, caller, req)
	call.startedAt, call.isTask = time.Now(), true
	return call
}

func newTrackedCall(ctx context.Context, caller Caller, req *mcp.Request) *trackedCall {
	call := &trackedCall{caller: caller, item: itemOf(req)}
	call.answerer, _ = ctx.Value(answererKey{}).(mcp.Handler)
	call.ctx, call.end = context.WithCancel(ctx)
	return call
}

// startCall waits for the call's turn if it needs one. The caller must call endCall.
func (r *questionRouter) startCall(ctx context.Context, caller Caller, req *mcp.Request) (*trackedCall, error) {
	call := newTrackedCall(ctx, caller, req)
	r.mu.Lock()
	if r.quiet[call.item] && !r.serialize {
		call.startedAt = time.Now()
		r.calls[call] = struct{}{}
		r.mu.Unlock()
		return call, nil
	}
	r.queue = append(r.queue, call)
	limit := turnLimit
	if _, known := r.quiet[call.item]; known {
		limit = askingTurnLimit
	}
	r.mu.Unlock()
	if err := r.awaitTurn(ctx, call, limit); err != nil {
		call.end()
		return nil, err
	}
	return call, nil
}

// awaitTurn waits until the queued call gets its turn, or may run without one.
func (r *questionRouter) awaitTurn(ctx context.Context, call *trackedCall, limit time.Duration) error {
	var expired <-chan time.Time
	for waited := false; ; {
		r.mu.Lock()
		if waited || r.canTakeTurn(call) {
			r.calls[call] = struct{}{}
			if call.startedAt.IsZero() {
				call.startedAt = time.Now()
			}
			call.hasTurn, call.isBlocked = !waited, false
			r.leaveQueue(call)
			r.mu.Unlock()
			return nil
		}
		changed := r.nextChange()
		r.mu.Unlock()
		if expired == nil && !r.serialize {
			timer := time.NewTimer(limit)
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case <-changed:
		case <-expired:
			waited = true
		case <-ctx.Done():
			r.mu.Lock()
			r.leaveQueue(call)
			r.mu.Unlock()
			return context.Cause(ctx)
		}
	}
}

// canTakeTurn reports whether a queued call may run now. r.mu is held.
func (r *questionRouter) canTakeTurn(call *trackedCall) bool {
	for c := range r.calls {
		if c.hasTurn && !r.sharesTurn(c, call) {
			return false
		}
	}
	for _, c := range r.queue {
		if c == call {
			return true
		}
		if !r.sharesTurn(c, call) {
			return false
		}
	}
	return false
}

// sharesTurn reports whether two calls may have the turn at the same time.
func (r *questionRouter) sharesTurn(a, b *trackedCall) bool {
	return a == b || !r.serialize && a.isSameCaller(b)
}

// leaveQueue removes a call from the queue. r.mu is held.
func (r *questionRouter) leaveQueue(call *trackedCall) {
	r.queue = slices.DeleteFunc(r.queue, func(c *trackedCall) bool { return c == call })
	r.broadcast()
}

// nextChange returns a channel that is closed at the next change. r.mu is held.
func (r *questionRouter) nextChange() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// broadcast wakes everything that waits for a change. r.mu is held.
func (r *questionRouter) broadcast() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// setClock sets the clock that stands still while a question of the call is open.
func (r *questionRouter) setClock(call *trackedCall, clock *callClock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call.clock = clock
}

// endCall ends a call. answered means that the server has sent its result.
func (r *questionRouter) endCall(call *trackedCall, answered bool) {
	call.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, call)
	if _, known := r.quiet[call.item]; answered && !known {
		r.rememberItem(call.item, !call.hasAsked)
	}
	r.broadcast()
}

// rememberItem records whether an item asks. r.mu is held.
func (r *questionRouter) rememberItem(item quietItem, isQuiet bool) {
	if _, known := r.quiet[item]; known || len(r.quiet) < maxQuietItems {
		r.quiet[item] = isQuiet
	}
}

// answerQuestion passes a question to the answerer of the call that caused it. ctx ends when the
// server cancels the question.
func (r *questionRouter) answerQuestion(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	var candidates []*trackedCall
	switch call, ok := ctx.Value(trackedKey{}).(*trackedCall); {
	case ok: // the transport knows the call
		candidates = []*trackedCall{call}
	case mcpwire.RelatedTask(req.Params) == "": // else the task's caller does not wait for it now, and no other may be asked
		candidates = r.runningCalls(mcpwire.Arrival(ctx))
	}
	for {
		call, err := r.openQuestion(ctx, req, candidates)
		if err != nil {
			return nil, err
		}
		res, err := r.askCaller(ctx, call, req)
		if call.ctx.Err() == nil || ctx.Err() != nil {
			return res, err
		}
		// The call has ended, so another call of the same caller has asked.
		candidates = slices.DeleteFunc(candidates, func(c *trackedCall) bool { return c == call || !c.isSameCaller(call) })
	}
}

// runningCalls returns the calls that may have asked a question: those that started before it
// arrived and do not wait for an answer. If all wait, it returns all of them. Of a caller with
// several calls it returns also those that wait: an earlier question may be another call's than the
// one that it was opened for.
func (r *questionRouter) runningCalls(arrival time.Time) []*trackedCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	var running, blocked []*trackedCall
	for c := range r.calls {
		switch {
		case c.startedAt.After(arrival):
		case c.isBlocked:
			blocked = append(blocked, c)
		default:
			running = append(running, c)
		}
	}
	if running == nil {
		return blocked
	}
	for _, c := range blocked {
		if slices.ContainsFunc(running, c.isSameCaller) {
			running = append(running, c)
		}
	}
	return running
}

// openQuestion waits until the candidates that have not ended belong to one caller. It opens a
// question of one of its calls, which it returns.
func (r *questionRouter) openQuestion(ctx context.Context, req *mcp.Request, candidates []*trackedCall) (*trackedCall, error) {
	limit := time.NewTimer(askerLimit)
	defer limit.Stop()
	for {
		r.mu.Lock()
		alive := slices.DeleteFunc(slices.Clone(candidates), func(c *trackedCall) bool { return c.ctx.Err() != nil })
		if len(alive) == 0 {
			r.mu.Unlock()
			return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s is refused, because it is not clear which client to ask: %s works on no call", req.Method, r.server)
		}
		if call := soleAsker(alive); call != nil {
			defer r.mu.Unlock()
			return call, r.blockForQuestion(call)
		}
		changed := r.nextChange()
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limit.C:
			return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s is refused, because it is not clear which client to ask: %s works on calls of several; "+
				"run its calls one at a time (serialize), or give each client a process of its own (sharing)", req.Method, r.server)
		}
	}
}

// soleAsker returns the call to ask if all calls are the same caller's, else nil. A call in its
// turn comes first, and one that waits for an answer last.
func soleAsker(alive []*trackedCall) *trackedCall {
	best := alive[0]
	for _, c := range alive[1:] {
		if !c.isSameCaller(best) {
			return nil
		}
		if c.hasTurn && !best.hasTurn || best.isBlocked && !c.isBlocked {
			best = c
		}
	}
	return best
}

// blockForQuestion counts a question of a call, and gives the call's turn away after [askingPause].
// It refuses the question if the caller has too many. r.mu is held.
func (r *questionRouter) blockForQuestion(call *trackedCall) error {
	open := 0
	for c := range r.calls {
		if c.isSameCaller(call) {
			open += c.openCount
		}
	}
	if open >= maxCallerQuestions {
		return mcp.Errorf(jsonrpc.CodeInternal, "the client has %d questions without an answer already", open)
	}
	if call.isTask && call.openCount >= maxCallerQuestions { // such calls are not among r.calls
		return mcp.Errorf(jsonrpc.CodeInternal, "the task has %d questions without an answer already", call.openCount)
	}
	call.openCount++
	call.hasAsked = true
	if call.isTask {
		return nil
	}
	r.rememberItem(call.item, false)
	time.AfterFunc(askingPause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if call.openCount > 0 && !call.isBlocked {
			call.hasTurn, call.isBlocked = false, true
			r.broadcast()
		}
	})
	return nil
}

// askCaller asks the answerer of a call. Before it returns, the call has its turn again.
func (r *questionRouter) askCaller(ctx context.Context, call *trackedCall, req *mcp.Request) (res *mcp.Result, err error) {
	if call.answerer == nil {
		err = mcp.Errorf(jsonrpc.CodeMethodNotFound, "the client that made the call answers no questions of servers")
	} else {
		asked, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(call.ctx, func() { cancel(errCallEnded) })
		res, err = askAnswerer(asked, call.answerer, call.clock, req)
		stop()
		cancel(nil)
	}
	r.mu.Lock()
	call.openCount--
	mustWait := call.openCount == 0 && call.isBlocked && call.ctx.Err() == nil
	if mustWait {
		r.queue = slices.Insert(r.queue, 0, call) // before calls that have not started
	}
	r.mu.Unlock()
	if mustWait {
		if waitErr := r.awaitTurn(call.ctx, call, turnLimit); waitErr != nil {
			return nil, fmt.Errorf("%w: %w", errCallEnded, waitErr)
		}
	}
	return res, err
}

// trackedKey is the context key of a call's *trackedCall.
type trackedKey struct{}
