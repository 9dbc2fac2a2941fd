// Package startphase carries reports about the start of a server's process, from the transport that
// starts it to the callers of the dial. The time in which a package runner installs the server, or
// in which the user logs in, does not count as time that the server takes to start.
package startphase

import (
	"context"
	"fmt"
)

// Phase is a part of a start. The zero Phase means that the server's own process is starting.
type Phase struct {
	// Runner is the package runner that is installing the server, such as npx, and Activity its
	// current work, or "" if unknown.
	Runner, Activity string
	// LoginURL is the address at which the server's process waits for the user to log in.
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
