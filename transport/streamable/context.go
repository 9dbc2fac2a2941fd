package streamable

import (
	"context"
	"sync"
)

// callContext is the context of a modern call: that of its request, which [callContext.cancel] ends before its time. What
// that takes is made when somebody waits for the end: most handlers return without having asked.
type callContext struct {
	context.Context // the request's

	mu         sync.Mutex
	cancelable context.Context // nil until somebody waits
	cancelFunc context.CancelCauseFunc
}

// cancel ends the context with a cause.
func (c *callContext) cancel(cause error) {
	c.makeCancelable()
	c.cancelFunc(cause)
}

// releaseResources lets go of what the context has taken, behind the call.
func (c *callContext) releaseResources() {
	if c.activeContext() != c.Context {
		c.cancelFunc(nil)
	}
}

// makeCancelable returns the context that ends.
func (c *callContext) makeCancelable() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancelable == nil {
		c.cancelable, c.cancelFunc = context.WithCancelCause(c.Context)
	}
	return c.cancelable
}

func (c *callContext) activeContext() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancelable == nil {
		return c.Context
	}
	return c.cancelable
}

// Done implements [context.Context].
func (c *callContext) Done() <-chan struct{} { return c.makeCancelable().Done() }

// Err implements [context.Context].
func (c *callContext) Err() error { return c.activeContext().Err() }

// Value implements [context.Context]. Package context finds by it what to follow, and the cause.
func (c *callContext) Value(key any) any { return c.activeContext().Value(key) }
