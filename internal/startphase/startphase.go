// Package startphase carries reports about the start of a server or of a connection to it, from the
// transport that starts it to the callers of the dial. The time in which a package runner installs
// the server, or in which the user logs in, does not count as time that the server takes to start.
package startphase

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Phase is a part of a start. The zero Phase means that the server's own process is starting.
type Phase struct {
	// Runner is the package runner that is installing the server, such as npx, and Activity its
	// current work, or "" if unknown.
	Runner, Activity string
	// LoginURL is the address at which the server's process, or a request to the server, waits for
	// the user to log in.
	LoginURL string
}

// Doing describes the work of the runner, such as "npx is installing the server (the postinstall
// script of puppeteer)". It is "" if no runner is at work.
func (p Phase) Doing() string {
	switch {
	case p.Runner == "":
		return ""
	case p.Activity == "":
		return p.Runner + " is installing the server"
	}
	return fmt.Sprintf("%s is installing the server (%s)", p.Runner, p.Activity)
}

type observerKey struct{}

// WithObserver returns a context for a dial. observe is called with each new phase, one at a time,
// after the observers of ctx. It must not block.
func WithObserver(ctx context.Context, observe func(Phase)) context.Context {
	outer := observerOf(ctx)
	return context.WithValue(ctx, observerKey{}, func(p Phase) {
		if outer != nil {
			outer(p)
		}
		observe(p)
	})
}

// Report tells the observers of ctx about a phase.
func Report(ctx context.Context, p Phase) {
	if observe := observerOf(ctx); observe != nil {
		observe(p)
	}
}

func observerOf(ctx context.Context) func(Phase) {
	observe, _ := ctx.Value(observerKey{}).(func(Phase))
	return observe
}

// WithTimeout returns a context that ends with a cause if d passes within one phase. A report of a
// new phase starts the time again; while the user logs in, it does not run. The caller must call
// cancel.
func WithTimeout(ctx context.Context, d time.Duration, cause error) (bounded context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	var mu sync.Mutex // guards timer and isOver
	isOver := false
	timer := time.AfterFunc(d, func() { end(cause) })
	observed := WithObserver(ctx, func(p Phase) {
		mu.Lock()
		defer mu.Unlock()
		if timer.Stop(); p.LoginURL == "" && !isOver {
			timer.Reset(d)
		}
	})
	return observed, func() {
		mu.Lock()
		defer mu.Unlock()
		isOver = true
		timer.Stop()
		end(nil)
	}
}

// Inherit returns ctx with the observers of another context, unless ctx has observers itself.
func Inherit(ctx, from context.Context) context.Context {
	observe := observerOf(from)
	if observe == nil || observerOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, observerKey{}, observe)
}
