package transport

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxQuestions bounds what a server may ask at the same time.
const maxQuestions = 64

// question answers a request of the server, in a goroutine of its own.
func (c *caller) question(msg jsonrpc.Message) { c.questionIn(nil, msg) }

// questionIn is question for one that came on the way of a call, whose context is known; nil where it is not.
func (c *caller) questionIn(of context.Context, msg jsonrpc.Message) {
	speak := c.dialect()
	if msg.Method == mcp.MethodPing && (speak == nil || !speak.revision().Modern()) {
		c.sendLater(jsonrpc.AppendResult(nil, msg.ID, []byte("{}")))
		return
	}
	if speak == nil || speak.revision().Modern() {
		c.logger.Warn("the server sent a request, which the protocol forbids here", "method", msg.Method)
		return
	}
	if of == nil {
		of = c.context()
	}
	ctx, cancel := context.WithCancelCause(of)
	if refused := c.ask(msg.ID, cancel); refused != nil {
		cancel(nil)
		c.sendLater(jsonrpc.AppendError(nil, msg.ID, refused))
		return
	}
	stop := context.AfterFunc(c.base, func() { cancel(context.Cause(c.base)) })
	go func() {
		defer c.wg.Done()
		defer stop()
		frame := c.answer(ctx, speak, msg)
		cancelled := ctx.Err() != nil
		c.mu.Lock()
		delete(c.asked, msg.ID)
		c.mu.Unlock()
		cancel(nil)
		if !cancelled {
			_ = c.conn.Write(frame)
		}
	}()
}

// ask enters a question among those that are being answered.
func (c *caller) ask(id jsonrpc.ID, cancel context.CancelCauseFunc) *mcp.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, taken := c.asked[id]; {
	case taken:
		return mcp.Errorf(jsonrpc.CodeInvalidRequest, "id %s is in use by a request in flight", id)
	case len(c.asked) >= maxQuestions:
		return mcp.Errorf(jsonrpc.CodeInternal, "more than %d requests are in flight: wait for responses and try again", maxQuestions)
	case c.closed:
		return mcp.Errorf(jsonrpc.CodeInternal, "%s", mcp.ErrClosed)
	}
	c.asked[id] = cancel
	c.wg.Add(1)
	return nil
}

// context returns the context in which a question is answered: that of the call that caused it, where there is only one
// that can have.
func (c *caller) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx := c.base
	n := 0
	for _, x := range c.pending {
		if mcp.MayAsk(x.method) {
			if n++; x.ctx != nil {
				ctx = x.ctx
			}
		}
	}
	if n != 1 {
		return c.base
	}
	return ctx
}

func (c *caller) answer(ctx context.Context, speak dialect, msg jsonrpc.Message) (frame []byte) {
	defer func() {
		if p := recover(); p != nil {
			c.logger.Error("the handler of a question panicked", "method", msg.Method, "panic", p, "stack", string(debug.Stack()))
			frame = jsonrpc.AppendError(nil, msg.ID, mcp.Errorf(jsonrpc.CodeInternal, "internal error"))
		}
	}()
	req := &mcp.Request{Method: msg.Method, Params: msg.Params, Revision: speak.revision(), Meta: rawjson.Lookup(msg.Params, "_meta")}
	res, err := speak.request(ctx, req)
	if err == nil && res != nil {
		var raw []byte
		if raw, err = rawBody(nil, res); err == nil {
			return jsonrpc.AppendResult(nil, msg.ID, mcpwire.AdaptResult(speak.revision(), msg.Method, raw))
		}
	}
	var protocol *mcp.Error
	if !errors.As(err, &protocol) {
		protocol = mcp.Errorf(jsonrpc.CodeInternal, "%s could not be answered", msg.Method)
		c.logger.Error("a question of the server could not be answered", "method", msg.Method, "err", err)
	}
	return jsonrpc.AppendError(nil, msg.ID, protocol)
}
