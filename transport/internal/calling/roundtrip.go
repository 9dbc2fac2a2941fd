package calling

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// RoundTrip implements [mcp.Transport].
func (c *caller) RoundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	e := c.currentEra()
	if res, err, handled := e.interceptRequest(ctx, req); handled {
		return res, err
	}
	return c.sendInTurn(ctx, req, e)
}

// sendInTurn is sendRequest. If calls that may be asked are made one at a time, it waits for its
// turn.
func (c *caller) sendInTurn(ctx context.Context, req *mcp.Request, e era) (*mcp.Response, error) {
	if c.serialTurn != nil && mcpwire.MayAsk(req.Method) {
		select {
		case c.serialTurn <- struct{}{}:
			defer func() { <-c.serialTurn }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return c.sendRequest(ctx, req, e)
}

// sendRequest sends a request and waits for its response.
func (c *caller) sendRequest(ctx context.Context, req *mcp.Request, e era) (*mcp.Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c.carrier != nil {
		return c.carryRequest(ctx, req, e)
	}
	x, err := c.startExchange(ctx, req, e)
	if err != nil {
		return nil, err
	}
	defer c.releaseExchange(x)
	if x.inline {
		defer x.queue.stopInline()
	}
	if req.Method == mcp.MethodListen && x.notify != nil {
		return c.awaitSubscription(ctx, x, e)
	}
	if x.notify == nil && ctx.Done() == nil {
		return c.finishExchange(x, e, <-x.done)
	}
	for {
		select {
		case r := <-x.done:
			return c.finishExchange(x, e, r)
		case <-x.queue.wake:
			x.queue.deliverAll(x.notify)
		case <-ctx.Done():
			return c.cancelExchange(ctx, x, nil)
		}
	}
}

// finishExchange delivers the notifications that preceded the reply, and returns the reply.
func (c *caller) finishExchange(x *exchange, e era, r reply) (*mcp.Response, error) {
	x.replyRead = true
	if x.notify != nil {
		x.queue.deliverAll(x.notify)
	}
	if err := r.failure(); err != nil {
		return nil, err
	}
	return c.decodeResult(e, r.result)
}

// awaitSubscription waits for the end of a subscription. It waits on one channel instead of
// three, which takes less memory for the long life of a subscription.
func (c *caller) awaitSubscription(ctx context.Context, x *exchange, e era) (*mcp.Response, error) {
	wake := x.queue.wake // x may be reused before the callback runs
	defer context.AfterFunc(ctx, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})()
	for {
		<-wake
		x.queue.deliverAll(x.notify)
		select {
		case r := <-x.done:
			return c.finishExchange(x, e, r)
		default:
		}
		if ctx.Err() != nil {
			return c.cancelExchange(ctx, x, nil)
		}
	}
}

// cancelExchange cancels the request at the server, unless it has been answered, and returns the
// cause of ctx. If pending is not nil, the request has not been written yet, and its cancellation
// is written after it.
func (c *caller) cancelExchange(ctx context.Context, x *exchange, pending *pendingError) (*mcp.Response, error) {
	cause := context.Cause(ctx)
	if c.takeExchange(x.id) != nil && x.method != mcpwire.MethodInitialize {
		if frame := encodeCancellation(x.id, cause); frame != nil {
			c.writePromptly(frame, pending)
		}
	}
	return nil, cause
}

// encodeCancellation encodes the notification that cancels a request, or returns nil if it cannot.
func encodeCancellation(id jsonrpc.ID, cause error) []byte {
	params, err := mcp.Encode(mcpwire.CancelledParams{RequestID: id.Append(nil), Reason: cause.Error()})
	if err != nil {
		return nil
	}
	return jsonrpc.AppendNotification(nil, mcpwire.NotificationCancelled, params)
}

// paramsEncoder is the part of an era that sending a request needs before the era is known.
type paramsEncoder interface {
	appendParams(dst []byte, req *mcp.Request, x *exchange) []byte
	// overhead estimates the size of a request without its method and params, in bytes.
	overhead() int
}

const envelopeSize = 80

// rawParams sends params unchanged.
type rawParams struct{}

func (rawParams) overhead() int { return envelopeSize }

func (rawParams) appendParams(dst []byte, req *mcp.Request, _ *exchange) []byte {
	return append(dst, req.Params...)
}

// startExchange registers an exchange and sends its request. ctx may be nil, for a request of the
// handshake.
func (c *caller) startExchange(ctx context.Context, req *mcp.Request, e paramsEncoder) (*exchange, error) {
	x, err := c.registerExchange(ctx, req)
	if err != nil {
		return nil, err
	}
	if c.carrier != nil {
		return x, c.carryInBackground(ctx, req, e, x)
	}
	c.linkRequest(ctx, x)
	frame := c.encodeRequest(req, e, x)
	if c.deliverRequest(ctx, x, frame) {
		return x, nil
	}
	if err := c.writeFrame(ctx, frame); err != nil {
		if pending, ok := errors.AsType[*pendingError](err); ok {
			_, err := c.cancelExchange(ctx, x, pending)
			return nil, err
		}
		err = c.explainWriteError(ctx, err)
		c.dropRequest(x.id, err)
		c.releaseExchange(x)
		return nil, err
	}
	return x, nil
}

// explainWriteError returns the error for a request that could not be written. If err means that
// the connection has ended, the reading loop most likely learns the reason: it may still be at the
// peer's last messages. So explainWriteError waits for it, but only for a moment, because some
// connections stay readable.
func (c *caller) explainWriteError(ctx context.Context, err error) error {
	const moment = time.Second
	if errors.Is(err, mcp.ErrConnection) || errors.Is(err, mcp.ErrClosed) {
		var cancelled <-chan struct{}
		if ctx != nil {
			cancelled = ctx.Done()
		}
		timer := time.NewTimer(moment)
		defer timer.Stop()
		select {
		case <-c.base.Done(): // ends when c.err is set
		case <-cancelled:
		case <-timer.C:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		err = c.err
	}
	return wrapConnectionError(err)
}

// linkRequest tells the recorder which call a request belongs to.
func (c *caller) linkRequest(ctx context.Context, x *exchange) {
	if c.sink != nil {
		c.sink.LinkRequest(ctx, x.id)
	}
}

// dropRequest tells the recorder that no response to a request of this side follows. err is nil if
// the request was cancelled.
func (c *caller) dropRequest(id jsonrpc.ID, err error) {
	if c.sink != nil {
		c.sink.DropRequest(framesink.Sent, id, err)
	}
}

// encodeRequest encodes the frame of a request.
func (c *caller) encodeRequest(req *mcp.Request, e paramsEncoder, x *exchange) []byte {
	frame := make([]byte, 0, e.overhead()+len(req.Method)+len(req.Params))
	frame = append(frame, `{"jsonrpc":"2.0","id":`...)
	frame = append(x.id.Append(frame), `,"method":`...)
	frame = append(rawjson.AppendString(frame, req.Method), `,"params":`...)
	return append(e.appendParams(frame, req, x), '}')
}

// registerExchange enters an exchange among those in flight.
func (c *caller) registerExchange(ctx context.Context, req *mcp.Request) (*exchange, error) {
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
	x.method, x.ctx, x.notify, x.wantsLogs = req.Method, ctx, req.Notify, req.LogLevel != ""
	if x.notify != nil {
		x.wantsProgress = !req.NoProgress && req.Method != mcp.MethodListen
		if x.queue.wake == nil {
			x.queue.wake = make(chan struct{}, 1)
		}
		if x.inline = c.callsInline(ctx, req); x.inline {
			x.queue.startInline(x.notify)
		}
	}
	if req.Method == mcp.MethodListen {
		x.filter = readFilter(req.Params)
	}
	if req.Method == mcpwire.MethodTaskResult {
		x.taskID, _ = rawjson.String(rawjson.Lookup(req.Params, "taskId"))
	}
	c.pending[c.lastID] = x
	c.startSweeps()
	return x, nil
}

// callsInline reports whether a notification is passed to a subscription at once. The responses of
// a carrier have notifications, too, and the gaps of its stream must precede what follows on them.
func (c *caller) callsInline(ctx context.Context, req *mcp.Request) bool {
	return req.Method == mcp.MethodListen && c.carrier == nil && mcpwire.HasInlineNotify(ctx)
}

// readFilter returns the filter of a subscription, or nil if the server will have to refuse it as
// unreadable.
func readFilter(params []byte) *mcp.SubscriptionFilter {
	var p mcp.ListenParams
	if mcp.Decode(params, &p) != nil {
		return nil
	}
	return &p.Notifications
}

// releaseExchange removes an exchange. It keeps an answered one for reuse, because neither the
// reading loop nor a [direct.Receiver] can reach it any more. An inline one may still be reached by
// a delivered change. With a carrier, another stream may still have a notification for one of a
// subscription, or in a session for one that has notifications.
func (c *caller) releaseExchange(x *exchange) {
	const kept = 64
	if !x.replyRead {
		c.dropRequest(x.id, nil)
	}
	isReachable := x.inline || c.carrier != nil && (x.method == mcp.MethodListen || (x.notify != nil || x.taskID != "") && !c.currentRevision().Modern())
	c.mu.Lock()
	defer c.mu.Unlock()
	if !x.replyRead {
		c.removeExchange(x.id)
		return
	}
	if len(c.free) < kept && !isReachable {
		wake := x.queue.wake // a late wake-up of this exchange does no harm to the next one
		*x = exchange{done: x.done}
		x.queue.wake = wake
		c.free = append(c.free, x)
	}
}

// decodeResult returns the response with a raw result. It returns an error if no extension of
// the client defines the type of the result.
func (c *caller) decodeResult(e era, raw []byte) (*mcp.Response, error) {
	res := readEdgeMembers(raw, e.revision())
	if !mcpwire.Vocabulary(c.opts.Extensions).ResultType(res.Type) {
		return nil, fmt.Errorf("the server answered with a result of type %q, which no extension of the client knows", res.Type)
	}
	return res, nil
}

// readEdgeMembers returns the response with the members that the edge reads: type and caching.
func readEdgeMembers(raw []byte, revision mcp.Revision) *mcp.Response {
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

func wrapConnectionError(err error) error {
	if errors.Is(err, mcp.ErrConnection) {
		return err
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}
