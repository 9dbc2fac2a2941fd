package hub

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
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
//   - A call that may ask runs only in its turn. Tools, prompts and resources that have completed
//     without a question need no turn. Calls of the same session share a turn until one of
//     their items is known to ask: the same client answers them. Calls without a session may be of
//     several clients, also if they have the same principal, so each has a turn of its own.
//   - A call that has asked gives its turn away until the answer is there: a server that waits for
//     an answer asks no further question for the same call. So a question that a person reads does
//     not hold up other clients.
//   - A call that has waited too long runs without a turn. If a question arrives while calls
//     of several callers run, it waits until the server has answered the calls of all but one. It
//     is refused after [askerLimit], or when one of the calls ends without an answer: the question
//     may be its own.
//
// So a question is shown to no other client than the one of its call, unless the server asks
// for a cancelled call: later than [askingPause], or although its item has once completed
// without a question.
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

	isAnswered bool // the server has sent its result, so none of its questions is open
}

// errCallEnded ends a question when its call has ended.
var errCallEnded = errors.New("the call that caused the question has ended")

func newQuestionRouter(server string, serialize bool) *questionRouter {
	return &questionRouter{
		server: server, serialize: serialize, calls: map[*trackedCall]struct{}{}, quiet: map[quietItem]bool{},
	}
}

// isSameSession reports whether the same client is known to make both calls. Two calls of one
// principal without a session may be of two clients.
func (c *trackedCall) isSameSession(other *trackedCall) bool {
	return c == other || c.caller.Session != "" && c.caller == other.caller
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
		if ctx.Err() == nil && (waited || r.canTakeTurn(call)) { // a call that has ended takes no turn
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

// sharesTurn reports whether two calls may have the turn at the same time. r.mu is held.
func (r *questionRouter) sharesTurn(a, b *trackedCall) bool {
	return a == b || !r.serialize && a.isSameSession(b) && !r.asks(a.item) && !r.asks(b.item)
}

// asks reports whether an item is known to ask. r.mu is held.
func (r *questionRouter) asks(item quietItem) bool {
	isQuiet, known := r.quiet[item]
	return known && !isQuiet
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

// endCall ends a call. err is the error of its request, nil with a result. A call that may ask and
// was not answered, because its client has cancelled it or its time is over, keeps its place for
// [askingPause]: the server may have asked before it knew.
func (r *questionRouter) endCall(call *trackedCall, err error) {
	var answer *mcp.Error
	r.mu.Lock()
	defer r.mu.Unlock()
	call.isAnswered = err == nil || errors.As(err, &answer)
	call.end()
	if _, known := r.quiet[call.item]; err == nil && !known {
		r.rememberItem(call.item, !call.hasAsked)
	}
	if call.isAnswered || r.quiet[call.item] {
		delete(r.calls, call)
	} else {
		time.AfterFunc(askingPause, func() { r.removeCall(call) })
	}
	r.broadcast()
}

// removeCall removes a call that has ended without an answer.
func (r *questionRouter) removeCall(call *trackedCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, call)
	r.broadcast()
}

// rememberItem records whether an item asks. r.mu is held.
func (r *questionRouter) rememberItem(item quietItem, isQuiet bool) {
	if _, known := r.quiet[item]; known || len(r.quiet) < maxQuietItems {
		r.quiet[item] = isQuiet
	}
}

// trackedKey is the context key of a call's *trackedCall.
type trackedKey struct{}
