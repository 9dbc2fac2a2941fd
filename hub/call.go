package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Caller is who calls an upstream.
type Caller struct {
	// Principal and Session tell clients apart: see [Sharing]. Both may be empty.
	Principal, Session string
}

// RoundTrip sends a request as it is and returns the response as it is. It waits for a server that is starting or has to be
// started, as long as ctx and the definition's Options.Start or Connect let it, and fails with a [*DownError] where there is
// nothing to wait for. The definition's limits bound the call.
func (u *Upstream) RoundTrip(ctx context.Context, who Caller, req *mcp.Request) (*mcp.Response, error) {
	in, err := u.acquireConn(ctx, who)
	if err != nil {
		return nil, err
	}
	defer in.startCall()()
	return in.roundTrip(ctx, req)
}

func (in *connection) roundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	if req.Method == mcp.MethodListen {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		defer stop(nil)
		defer context.AfterFunc(in.replaced, func() { stop(errReplaced) })()
	}
	idle, total := in.upstream.callLimits()
	if idle == 0 && total == 0 || req.Method == mcp.MethodListen {
		return in.client.RoundTrip(ctx, req)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := func(limit time.Duration, what string) *stopwatch {
		return newStopwatch(limit, func() {
			stop(fmt.Errorf("the server %s %s %v: %w", in.upstream.name, what, limit, context.DeadlineExceeded))
		})
	}
	k := &clock{total: late(total, "has not answered within"), idle: late(idle, "has given no sign of life for")}
	defer k.pause()
	timed := *req
	if idle > 0 {
		timed.Notify = func(n mcp.Notification) {
			k.alive()
			if req.Notify != nil {
				req.Notify(n)
			}
		}
	}
	return in.client.RoundTrip(context.WithValue(ctx, clockKey{}, k), &timed)
}

func (u *Upstream) callLimits() (idle, total time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.def.Idle, u.def.Total
}

// defaultStartTimeout bounds how long a call waits for a server that is starting.
const defaultStartTimeout = 60 * time.Second

// acquireConn returns the connection for a caller.
func (u *Upstream) acquireConn(ctx context.Context, who Caller) (*connection, error) {
	u.mu.Lock()
	main, sharing := u.sharedConn, u.def.Sharing
	u.lastUsed = time.Now()
	u.mu.Unlock()
	if main == nil {
		var err error
		if main, err = u.awaitSharedConn(ctx); err != nil {
			return nil, err
		}
	}
	switch key := who.Principal; sharing {
	case SharePerSession:
		return u.clientConn(ctx, "session "+who.Session+"\x00"+key)
	case SharePerClient:
		if key == "" {
			key = "session " + who.Session
		}
		return u.clientConn(ctx, key)
	}
	return main, nil
}

// awaitSharedConn waits until the upstream is ready, and starts it where that is all it takes.
func (u *Upstream) awaitSharedConn(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, u.startTimeout())
	defer cancel()
	for {
		u.mu.Lock()
		main, state, changed := u.sharedConn, u.state, u.changed
		if state.Status == Stopped && !u.neededByCall {
			u.neededByCall = true
			u.requestRestart("a call needs it")
		}
		u.mu.Unlock()
		switch {
		case main != nil:
			return main, nil
		case state.Status != Starting && state.Status != Stopped && state.Status != Ready: // a connection that ends is followed by more
			return nil, &DownError{u.name, state}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, &DownError{u.name, state}
			}
			return nil, context.Cause(ctx)
		}
	}
}

func (u *Upstream) startTimeout() time.Duration {
	o := u.Definition().Options
	for _, limit := range []time.Duration{o.Start, o.Connect} {
		if limit > 0 {
			return limit
		}
	}
	return defaultStartTimeout
}

type answererKey struct{}

// WithAnswerer returns a context for calls during which h answers what the server asks: elicitation, sampling and roots. Without
// one, questions are refused.
func WithAnswerer(ctx context.Context, h mcp.Handler) context.Context {
	return context.WithValue(ctx, answererKey{}, h)
}

// askableCapabilities is what upstreams are told can be asked.
var askableCapabilities = mcp.ClientCapabilities{
	Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
	Sampling:    &mcp.SamplingCapability{Tools: &struct{}{}, Context: &struct{}{}},
	Roots:       &mcp.RootsCapability{},
}

// questionHandler takes what an upstream asks live.
type questionHandler struct{ upstream *Upstream }

// ServeMCP implements [mcp.Handler].
func (a questionHandler) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if h, ok := ctx.Value(answererKey{}).(mcp.Handler); ok {
		if k, ok := ctx.Value(clockKey{}).(*clock); ok {
			defer k.pause()()
		}
		return h.ServeMCP(ctx, req)
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s is refused: it belongs to no call, or to one of several that cannot be told apart; "+
		"run the calls of %s one at a time (serialize), or give each client a process of its own (sharing)", req.Method, a.upstream.name)
}
