package streamable

import (
	"context"
	"sync"
)

// callContext is the context of a modern call: that of its request, which [callContext.cancel] ends before its time. What
// that takes is made when somebody waits for the end: most handlers return without having asked.
type callContext struct {
	context.Context // the request's

	mu  sync.Mutex
	own context.Context // nil until somebody waits
	end context.CancelCauseFunc
}

// cancel ends the context with a cause.
func (c *callContext) cancel(cause error) {
	c.wait()
	c.end(cause)
}

// release lets go of what the context has taken, behind the call.
func (c *callContext) release() {
	if c.current() != c.Context {
		c.end(nil)
	}
}

// wait returns the context that ends.
func (c *callContext) wait() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == nil {
		c.own, c.end = context.WithCancelCause(c.Context)
	}
	return c.own
}

func (c *callContext) current() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == nil {
		return c.Context
	}
	return c.own
}

// Done implements [context.Context].
func (c *callContext) Done() <-chan struct{} { return c.wait().Done() }

// Err implements [context.Context].
func (c *callContext) Err() error { return c.current().Err() }

// Value implements [context.Context]. Package context finds by it what to follow, and the cause.
func (c *callContext) Value(key any) any { return c.current().Value(key) }
