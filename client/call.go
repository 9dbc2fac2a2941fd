package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// do makes one call of a user: from the cache, or from the server with everything that a call may bring. name is what
// the call is about, for errors.
func (c *Client) do(ctx context.Context, method, name string, params json.RawMessage, o CallOptions) (*mcp.Response, error) {
	slot, resp := c.lookup(method, params, &o)
	if resp != nil {
		return resp, nil
	}
	params, err := withMeta(params, o.Meta)
	if err != nil {
		return nil, c.failure(method, name, err)
	}
	ctx, k := c.start(ctx, method, &o)
	resp, asked, err := c.exchange(ctx, method, params, &o, k)
	c.stop(k)
	if err != nil {
		return nil, c.failure(method, name, err)
	}
	if !asked {
		c.cache.store(slot, resp)
	}
	return resp, nil
}

// exchange sends the request until its result asks for nothing more. asked says that an earlier one did.
func (c *Client) exchange(ctx context.Context, method string, params json.RawMessage, o *CallOptions, k *clock) (res *mcp.Response, asked bool, err error) {
	req := &mcp.Request{Method: method, Params: params, LogLevel: c.logLevel(o), Notify: c.listener(o, k)}
	req.NoProgress = o.OnProgress == nil && !k.listens()
	r := rounds{client: c, method: method, original: params, clock: k, limit: c.opts.Limits.MaxRounds}
	if o.Limits.MaxRounds > 0 {
		r.limit = o.Limits.MaxRounds
	}
	for {
		resp, err := c.send(ctx, req, k, c.conn.limit(o.Limits.Connect, o.Limits.Start))
		switch {
		case err == nil && resp.Type != mcp.ResultInputRequired:
			return resp, r.count > 0, c.understood(resp)
		case err == nil:
			params, err = r.answer(ctx, resp)
		default:
			params, err = r.visit(ctx, err)
		}
		if err != nil {
			return nil, true, err
		}
		next := *req
		next.Params = params
		req = &next
	}
}

// send makes one round trip. It is made again where that is safe.
func (c *Client) send(ctx context.Context, req *mcp.Request, k *clock, reach time.Duration) (*mcp.Response, error) {
	var failed attempts
	for {
		l, err := c.conn.acquire(ctx, reach)
		if err != nil {
			return nil, err
		}
		k.send()
		resp, err := l.transport.RoundTrip(ctx, req)
		k.received()
		if err == nil || !c.again(ctx, l, req.Method, reach, &failed, err) {
			return resp, err
		}
	}
}

// attempts are those of one request that have failed.
type attempts struct {
	since time.Time
	unmet int // before the request was sent
	cut   int // after that
}

// mostCut bounds how often a request is sent again that may have been served: a server that dies takes the connection first, and
// the one in its place then does not know the session.
const mostCut = 2

// again reports whether a request that failed may be sent again, when it is time to. What was never sent, since the server
// could not be reached, may be any request.
func (c *Client) again(ctx context.Context, l *link, method string, reach time.Duration, failed *attempts, err error) bool {
	if failed.since.IsZero() {
		failed.since = time.Now()
	}
	if failed.cut == 0 && c.conn.distrust(l, err) {
		failed.cut++
		return true // the server refused to look at the request
	}
	most := c.opts.Restart.Max
	switch {
	case !errors.Is(err, mcp.ErrConnection) || most == 0 || !c.conn.patient(failed.since, reach):
		return false
	case unreached(err):
		failed.unmet++
		return failed.unmet <= most && sleep(ctx, c.pause(failed.unmet), nil)
	case repeatable(method):
		failed.cut++
		return failed.cut <= mostCut && sleep(ctx, c.pause(failed.cut), nil)
	}
	return false
}

// pause is how long to wait before a try.
func (c *Client) pause(try int) time.Duration {
	return backoff{c.opts.Restart.Base, c.opts.Restart.Cap}.delay(try)
}

// unreached reports whether nothing was sent, since there was no connection to be had.
func unreached(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial" || errors.Is(err, transport.ErrUnsent)
}

// understood refuses results of a type that nobody registered.
func (c *Client) understood(resp *mcp.Response) error {
	if complete(resp) == nil || c.conn.options.Vocabulary.ResultType(resp.Type) {
		return nil
	}
	return fmt.Errorf("the server sent a result of type %q, which this client does not know; see Options.Extensions", resp.Type)
}

// complete refuses results that are no complete one of the core.
func complete(resp *mcp.Response) error {
	if resp.Type == mcp.ResultComplete || resp.Type == "" {
		return nil
	}
	return fmt.Errorf("the result is of type %q; call with Do and a Method whose result is an mcp.Response to take it", resp.Type)
}

func (c *Client) logLevel(o *CallOptions) mcp.LoggingLevel {
	switch {
	case o.LogLevel != "":
		return o.LogLevel
	case o.OnLog != nil && c.opts.LogLevel == "":
		return mcp.LevelInfo
	}
	return c.opts.LogLevel
}

// listener returns what takes the notifications of a call, nil where nobody listens: then the server is not asked to
// send any.
func (c *Client) listener(o *CallOptions, k *clock) func(mcp.Notification) {
	onLog := o.OnLog
	if onLog == nil {
		onLog = c.opts.OnLog
	}
	if o.OnProgress == nil && onLog == nil && !k.listens() {
		return nil
	}
	onProgress, logger := rising(o.OnProgress), c.opts.Logger
	return func(n mcp.Notification) {
		k.touch()
		var err error
		switch {
		case n.Method == mcp.NotificationProgress && onProgress != nil:
			err = pass(n, onProgress)
		case n.Method == mcp.NotificationMessage && onLog != nil:
			err = pass(n, onLog)
		}
		if err != nil {
			logger.Warn("a notification cannot be read", "server", c.name(), "method", n.Method, "err", err)
		}
	}
}

// rising leaves out progress that falls behind what was reported: a call that is retried with answers starts again at the
// server, and not for the user.
func rising(f func(mcp.ProgressParams)) func(mcp.ProgressParams) {
	if f == nil {
		return nil
	}
	last := math.Inf(-1)
	return func(p mcp.ProgressParams) {
		if p.Progress > last {
			last = p.Progress
			f(p)
		}
	}
}

// pass decodes the notification's parameters for f.
func pass[P any](n mcp.Notification, f func(P)) error {
	var p P
	if err := mcp.Decode(n.Params, &p); err != nil {
		return err
	}
	f(p)
	return nil
}

// withMeta adds members to the _meta of params.
func withMeta(params json.RawMessage, meta mcp.Meta) (json.RawMessage, error) {
	if len(meta) == 0 {
		return params, nil
	}
	raw, err := mcp.Encode(meta)
	if err != nil {
		return nil, fmt.Errorf("CallOptions.Meta: %w", err)
	}
	merged := append(make([]byte, 0, len(raw)+2), '{')
	merged, any := rawjson.AppendMembers(merged, rawjson.Lookup(params, "_meta"), func(key []byte) bool {
		_, replaced := meta[string(key)]
		return replaced
	})
	if any {
		merged = append(merged, ',')
	}
	return rawjson.Set(params, "_meta", append(merged, raw[1:]...)), nil
}

// lookup returns the result that the cache holds for a request, or else where to keep the one to come.
func (c *Client) lookup(method string, params json.RawMessage, o *CallOptions) (slot, *mcp.Response) {
	if c.opts.NoCache || o.NoCache || !mcp.Cacheable(method) {
		return slot{}, nil
	}
	return c.cache.lookup(method, params, time.Now())
}
