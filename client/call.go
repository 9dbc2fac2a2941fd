package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// callMethod makes one call for the user: it checks the server's capabilities, looks into the
// cache, applies the limits, answers the server's questions and stores the result. name is the
// tool, prompt or URI for errors.
func (c *Client) callMethod(ctx context.Context, method, name string, params json.RawMessage, o CallOptions) (*mcp.Response, error) {
	if err := c.checkDeclared(method); err != nil {
		return nil, c.callError(method, name, err)
	}
	slot, resp := c.lookupCache(ctx, method, params, &o)
	if resp != nil {
		return resp, nil
	}
	params, err := addMeta(params, o.Meta)
	if err != nil {
		return nil, c.callError(method, name, err)
	}
	var sent *httpwire.SentFields
	var login string
	if slot.request != "" {
		ctx, sent = httpwire.RecordFields(ctx)
		login = c.loginID()
	}
	ctx, k := c.startClock(ctx, method, &o)
	highest := limitProgress(&o)
	resp, asked, err := c.exchangeRounds(ctx, method, params, &o, k)
	if err == nil && resp.Type == mcpwire.ResultTask && c.handlesTasks(method) {
		resp, err = c.awaitCreatedTask(ctx, resp, &o, k, highest)
	}
	c.stopClock(k)
	if err != nil {
		return nil, c.callError(method, name, err)
	}
	if !asked && sent != nil {
		auth, ok := c.usedAuth(sent, login)
		c.cache.storeResult(slot, resp, auth, ok)
	}
	return resp, nil
}

// exchangeRounds sends the request and its retries until a result asks for nothing more. asked
// reports whether any result asked, so that the final one must not be cached.
func (c *Client) exchangeRounds(ctx context.Context, method string, params json.RawMessage, o *CallOptions, k *callClock) (res *mcp.Response, asked bool, err error) {
	req := &mcp.Request{Method: method, Params: params, LogLevel: c.callLogLevel(o), Notify: c.callListener(o, k)}
	if c.handlesTasks(method) {
		req.ClientCapabilities = c.withTasks
	}
	req.NoProgress = o.OnProgress == nil && !k.hasIdleLimit()
	r := rounds{client: c, method: method, original: params, clock: k, limit: c.opts.Limits.MaxRounds}
	if o.Limits.MaxRounds > 0 {
		r.limit = o.Limits.MaxRounds
	}
	for {
		resp, err := c.sendRequest(ctx, req, k, c.conn.reachLimit(o.Limits.Connect, o.Limits.Start))
		switch {
		case err == nil && resp.Type != mcp.ResultInputRequired:
			return resp, r.count > 0, c.checkResultType(method, resp)
		case err == nil:
			params, err = r.answerQuestions(ctx, resp)
		default:
			params, err = r.elicitURLs(ctx, err)
		}
		if err != nil {
			return nil, true, err
		}
		next := *req
		next.Params = params
		req = &next
	}
}

// sendRequest makes one round trip, and repeats it after failures where that is safe.
func (c *Client) sendRequest(ctx context.Context, req *mcp.Request, k *callClock, reach time.Duration) (*mcp.Response, error) {
	var failed failedAttempts
	for {
		l, err := c.conn.acquireLink(ctx, reach)
		if err != nil {
			return nil, err
		}
		k.requestSent()
		resp, err := l.roundTrip(ctx, req)
		k.responseReceived()
		if err == nil || !c.awaitRetry(ctx, l, req.Method, reach, &failed, err) {
			return resp, asTimeoutError(err, req.Method)
		}
	}
}

// failedAttempts counts the failed attempts of one request.
type failedAttempts struct {
	since       time.Time
	unsent      int // failed before the request was sent
	interrupted int // failed later, so that the server may have handled it
}

// maxInterrupted bounds the repetitions of a request that the server may have handled. It is 2,
// because a server that restarts first cuts the connection, and its successor then rejects the
// unknown session.
const maxInterrupted = 2

// awaitRetry waits until a failed request may be sent again. It returns false if it must not be.
// Any request may be repeated if it was never sent; otherwise only a request that changes nothing.
func (c *Client) awaitRetry(ctx context.Context, l *link, method string, reach time.Duration, failed *failedAttempts, err error) bool {
	if failed.since.IsZero() {
		failed.since = time.Now()
	}
	if failed.interrupted == 0 && c.conn.dropIfWrongRevision(l, err) {
		failed.interrupted++
		return true // the server refused to look at the request
	}
	most := c.opts.Restart.Max
	switch {
	case !errors.Is(err, mcp.ErrConnection) || most == 0 || !c.conn.withinLimit(failed.since, reach):
		return false
	case wasUnsent(err):
		failed.unsent++
		return failed.unsent <= most && waitDelay(ctx, c.retryDelay(failed.unsent), nil)
	case isRepeatable(method):
		failed.interrupted++
		return failed.interrupted <= maxInterrupted && waitDelay(ctx, c.retryDelay(failed.interrupted), nil)
	}
	return false
}

// retryDelay returns the wait before an attempt.
func (c *Client) retryDelay(try int) time.Duration {
	return backoff{c.opts.Restart.Base, c.opts.Restart.Cap}.delay(try)
}

// wasUnsent reports whether the request was never sent because no connection could be opened.
func wasUnsent(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial" || errors.Is(err, transport.ErrUnsent)
}

// checkResultType refuses result types that no extension registered.
func (c *Client) checkResultType(method string, resp *mcp.Response) error {
	if requireComplete(resp) == nil || resp.Type == mcpwire.ResultTask && c.handlesTasks(method) || mcpwire.Vocabulary(c.opts.Extensions).ResultType(resp.Type) {
		return nil
	}
	return fmt.Errorf("the server sent a result of type %q, which this client does not know; see Options.Extensions", resp.Type)
}

// requireComplete refuses every result type but the core's complete result.
func requireComplete(resp *mcp.Response) error {
	if resp.Type == mcp.ResultComplete || resp.Type == "" {
		return nil
	}
	return fmt.Errorf("the result is of type %q; call with Do and a Method whose result is an mcp.Response to take it", resp.Type)
}

func (c *Client) callLogLevel(o *CallOptions) mcp.LoggingLevel {
	switch {
	case o.LogLevel != "":
		return o.LogLevel
	case o.OnLog != nil && c.opts.LogLevel == "":
		return mcp.LevelInfo
	}
	return c.opts.LogLevel
}

// callListener returns the function for the notifications of a call. It returns nil if neither the
// caller nor the idle limit needs them, and the server is then not asked to send any.
func (c *Client) callListener(o *CallOptions, k *callClock) func(mcp.Notification) {
	onLog := o.OnLog
	if onLog == nil {
		onLog = c.opts.OnLog
	}
	if o.OnProgress == nil && onLog == nil && !k.hasIdleLimit() {
		return nil
	}
	onProgress, logger := o.OnProgress, c.opts.Logger
	return func(n mcp.Notification) {
		k.recordActivity()
		var err error
		switch {
		case n.Method == mcp.NotificationProgress && onProgress != nil:
			err = decodeAndPass(n, onProgress)
		case n.Method == mcp.NotificationMessage && onLog != nil:
			err = decodeAndPass(n, onLog)
		case n.Method != mcp.NotificationProgress && n.Method != mcp.NotificationMessage: // of an extension
			c.handleNotification(n)
		}
		if err != nil {
			logger.Warn("cannot decode a notification", "server", c.serverName(), "method", n.Method, "err", err)
		}
	}
}

// limitProgress makes OnProgress drop progress that does not exceed the progress already reported:
// a call that is retried with answers starts again at the server, but not for the user. highest is
// the last reported progress, or nil without OnProgress.
func limitProgress(o *CallOptions) (highest *float64) {
	report := o.OnProgress
	if report == nil {
		return nil
	}
	last := math.Inf(-1)
	o.OnProgress = func(p mcp.ProgressParams) {
		if p.Progress > last {
			last = p.Progress
			report(p)
		}
	}
	return &last
}

// decodeAndPass decodes the notification's parameters for f.
func decodeAndPass[P any](n mcp.Notification, f func(P)) error {
	var p P
	if err := mcp.Decode(n.Params, &p); err != nil {
		return err
	}
	f(p)
	return nil
}

// addMeta adds members to the _meta of params.
func addMeta(params json.RawMessage, meta mcp.Meta) (json.RawMessage, error) {
	if len(meta) == 0 {
		return params, nil
	}
	raw, err := mcp.Encode(meta)
	if err == nil {
		err = mcpwire.CheckMeta(meta)
	}
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

// lookupCache returns the cached result of a request, or the slot for its result.
func (c *Client) lookupCache(ctx context.Context, method string, params json.RawMessage, o *CallOptions) (cacheSlot, *mcp.Response) {
	if c.opts.NoCache || o.NoCache || !mcpwire.Cacheable(method) {
		return cacheSlot{}, nil
	}
	return c.cache.lookupResult(method, params, func() (authContext, bool) { return c.nextAuth(ctx) })
}

// nextAuth returns the credentials that a request with ctx would have. ok is false if the Header
// function fails.
func (c *Client) nextAuth(ctx context.Context) (auth authContext, ok bool) {
	login := c.loginID()
	if c.header == nil {
		return authContext(login), true
	}
	fields, err := c.header(ctx)
	return authContext(httpwire.HashFields(fields) + login), err == nil
}

// usedAuth returns the credentials that the requests of a call had. login is the login before the
// call. ok is false if the credentials differed, or if nextAuth could not tell them for a later
// call.
func (c *Client) usedAuth(sent *httpwire.SentFields, login string) (auth authContext, ok bool) {
	hash, requests, same := sent.Hash()
	return authContext(hash + login), same && (requests > 0) == (c.header != nil) && login == c.loginID()
}

// loginID returns the login that HTTP.Client uses, or "" if it uses none that it tells.
func (c *Client) loginID() string {
	if c.login == nil {
		return ""
	}
	return c.login.LoginID()
}
