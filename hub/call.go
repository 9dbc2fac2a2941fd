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
	in, err := u.acquire(ctx, who)
	if err != nil {
		return nil, err
	}
	defer in.enter()()
	return in.roundTrip(ctx, req)
}

func (in *instance) roundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	if req.Method == mcp.MethodListen {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		defer stop(nil)
		defer context.AfterFunc(in.replaced, func() { stop(errReplaced) })()
	}
	idle, total := in.upstream.limits()
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

func (u *Upstream) limits() (idle, total time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.def.Idle, u.def.Total
}

// patience bounds how long a call waits for a server that is starting.
const patience = 60 * time.Second

// acquire returns the connection for a caller.
func (u *Upstream) acquire(ctx context.Context, who Caller) (*instance, error) {
	u.mu.Lock()
	main, sharing := u.main, u.def.Sharing
	u.used = time.Now()
	u.mu.Unlock()
	if main == nil {
		var err error
		if main, err = u.await(ctx); err != nil {
			return nil, err
		}
	}
	switch key := who.Principal; sharing {
	case SharePerSession:
		return u.ownOf(ctx, "session "+who.Session+"\x00"+key)
	case SharePerClient:
		if key == "" {
			key = "session " + who.Session
		}
		return u.ownOf(ctx, key)
	}
	return main, nil
}

// await waits until the upstream is ready, and starts it where that is all it takes.
func (u *Upstream) await(ctx context.Context) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, u.patience())
	defer cancel()
	for {
		u.mu.Lock()
		main, state, changed := u.main, u.state, u.changed
		if state.Status == Stopped && !u.wanted {
			u.wanted = true
			u.order("a call needs it")
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

func (u *Upstream) patience() time.Duration {
	o := u.Definition().Options
	for _, limit := range []time.Duration{o.Limits.Start, o.Limits.Connect} {
		if limit > 0 {
			return limit
		}
	}
	return patience
}

type answererKey struct{}

// Answering returns a context for calls during which h answers what the server asks: elicitation, sampling and roots. Without
// one, questions are refused.
func Answering(ctx context.Context, h mcp.Handler) context.Context {
	return context.WithValue(ctx, answererKey{}, h)
}

// bridged is what upstreams are told can be asked.
var bridged = mcp.ClientCapabilities{
	Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
	Sampling:    &mcp.SamplingCapability{Tools: &struct{}{}, Context: &struct{}{}},
	Roots:       &mcp.RootsCapability{},
}

// asked takes what an upstream asks live.
type asked struct{ upstream *Upstream }

// ServeMCP implements [mcp.Handler].
func (a asked) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if h, ok := ctx.Value(answererKey{}).(mcp.Handler); ok {
		if k, ok := ctx.Value(clockKey{}).(*clock); ok {
			defer k.pause()()
		}
		return h.ServeMCP(ctx, req)
	}
	return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s is refused: it belongs to no call, or to one of several that cannot be told apart; "+
		"run the calls of %s one at a time (serialize), or give each client a process of its own (sharing)", req.Method, a.upstream.name)
}
