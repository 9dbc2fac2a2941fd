package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Caller identifies the client that makes a call.
type Caller struct {
	// Principal and Session tell clients apart that do not share a connection: see [Sharing]. Both
	// may be empty.
	Principal, Session string
}

// RoundTrip sends a request and returns the response, both unchanged. If the server is starting or
// stopped, RoundTrip waits until it is ready, at most as long as the definition's Options.Start or
// Connect allow. If the connection ends before the request is sent, the next one takes it.
// RoundTrip fails with a [*DownError] if the server cannot become ready by waiting. The limits of
// the definition's [Policy] apply to the call.
func (u *Upstream) RoundTrip(ctx context.Context, caller Caller, req *mcp.Request) (*mcp.Response, error) {
	for {
		conn, err := u.acquireConn(ctx, caller)
		if err != nil {
			return nil, err
		}
		resp, err := conn.makeCall(ctx, caller, req)
		if !conn.wasClosedBefore(err) {
			return resp, err
		}
	}
}

// wasClosedBefore reports whether a call failed because the hub had closed the connection before
// the call was sent. No further call gets that connection.
func (conn *connection) wasClosedBefore(err error) bool {
	return errors.Is(err, transport.ErrUnsent) && conn.client.State().Status == client.Closed
}

// makeCall makes a call that acquireConn has counted, and ends it.
func (conn *connection) makeCall(ctx context.Context, caller Caller, req *mcp.Request) (*mcp.Response, error) {
	defer conn.endCall()
	if conn.isCluster {
		own := *req
		own.Principal = mcp.Principal{ID: caller.Principal}
		req = &own
	}
	if conn.router != nil && req.Method == mcpwire.MethodTaskResult {
		call := newTaskCall(ctx, caller, req)
		defer call.end()
		return conn.roundTrip(context.WithValue(call.ctx, trackedKey{}, call), req, call)
	}
	if conn.router == nil || !mcpwire.MayAsk(req.Method) {
		return conn.roundTrip(ctx, req, nil)
	}
	call, err := conn.router.startCall(ctx, caller, req)
	if err != nil {
		return nil, err
	}
	resp, err := conn.roundTrip(context.WithValue(call.ctx, trackedKey{}, call), req, call)
	conn.router.endCall(call, err)
	return resp, err
}

// roundTrip sends a request under the limits of the policy. Subscriptions have no limits, and end
// when the connection is replaced. call is nil for a request that is not tracked.
func (conn *connection) roundTrip(ctx context.Context, req *mcp.Request, call *trackedCall) (*mcp.Response, error) {
	if req.Method == mcp.MethodListen {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		defer stop(nil)
		defer context.AfterFunc(conn.replaced, func() { stop(errReplaced) })()
	}
	idle, total := conn.upstream.callLimits()
	if idle == 0 && total == 0 || req.Method == mcp.MethodListen {
		return conn.client.RoundTrip(ctx, req) // its transport applies the defaults
	}
	ctx = timeout.WithOwnLimits(ctx, idle != 0, total != 0)
	if idle, total = max(idle, 0), max(total, 0); idle == 0 && total == 0 {
		return conn.client.RoundTrip(ctx, req)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := &callClock{server: conn.upstream.name, cancel: cancel}
	if call != nil {
		conn.router.setClock(call, clock)
	}
	clock.Start(idle, total, clock)
	defer clock.Stop()
	clock.SetWaiting(true)
	timed := *req
	if clock.NeedsSigns() {
		timed.Notify = func(n mcp.Notification) {
			clock.Touch()
			if req.Notify != nil {
				req.Notify(n)
			}
		}
	}
	return conn.client.RoundTrip(context.WithValue(ctx, clockKey{}, clock), &timed)
}

// clockKey is the context key of a call's *callClock.
type clockKey struct{}

// callClock cancels a call when it exceeds a limit of the policy.
type callClock struct {
	timeout.Clock
	server string
	cancel context.CancelCauseFunc
}

// Exceed implements [timeout.ClockOwner].
func (c *callClock) Exceed(limit timeout.Limit, after time.Duration) {
	phrase := "has not answered within"
	if limit == timeout.Idle {
		phrase = "has given no sign of life for"
	}
	c.cancel(limitError(fmt.Sprintf("the server %s %s %v", c.server, phrase, after)))
}

// limitError reports that a call exceeded a limit of the policy. It matches
// [context.DeadlineExceeded].
type limitError string

func (e limitError) Error() string { return string(e) }

// Is implements the interface that [errors.Is] looks for.
func (limitError) Is(target error) bool { return target == context.DeadlineExceeded }

// callLimits returns the limits of calls: 0 for the default, and less for none.
func (u *Upstream) callLimits() (idle, total time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.def.Idle, u.def.Total
}

// defaultStartTimeout limits how long a server may take to start, if the definition
// does not say it.
const defaultStartTimeout = 60 * time.Second

// failureDelay is how much longer than the limit of the start a call waits. A start that has
// reached its limit still ends its process and diagnoses the failure; the call's error has the
// result.
const failureDelay = 10 * time.Second

// acquireConn returns the connection that a caller uses under the definition's sharing, and counts
// a call on it. The caller calls endCall when the call has returned.
func (u *Upstream) acquireConn(ctx context.Context, caller Caller) (*connection, error) {
	u.mu.Lock()
	key, loginFor := connectionKey(u.def.Sharing, caller), u.def.LoginFor
	u.lastUsed = time.Now()
	u.mu.Unlock()
	var login *http.Client
	if loginFor != nil {
		if err := u.awaitReady(ctx); err != nil {
			return nil, err
		}
		name, own, err := loginFor(ctx, caller)
		if err != nil {
			return nil, err
		}
		if name != "" {
			key, login = "login "+name+"\x00"+key, own
		}
	}
	for {
		conn, err := u.reserveConn(key, login)
		switch {
		case err != nil:
			return nil, err
		case conn != nil:
			return conn, conn.awaitOpen(ctx)
		}
		if err := u.awaitReady(ctx); err != nil {
			return nil, err
		}
	}
}

// reserveConn returns the connection of a key, and counts a call on it while u.mu is held: from
// then on the connection is not idle. An empty key means the shared connection, and a nil login
// means the login of the definition. reserveConn returns nil if the upstream is not ready.
func (u *Upstream) reserveConn(key string, login *http.Client) (*connection, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	conn := u.sharedConn
	if conn == nil {
		return nil, nil
	}
	if key != "" {
		var err error
		if conn, err = u.clientConn(key, login); err != nil {
			return nil, err
		}
	}
	conn.startCall()
	return conn, nil
}

// connectionKey returns the key of a caller's connection, or "" for the shared one.
func connectionKey(sharing Sharing, caller Caller) string {
	switch {
	case sharing == SharePerSession:
		return "session " + caller.Session + "\x00" + caller.Principal
	case sharing == SharePerClient && caller.Principal == "":
		return "session " + caller.Session
	case sharing == SharePerClient:
		return caller.Principal
	}
	return ""
}

// awaitReady waits until the upstream is ready. It starts a stopped server.
func (u *Upstream) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, u.startTimeout()+failureDelay)
	defer cancel()
	for {
		u.mu.Lock()
		isReady, state, changed := u.sharedConn != nil, u.state, u.changed
		if state.Status == Stopped && !u.neededByCall {
			u.neededByCall = true
			u.requestRestart("a call needs it")
		}
		u.mu.Unlock()
		switch {
		case isReady:
			return nil
		case state.Status != Starting && state.Status != Stopped && state.Status != Ready: // if Ready, the connection is ending
			return &DownError{u.name, state}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return &DownError{u.name, state}
			}
			return context.Cause(ctx)
		}
	}
}

// startTimeout returns how long a server may take to start.
func (u *Upstream) startTimeout() time.Duration {
	o := u.Definition().Options
	for _, limit := range []time.Duration{o.Limits.Start, o.Limits.Connect} {
		if limit > 0 {
			return limit
		}
	}
	return defaultStartTimeout
}

// answererKey is the context key of [WithAnswerer].
type answererKey struct{}

// WithAnswerer returns a context for calls during which h answers the questions of the server:
// elicitation, sampling and roots. The hub refuses questions of calls without an answerer.
func WithAnswerer(ctx context.Context, h mcp.Handler) context.Context {
	return context.WithValue(ctx, answererKey{}, h)
}

// askableCapabilities are the client capabilities that the hub declares to upstreams. They are the
// same for all, because a connection exists before its clients are known.
var askableCapabilities = mcp.ClientCapabilities{
	Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
	Sampling:    &mcp.SamplingCapability{Tools: &struct{}{}, Context: &struct{}{}},
	Roots:       &mcp.RootsCapability{},
}

// answerQuestion passes a live question of the upstream to the answerer of the call that the
// question belongs to.
func (conn *connection) answerQuestion(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method == mcp.MethodListRoots {
		conn.noteSharedRoots()
	}
	if conn.router != nil {
		return conn.router.answerQuestion(ctx, req)
	}
	h, ok := ctx.Value(answererKey{}).(mcp.Handler)
	if !ok {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s is refused, because it belongs to no call: it is not clear which client to ask", req.Method)
	}
	clock, _ := ctx.Value(clockKey{}).(*callClock)
	return askAnswerer(ctx, h, clock, req)
}

// askAnswerer passes a question to h. The clock of the call that the question belongs to stands
// still meanwhile; nil means a call without limits.
func askAnswerer(ctx context.Context, h mcp.Handler, clock *callClock, req *mcp.Request) (*mcp.Result, error) {
	if clock != nil {
		clock.Pause()
		defer clock.Resume()
	}
	return h.ServeMCP(ctx, req)
}

// noteSharedRoots notes once that a server which all clients share asks for the folders of one of
// them. A legacy server may keep them for the calls of all clients.
func (conn *connection) noteSharedRoots() {
	u := conn.upstream
	if sharing := u.Definition().Sharing; sharing == SharePerClient || sharing == SharePerSession {
		return
	}
	conn.rootsNote.Do(func() {
		u.history.addNote(u.name + ` asks for the folders (roots) of one client and may use them for all clients, which share its process: ` +
			`with "sharing": "client" each client has a process of its own`)
	})
}
