package calling

import (
	"context"
	"errors"
	"fmt"
	"github.com/dowel-mcp/dowel/transport"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// RoundTrip implements [mcp.Transport].
func (c *caller) RoundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	speak := c.dialect()
	if res, err, handled := speak.roundTrip(ctx, req); handled {
		return res, err
	}
	if c.turn != nil && mcp.MayAsk(req.Method) {
		select {
		case c.turn <- struct{}{}:
			defer func() { <-c.turn }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return c.exchange(ctx, req, speak)
}

// exchange sends a request and waits for its response.
func (c *caller) exchange(ctx context.Context, req *mcp.Request, speak dialect) (*mcp.Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c.carrier != nil {
		return c.carry(ctx, req, speak)
	}
	x, err := c.startIn(ctx, req, speak)
	if err != nil {
		return nil, err
	}
	defer c.drop(x)
	if req.Method == mcp.MethodListen && x.notify != nil {
		return c.subscription(ctx, x, speak)
	}
	if x.notify == nil && ctx.Done() == nil {
		return c.finish(x, speak, <-x.done)
	}
	for {
		select {
		case r := <-x.done:
			return c.finish(x, speak, r)
		case <-x.queue.wake:
			x.queue.deliver(x.notify)
		case <-ctx.Done():
			return c.giveUp(ctx, x)
		}
	}
}

// finish delivers what came before the reply, and the reply.
func (c *caller) finish(x *exchange, speak dialect, r reply) (*mcp.Response, error) {
	x.answered = true
	if x.notify != nil {
		x.queue.deliver(x.notify)
	}
	if err := r.failure(); err != nil {
		return nil, err
	}
	return c.result(speak, r.result)
}

// subscription is exchange for a request that lives long: it waits on one channel, not on three.
func (c *caller) subscription(ctx context.Context, x *exchange, speak dialect) (*mcp.Response, error) {
	wake := x.queue.wake // the exchange may be used again when this is called
	defer context.AfterFunc(ctx, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})()
	for {
		<-wake
		x.queue.deliver(x.notify)
		select {
		case r := <-x.done:
			return c.finish(x, speak, r)
		default:
		}
		if ctx.Err() != nil {
			return c.giveUp(ctx, x)
		}
	}
}

// giveUp cancels the request at the server, if it still works on it.
func (c *caller) giveUp(ctx context.Context, x *exchange) (*mcp.Response, error) {
	return c.giveUpBehind(ctx, x, nil)
}

// giveUpBehind is giveUp of a request that may still be on its way, which the cancellation must not overtake.
func (c *caller) giveUpBehind(ctx context.Context, x *exchange, pending *pendingError) (*mcp.Response, error) {
	cause := context.Cause(ctx)
	if c.take(x.id) != nil && x.method != mcp.MethodInitialize {
		params, err := mcp.Encode(mcp.CancelledParams{RequestID: x.id.Append(nil), Reason: cause.Error()})
		if err == nil {
			c.sendSoon(jsonrpc.AppendNotification(nil, mcp.NotificationCancelled, params), pending)
		}
	}
	return nil, cause
}

// start sends a request that nobody listens to.
func (c *caller) start(req *mcp.Request, speak dialectParams) (*exchange, error) {
	return c.startIn(nil, req, speak)
}

// dialectParams is the part of a dialect that a request needs before the era is known.
type dialectParams interface {
	appendParams(dst []byte, req *mcp.Request, x *exchange) []byte
	// overhead is about how many bytes a request takes beside its method and params.
	overhead() int
}

const envelopeSize = 80

// plain sends params as they are.
type plain struct{}

func (plain) overhead() int { return envelopeSize }

func (plain) appendParams(dst []byte, req *mcp.Request, _ *exchange) []byte {
	return append(dst, req.Params...)
}

// startIn enters an exchange among those in flight and sends its request.
func (c *caller) startIn(ctx context.Context, req *mcp.Request, speak dialectParams) (*exchange, error) {
	x, err := c.register(ctx, req)
	if err != nil {
		return nil, err
	}
	if c.carrier != nil {
		return x, c.carryAside(ctx, req, speak, x)
	}
	if err := c.send(ctx, c.request(req, speak, x)); err != nil {
		if pending, ok := errors.AsType[*pendingError](err); ok {
			_, err := c.giveUpBehind(ctx, x, pending)
			return nil, err
		}
		c.drop(x)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.err != nil {
			err = c.err
		}
		return nil, connectionError(err)
	}
	return x, nil
}

// request encodes a request.
func (c *caller) request(req *mcp.Request, speak dialectParams, x *exchange) []byte {
	frame := make([]byte, 0, speak.overhead()+len(req.Method)+len(req.Params))
	frame = append(frame, `{"jsonrpc":"2.0","id":`...)
	frame = append(x.id.Append(frame), `,"method":`...)
	frame = append(rawjson.AppendString(frame, req.Method), `,"params":`...)
	return append(speak.appendParams(frame, req, x), '}')
}

// register enters an exchange among those in flight.
func (c *caller) register(ctx context.Context, req *mcp.Request) (*exchange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, fmt.Errorf("%w: %w", transport.ErrUnsent, c.err)
	}
	var x *exchange
	if n := len(c.free); n > 0 {
		x, c.free = c.free[n-1], c.free[:n-1]
	} else {
		x = &exchange{done: make(chan reply, 1)}
	}
	c.lastID++
	x.id = jsonrpc.IntID(c.lastID)
	x.method, x.ctx, x.notify, x.logs = req.Method, ctx, req.Notify, req.LogLevel != ""
	if x.notify != nil {
		x.steps = !req.NoProgress && req.Method != mcp.MethodListen
		x.queue.wake = make(chan struct{}, 1)
	}
	if req.Method == mcp.MethodListen {
		x.filter = filterOf(req.Params)
	}
	c.pending[c.lastID] = x
	return x, nil
}

// filterOf returns the filter of a subscription; nil where it cannot be read, which is the server's to refuse.
func filterOf(params []byte) *mcp.SubscriptionFilter {
	var p mcp.ListenParams
	if mcp.Decode(params, &p) != nil {
		return nil
	}
	return &p.Notifications
}

// drop forgets an exchange. One that was answered is used again: the reading loop, which sends the answer, cannot reach it
// any more.
func (c *caller) drop(x *exchange) {
	const kept = 64
	c.mu.Lock()
	defer c.mu.Unlock()
	if !x.answered {
		c.forget(x.id)
		return
	}
	if len(c.free) < kept {
		*x = exchange{done: x.done}
		c.free = append(c.free, x)
	}
}

// result takes a result apart: its type has to be one that is understood.
func (c *caller) result(speak dialect, raw []byte) (*mcp.Response, error) {
	res := readResult(raw, speak.revision())
	if !c.opts.Vocabulary.ResultType(res.Type) {
		return nil, fmt.Errorf("the server answered with a result of type %q, which nobody here understands", res.Type)
	}
	return res, nil
}

// readResult finds what belongs to the edge in a result.
func readResult(raw []byte, revision mcp.Revision) *mcp.Response {
	res := &mcp.Response{Type: mcp.ResultComplete, Raw: raw, Revision: revision}
	if !revision.Modern() {
		return res
	}
	for it := rawjson.Object(raw); it.Next(); {
		switch string(it.Key) {
		case "resultType":
			if string(it.Value) != `"complete"` {
				t, _ := rawjson.String(it.Value)
				res.Type = mcp.ResultType(t)
			}
		case "ttlMs":
			if ms, err := strconv.ParseInt(string(it.Value), 10, 64); err == nil && ms > 0 {
				res.Cache.TTL = time.Duration(min(ms, maxTTL)) * time.Millisecond
			}
		case "cacheScope":
			if string(it.Value) == `"public"` {
				res.Cache.Scope = mcp.CachePublic
			}
		}
	}
	return res
}

const maxTTL = 365 * 24 * 3600 * 1000 // milliseconds

func connectionError(err error) error {
	if errors.Is(err, mcp.ErrConnection) {
		return err
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}
