package streamable

import (
	"context"
	"sync"
)

// callContext is the context of a modern call. At first it is the context of the HTTP request. It
// makes a cancelable context when code calls Done or cancel, because most handlers return without
// either.
type callContext struct {
	context.Context // of the HTTP request

	mu         sync.Mutex
	cancelable context.Context // nil until it is needed
	cancelFunc context.CancelCauseFunc
}

// cancel ends the context with a cause.
func (c *callContext) cancel(cause error) {
	c.makeCancelable()
	c.cancelFunc(cause)
}

// releaseResources frees the cancelable context after the call.
func (c *callContext) releaseResources() {
	if c.activeContext() != c.Context {
		c.cancelFunc(nil)
	}
}

// makeCancelable returns the cancelable context and makes it if needed.
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

// Value implements [context.Context]. Package context finds the cancelable parent and the cause
// through it.
func (c *callContext) Value(key any) any { return c.activeContext().Value(key) }
