package serving

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/dowel-mcp/dowel/internal/lazyctx"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// maxRounds is the highest number of input_required results that one call of a legacy client may
// return.
const maxRounds = 100

// call is one request being served. It is the [mcp.Peer] of its handler.
type call struct {
	req        mcp.Request
	id         jsonrpc.ID
	era        era
	edge       *edge
	out        Writer
	batch      *responseBatch // collects the response; nil if the response is a frame of its own
	ctx        context.Context
	lazy       lazyctx.Context // ctx of a call in a table
	isStream   bool            // the quota counts it as a stream
	idReleased bool            // the client may use the id again; only the goroutine that runs the call reads and sets it
	isEncoding bool            // the handler has returned, and its result is being encoded; used by the same goroutine only
	answered   <-chan struct{} // closed when the questions of the next round have an answer elsewhere; used by the handler's goroutine only

	mu              sync.Mutex // held while a frame is written, so that no notification follows the response
	peerClosed      bool
	hasProgress     bool
	highestProgress float64           // highest progress value sent so far, if hasProgress
	encodedChanges  map[string][]byte // encoded changes without params, by method; see modern.appendChange
}

// answerRequest runs the handler and encodes the response. frame is nil if the client no longer
// waits for the response. refused is the error that frame holds, or nil.
func (c *call) answerRequest() (frame []byte, refused *mcp.Error) {
	res, err := c.runHandler()
	if context.Cause(c.ctx) == errShutdown {
		res, err = &mcp.Result{}, nil
	}
	if !c.closePeer() || c.isCancelled() {
		return nil, nil
	}
	c.isEncoding = true
	return c.encodeResponse(res, err)
}

// closePeer makes every later use of the call as a peer fail with [mcp.ErrPeerGone]. It reports
// false if the peer was closed before.
func (c *call) closePeer() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peerClosed {
		return false
	}
	c.peerClosed = true
	return true
}

// encodeEnd returns the frame that follows the response of a subscription without error, or nil
// if none follows.
func (c *call) encodeEnd(refused *mcp.Error) []byte {
	if c.req.Method != mcp.MethodListen || refused != nil {
		return nil
	}
	return c.era.appendEnd(nil, c)
}

// isCancelled reports whether the client no longer waits for the response. A subscription that
// the server shuts down is not cancelled: it ends with a result.
func (c *call) isCancelled() bool {
	if c.ctx.Err() == nil {
		return false
	}
	cause := context.Cause(c.ctx)
	for _, gone := range []error{frames.ErrCancelled, mcp.ErrConnection, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(cause, gone) {
			return true
		}
	}
	return false
}

func (c *call) sendResponse(frame []byte) {
	if c.batch != nil {
		c.batch.addResponse(c.id, frame)
		return
	}
	err := c.out.Write(frame) // Write has already logged the error
	if limit, ok := errors.AsType[*quota.LimitError](err); ok {
		_ = c.out.Write(RefuseAnswer(c.id, limit))
	}
}

// runHandler calls the handler, unless the edge answers the request itself, and returns the result.
func (c *call) runHandler() (*mcp.Result, error) {
	if res, err, handled := c.era.answerOwn(c); handled {
		return res, err
	}
	return c.runRounds()
}

// runRounds calls the handler. For a legacy client, it asks the questions of an input_required
// result and calls the handler again with the answers.
func (c *call) runRounds() (*mcp.Result, error) {
	req := &c.req
	for round := 0; ; round++ {
		res, err := c.edge.callHandler(c.ctx, req)
		if err != nil || res.Type != mcp.ResultInputRequired {
			return res, err
		}
		if round == maxRounds {
			return nil, &unansweredError{fmt.Sprintf("%s has asked for input %d times, the maximum for one call", c.req.Method, maxRounds)}
		}
		next, err := c.era.resolveInput(c.ctx, c, round, res)
		if next == nil || err != nil {
			return res, err
		}
		req = next
	}
}

// callHandler calls the handler. A panic of the handler is logged and becomes an internal error.
func (e *edge) callHandler(ctx context.Context, req *mcp.Request) (res *mcp.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.logger.Error("the handler panicked", "method", req.Method, "panic", p, "stack", string(debug.Stack()))
			res, err = nil, mcp.Errorf(jsonrpc.CodeInternal, "internal error")
		}
	}()
	res, err = e.handler.ServeMCP(ctx, req)
	if res == nil && err == nil {
		err = errors.New("the handler returned neither a result nor an error")
	}
	return res, err
}

func (c *call) encodeResponse(res *mcp.Result, err error) (frame []byte, refused *mcp.Error) {
	if err != nil {
		res, refused = c.era.encodeError(&c.req, err)
	}
	if res != nil {
		frame, err := c.era.appendResult(make([]byte, 0, estimateSize(res)), c, res)
		if err == nil {
			return frame, nil
		}
		c.edge.logger.Error("a result could not be encoded", "method", c.req.Method, "err", err)
		var own bool
		if refused, own = errors.AsType[*mcp.Error](err); !own {
			refused = mcp.Errorf(jsonrpc.CodeInternal, "the result could not be encoded")
		}
	}
	if refused.Data != nil {
		if err := rawjson.CheckAll(refused.Data); err != nil {
			c.edge.logger.Error("the data of an error was left out", "method", c.req.Method, "err", err)
			refused = &mcp.Error{Code: refused.Code, Message: refused.Message}
		}
	}
	return jsonrpc.AppendError(nil, c.id, refused), refused
}

// Change implements [mcp.Peer].
func (c *call) Change(_ context.Context, change mcp.Notification) error {
	if c.req.Method != mcp.MethodListen {
		return fmt.Errorf("a change belongs on %s, not on %s", mcp.MethodListen, c.req.Method)
	}
	if err := checkNotification(change); err != nil {
		return err
	}
	return c.sendFrame(func(dst []byte) []byte { return c.era.appendChange(dst, c, change) })
}

// TryChange implements [mcpwire.Announcer].
func (c *call) TryChange(change mcp.Notification) bool { return c.announce(change, true) }

// DeliverChange implements [mcpwire.Announcer].
func (c *call) DeliverChange(change mcp.Notification) bool { return c.announce(change, false) }

func (c *call) announce(change mcp.Notification, mayWrite bool) bool {
	w := newTryWriter(c.out, mayWrite)
	if w.isUseless() || c.req.Method != mcp.MethodListen || checkNotification(change) != nil || !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	return !c.peerClosed && !c.isCancelled() && w.try(c.era.appendChange(nil, c, change))
}

// RequestID implements [mcpwire.Identified].
func (c *call) RequestID() jsonrpc.ID { return c.id }

// WithdrawWhen implements [mcpwire.Withdrawer]. Only the handler may call it, before it returns.
func (c *call) WithdrawWhen(done <-chan struct{}) { c.answered = done }

// Disconnect implements [mcpwire.Disconnecter]. It reports false if the call's Writer does not.
func (c *call) Disconnect() bool {
	d, ok := c.out.(mcpwire.Disconnecter)
	return ok && d.Disconnect()
}

// sendFrame encodes and writes one frame that precedes the response. It holds c.mu meanwhile,
// which keeps the order of frames.
func (c *call) sendFrame(encode func([]byte) []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peerClosed || c.isCancelled() {
		return mcp.ErrPeerGone
	}
	frame := encode(nil)
	if frame == nil {
		return nil
	}
	return c.out.Write(frame)
}
