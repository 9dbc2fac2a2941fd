package client

import (
	"context"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/internal/timeout"
)

// startLimit bounds a dial of a command. While a package runner installs the server, the limit for
// installs runs, and while the user logs in, none; otherwise the limit for starting does.
type startLimit struct {
	start, install limitClock

	mu     sync.Mutex
	phase  startphase.Phase
	cancel context.CancelCauseFunc
}

// limitClock is one of the limits. It ends the dial with an error.
type limitClock struct {
	timeout.Clock
	owner     *startLimit
	isInstall bool
}

// Exceed implements [timeout.ClockOwner].
func (k *limitClock) Exceed(_ timeout.Limit, after time.Duration) {
	k.owner.cancel(&TimeoutError{Kind: TimeoutConnect, After: after, isInstall: k.isInstall})
}

// withDialLimit bounds the context of a dial. The time of a login does not count.
func (c *connection) withDialLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if !c.isCommand && c.connectLimit > 0 {
		return startphase.WithTimeout(ctx, c.connectLimit, &TimeoutError{Kind: TimeoutConnect, After: c.connectLimit})
	}
	if !c.isCommand {
		return context.WithCancel(ctx)
	}
	l := &startLimit{}
	l.start.owner, l.install.owner, l.install.isInstall = l, l, true
	ctx, l.cancel = context.WithCancelCause(ctx)
	l.start.Start(0, max(c.connectLimit, 0), &l.start)
	l.install.Start(0, max(c.installLimit, 0), &l.install)
	l.install.Pause()
	return startphase.WithObserver(ctx, l.enterPhase), func() {
		l.start.Stop()
		l.install.Stop()
		l.cancel(nil)
	}
}

// enterPhase lets the limit of a phase run, and no other.
func (l *startLimit) enterPhase(p startphase.Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	installed, started := l.phase.Runner == "", l.phase == startphase.Phase{}
	l.phase = p
	setRunning(&l.install, !installed, p.Runner != "")
	setRunning(&l.start, started, p == startphase.Phase{})
}

// setRunning pauses or resumes a clock if that changes it.
func setRunning(k *limitClock, was, runs bool) {
	switch {
	case was && !runs:
		k.Pause()
	case !was && runs:
		k.Resume()
	}
}
