package calling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// maxQuestions is the highest number of questions that a server may ask at the same time. Many
// clients may share a connection; a hub limits the questions of each.
const maxQuestions = 256

// handleQuestion answers a request of the server on a goroutine of its own. of is the context of
// the call that caused the request and call its id; of is nil if the channel does not tell.
func (c *caller) handleQuestion(of context.Context, call jsonrpc.ID, msg jsonrpc.Message) {
	e := c.currentEra()
	if msg.Method == mcpwire.MethodPing && (e == nil || !e.revision().Modern()) {
		c.writeUnawaited(jsonrpc.AppendResult(nil, msg.ID, []byte("{}")))
		return
	}
	if e == nil || e.revision().Modern() {
		c.logger.Warn("the server sent a request, which the protocol forbids here", "method", msg.Method)
		return
	}
	if of == nil || mcpwire.RelatedTask(msg.Params) != "" { // messages of a task may come on any stream
		of, call = c.questionContext(msg.Params)
	}
	ctx, cancel := context.WithCancelCause(mcpwire.WithArrival(of, time.Now()))
	if refused := c.registerQuestion(msg.ID, cancel); refused != nil {
		cancel(nil)
		c.writeUnawaited(jsonrpc.AppendError(nil, msg.ID, refused))
		return
	}
	stop := context.AfterFunc(c.base, func() { cancel(context.Cause(c.base)) })
	go func() {
		defer c.wg.Done()
		defer stop()
		frame := c.encodeAnswer(ctx, e, msg)
		cancelled := ctx.Err() != nil
		c.mu.Lock()
		delete(c.questions, msg.ID)
		c.mu.Unlock()
		cancel(nil)
		if cancelled {
			c.dropQuestion(msg.ID)
		} else if err := c.conn.Write(frame); err != nil {
			c.failAsker(call, msg.Method, err)
		}
	}()
}

// dropQuestion tells the recorder that a question gets no answer.
func (c *caller) dropQuestion(id jsonrpc.ID) {
	if c.sink != nil {
		c.sink.DropRequest(framesink.Received, id, nil)
	}
}

// failAsker fails the call that waits for an answer which the server has not accepted: it would
// wait until its limit. call is zero if the call is unknown. A load balancer that brings the answer
// to another replica than the question's is the most likely reason.
func (c *caller) failAsker(call jsonrpc.ID, method string, err error) {
	err = fmt.Errorf("the server did not accept the answer to its %s: %w; if replicas of the server share this address, keep each session "+
		"at one of them (sticky sessions), or use a server of revision %s", method, err, mcp.Revision20260728)
	x := c.takeExchange(call)
	if x == nil {
		c.logger.Warn("a call may wait in vain", "err", err)
		return
	}
	from := x.source
	c.dropRequest(call, err)
	x.deliverReply(reply{err: err})
	if from != nil {
		from.Close() // the response would come from there
	}
	params, err := mcp.Encode(mcpwire.CancelledParams{RequestID: call.Append(nil), Reason: "the answer to " + method + " was not accepted"})
	if err == nil {
		c.writeUnawaited(jsonrpc.AppendNotification(nil, mcpwire.NotificationCancelled, params))
	}
}

// registerQuestion enters a question among those being answered, or refuses it.
func (c *caller) registerQuestion(id jsonrpc.ID, cancel context.CancelCauseFunc) *mcp.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, taken := c.questions[id]; {
	case taken:
		return mcp.Errorf(jsonrpc.CodeInvalidRequest, "id %s is in use by a request in flight", id)
	case len(c.questions) >= maxQuestions:
		return mcp.Errorf(jsonrpc.CodeInternal, "more than %d requests are in flight: wait for responses and try again", maxQuestions)
	case c.closed:
		return mcp.Errorf(jsonrpc.CodeInternal, "%s", mcp.ErrClosed)
	}
	c.questions[id] = cancel
	c.wg.Add(1)
	return nil
}

// questionContext returns the context for a question and the only request that can have caused it.
// If several can, it returns the context of the connection and no request. A question of a task
// comes while tasks/result waits for the task.
func (c *caller) questionContext(params json.RawMessage) (ctx context.Context, call jsonrpc.ID) {
	task := mcpwire.RelatedTask(params)
	c.mu.Lock()
	defer c.mu.Unlock()
	var only *exchange
	for _, x := range c.pending {
		if x.taskID != task || task == "" && !mcpwire.MayAsk(x.method) {
			continue
		}
		if only != nil {
			return c.base, jsonrpc.ID{}
		}
		only = x
	}
	switch {
	case only == nil:
		return c.base, jsonrpc.ID{}
	case only.ctx == nil:
		return c.base, only.id
	}
	return only.ctx, only.id
}

func (c *caller) encodeAnswer(ctx context.Context, e era, msg jsonrpc.Message) (frame []byte) {
	defer func() {
		if p := recover(); p != nil {
			c.logger.Error("the handler of a question panicked", "method", msg.Method, "panic", p, "stack", string(debug.Stack()))
			frame = jsonrpc.AppendError(nil, msg.ID, mcp.Errorf(jsonrpc.CodeInternal, "internal error"))
		}
	}()
	req := &mcp.Request{Method: msg.Method, Params: msg.Params, Revision: e.revision(), Meta: rawjson.Lookup(msg.Params, "_meta")}
	res, err := e.answerQuestion(ctx, req)
	if err == nil && res != nil {
		var raw []byte
		if raw, err = frames.AppendResult(nil, res); err == nil {
			if task := mcpwire.RelatedTask(msg.Params); task != "" {
				raw = mcpwire.WithRelatedTask(raw, task)
			}
			return jsonrpc.AppendResult(nil, msg.ID, mcpwire.AdaptResult(e.revision(), msg.Method, raw))
		}
	}
	var protocol *mcp.Error
	if !errors.As(err, &protocol) {
		protocol = mcp.Errorf(jsonrpc.CodeInternal, "%s could not be answered", msg.Method)
		c.logger.Error("a question of the server could not be answered", "method", msg.Method, "err", err)
	}
	return jsonrpc.AppendError(nil, msg.ID, protocol)
}
