package hub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// This file passes the questions of a legacy server to the clients.

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
		// The call has ended, so another call of the same session has asked.
		candidates = slices.DeleteFunc(candidates, func(c *trackedCall) bool { return c == call || !c.isSameSession(call) })
	}
}

// runningCalls returns the calls that may have asked a question: calls that started before it
// arrived and do not wait for an answer. If all wait, it returns all of them. Of a session with
// several calls it returns the waiting ones too: the router may have opened an earlier question for
// the wrong call. A cancelled call waits for nothing: the end of its question may make the server
// ask again.
func (r *questionRouter) runningCalls(arrival time.Time) []*trackedCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	var running, blocked []*trackedCall
	for c := range r.calls {
		switch {
		case c.startedAt.After(arrival):
		case c.isBlocked && c.ctx.Err() == nil:
			blocked = append(blocked, c)
		default:
			running = append(running, c)
		}
	}
	if running == nil {
		return blocked
	}
	for _, c := range blocked {
		if slices.ContainsFunc(running, c.isSameSession) {
			running = append(running, c)
		}
	}
	return running
}

// openQuestion waits until the candidates without an answer of the server belong to one session. It
// opens a question of one of its calls, which it returns.
func (r *questionRouter) openQuestion(ctx context.Context, req *mcp.Request, candidates []*trackedCall) (*trackedCall, error) {
	limit := time.NewTimer(askerLimit)
	defer limit.Stop()
	for {
		r.mu.Lock()
		if call, err := r.findAsker(req, candidates); call != nil || err != nil {
			defer r.mu.Unlock()
			if err == nil {
				err = r.blockForQuestion(call)
			}
			return call, err
		}
		changed := r.nextChange()
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limit.C:
			return nil, r.refuseQuestion(req, "%s works on calls of several; "+
				"run its calls one at a time (serialize), or give each client a process of its own (sharing)", r.server)
		}
	}
}

// refuseQuestion returns the error for a question that cannot be shown to any client.
func (r *questionRouter) refuseQuestion(req *mcp.Request, why string, args ...any) *mcp.Error {
	return mcp.Errorf(jsonrpc.CodeInternal, "%s is refused, because it is not clear which client to ask: %s", req.Method, fmt.Sprintf(why, args...))
}

// findAsker returns the call to ask. It returns nil without an error if that may become clear when
// another call is answered. A call that has ended without an answer may have caused the question,
// too: the client that has cancelled it must not be asked, and no other one in its place. r.mu is
// held.
func (r *questionRouter) findAsker(req *mcp.Request, candidates []*trackedCall) (*trackedCall, error) {
	var alive, ended []*trackedCall
	for _, c := range candidates {
		switch {
		case c.isAnswered:
		case c.ctx.Err() != nil:
			ended = append(ended, c)
		default:
			alive = append(alive, c)
		}
	}
	if len(alive) == 0 {
		return nil, r.refuseQuestion(req, "%s works on no call", r.server)
	}
	if slices.ContainsFunc(ended, func(c *trackedCall) bool { return !c.isSameSession(alive[0]) }) {
		return nil, r.refuseQuestion(req, "%s has worked on calls of several, and one of them was cancelled", r.server)
	}
	return soleAsker(alive), nil
}

// soleAsker returns the call to ask if all calls are of one session, else nil. A call in its
// turn comes first, and one that waits for an answer last.
func soleAsker(alive []*trackedCall) *trackedCall {
	best := alive[0]
	for _, c := range alive[1:] {
		if !c.isSameSession(best) {
			return nil
		}
		if c.hasTurn && !best.hasTurn || best.isBlocked && !c.isBlocked {
			best = c
		}
	}
	return best
}

// blockForQuestion counts a question of a call, and gives the call's turn away after [askingPause].
// It refuses the question if the client has too many; calls of one principal without a session
// count together. r.mu is held.
func (r *questionRouter) blockForQuestion(call *trackedCall) error {
	open := 0
	for c := range r.calls {
		if c == call || c.caller != (Caller{}) && c.caller == call.caller {
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
