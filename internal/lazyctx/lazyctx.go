// Package lazyctx has the context of a call. It makes a cancelable context only when code waits for
// its end or cancels it, because most handlers return without either.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context is a context that can be cancelled. Call Init first, and Release when the call is over.
// Its other methods are safe for concurrent use.
type Context struct {
	parent context.Context

	mu         sync.Mutex
	cancelable context.Context // nil until it is needed
	cancelFunc context.CancelCauseFunc
	isReleased bool
}

// Init sets the parent. The end of the parent ends the context, too.
func (c *Context) Init(parent context.Context) { c.parent = parent }

// Cancel ends the context with a cause.
func (c *Context) Cancel(cause error) {
	c.makeCancelable()
	c.cancelFunc(cause)
}

// Release ends the context without a cause and frees what it holds.
func (c *Context) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isReleased = true
	if c.cancelable != nil {
		c.cancelFunc(nil)
	}
}

// makeCancelable returns the cancelable context and makes it if needed.
func (c *Context) makeCancelable() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lockedCancelable()
}

// lockedCancelable is makeCancelable for a caller that holds c.mu.
func (c *Context) lockedCancelable() context.Context {
	if c.cancelable == nil {
		c.cancelable, c.cancelFunc = context.WithCancelCause(c.parent)
		if c.isReleased {
			c.cancelFunc(nil)
		}
	}
	return c.cancelable
}

// activeContext returns the parent until the cancelable context is needed.
func (c *Context) activeContext() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancelable == nil && !c.isReleased {
		return c.parent
	}
	return c.lockedCancelable()
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} { return c.makeCancelable().Done() }

// Err implements [context.Context].
func (c *Context) Err() error { return c.activeContext().Err() }

// Value implements [context.Context]. Package context finds the cancelable parent and the cause
// through it.
func (c *Context) Value(key any) any { return c.activeContext().Value(key) }
