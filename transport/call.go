package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxRounds bounds how often one legacy call may ask.
const maxRounds = 100

// call is one request being served, and the Peer of its handler.
type call struct {
	req    mcp.Request
	id     jsonrpc.ID
	era    era
	edge   *edge
	out    Writer
	batch  *batch // where the response is collected; nil sends it alone
	ctx    context.Context
	cancel context.CancelCauseFunc
	left   bool // its id is free; of who runs the call

	mu         sync.Mutex // orders what is sent for the call: nothing comes behind its response
	over       bool
	acked      bool
	progressed bool
	progress   float64           // the highest that was reported
	changes    map[string][]byte // encoded changes without params, by method; see modern.appendChange
}

// answer serves the request. The response is nil where nobody waits for it any more; refused is the error that it holds.
func (c *call) answer() (frame []byte, refused *mcp.Error) {
	res, err := c.serve()
	if context.Cause(c.ctx) == errShutdown {
		res, err = &mcp.Result{}, nil
	}
	if !c.close() || c.cancelled() {
		return nil, nil
	}
	return c.response(res, err)
}

// close lets nothing more be sent for the call but its response; false where it was closed before.
func (c *call) close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.over = true
	return true
}

// ended is what follows the response of a subscription that has ended well; nil for nothing.
func (c *call) ended(refused *mcp.Error) []byte {
	if c.req.Method != mcp.MethodListen || refused != nil {
		return nil
	}
	return c.era.ended(nil, c)
}

// cancelled reports whether nobody waits for the response any more.
func (c *call) cancelled() bool {
	if c.ctx.Err() == nil {
		return false
	}
	cause := context.Cause(c.ctx)
	for _, gone := range []error{errCancelled, mcp.ErrConnection, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(cause, gone) {
			return true
		}
	}
	return false
}

func (c *call) send(frame []byte) {
	if c.batch != nil {
		c.batch.add(frame)
		return
	}
	_ = c.out.Write(frame) // who cannot be written to has been told of
}

// serve calls the handler until its result is settled: once, but for a legacy client that is asked.
func (c *call) serve() (*mcp.Result, error) {
	if res, err, handled := c.era.own(c); handled {
		return res, err
	}
	req := &c.req
	for round := 0; ; round++ {
		res, err := c.edge.invoke(c.ctx, req)
		if err != nil || res.Type != mcp.ResultInputRequired {
			return res, err
		}
		if round == maxRounds {
			return nil, &askError{fmt.Sprintf("%s has asked for input %d times without coming to an end, which is as often as one call may", c.req.Method, maxRounds)}
		}
		next, err := c.era.settle(c.ctx, c, round, res)
		if next == nil || err != nil {
			return res, err
		}
		req = next
	}
}

// invoke is where a panic ends.
func (e *edge) invoke(ctx context.Context, req *mcp.Request) (res *mcp.Result, err error) {
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

func (c *call) response(res *mcp.Result, err error) (frame []byte, refused *mcp.Error) {
	if err != nil {
		res, refused = c.era.refuse(&c.req, err)
	}
	if res != nil {
		frame, err := c.era.appendResult(make([]byte, 0, sizeHint(res)), c, res)
		if err == nil {
			return frame, nil
		}
		c.edge.logger.Error("a result could not be encoded", "method", c.req.Method, "err", err)
		var own bool
		if refused, own = errors.AsType[*mcp.Error](err); !own {
			refused = mcp.Errorf(jsonrpc.CodeInternal, "the result could not be encoded")
		}
	}
	return jsonrpc.AppendError(nil, c.id, refused), refused
}

// Notify implements [mcp.Peer].
func (c *call) Notify(_ context.Context, n mcp.Notification) error {
	params := mcpwire.AdaptParams(c.req.Revision, n.Method, n.Params)
	return c.emit(func(dst []byte) []byte {
		if n.Method == mcp.NotificationProgress && !c.req.Revision.Modern() && !c.rises(params) {
			return nil
		}
		return jsonrpc.AppendNotification(dst, n.Method, params)
	})
}

// rises reports whether progress is above what was reported before. A call that asks runs again from the top for an older
// client, to which it is one call. c.mu is held.
func (c *call) rises(params []byte) bool {
	now, err := strconv.ParseFloat(string(rawjson.Lookup(params, "progress")), 64)
	if err != nil || c.progressed && now <= c.progress {
		return false
	}
	c.progressed, c.progress = true, now
	return true
}

// Change implements [mcp.Peer].
func (c *call) Change(_ context.Context, change mcp.Change) error {
	if c.req.Method != mcp.MethodListen {
		return fmt.Errorf("a change belongs on %s, not on %s", mcp.MethodListen, c.req.Method)
	}
	return c.emit(func(dst []byte) []byte { return c.era.appendChange(dst, c, change) })
}

// TryChange implements [mcp.Announcer].
func (c *call) TryChange(change mcp.Change) bool {
	w, ok := c.out.(TryWriter)
	if !ok || c.req.Method != mcp.MethodListen || !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	return !c.over && !c.cancelled() && w.TryWrite(c.era.appendChange(nil, c, change))
}

// Disconnect implements [mcp.Disconnecter] as far as what carries the call does.
func (c *call) Disconnect() bool {
	d, ok := c.out.(mcp.Disconnecter)
	return ok && d.Disconnect()
}

// emit sends one frame before the response. The lock is held while it is sent, so that order is kept.
func (c *call) emit(encode func([]byte) []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.cancelled() {
		return mcp.ErrPeerGone
	}
	frame := encode(nil)
	if frame == nil {
		return nil
	}
	return c.out.Write(frame)
}
