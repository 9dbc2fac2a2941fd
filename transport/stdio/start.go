package stdio

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/internal/startphase"
)

// startWatch reports the phases of a start: a package runner installs the server, the user must log
// in, or the server's own process is starting. It ends with the dial.
type startWatch struct {
	ctx     context.Context
	child   *process.Child
	serving chan struct{} // closed when messages can be sent: no runner is known to be at work
	done    chan struct{} // closed by endWatch
	ended   chan struct{} // closed when the goroutine has ended

	mu    sync.Mutex
	phase startphase.Phase
}

// The watch looks at the process at growing intervals.
const minLook, maxLook = 20 * time.Millisecond, 250 * time.Millisecond

func watchStart(ctx context.Context, child *process.Child) *startWatch {
	w := &startWatch{ctx: ctx, child: child, serving: make(chan struct{}), done: make(chan struct{}), ended: make(chan struct{})}
	isServing := w.look()
	if isServing {
		close(w.serving)
	}
	go w.watch(isServing)
	return w
}

// watch looks at the process until endWatch is called or it exits.
func (w *startWatch) watch(isServing bool) {
	defer close(w.ended)
	for pause := minLook; ; pause = min(2*pause, maxLook) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-w.done:
			timer.Stop()
			return
		case <-w.child.Exited():
			timer.Stop()
			return
		}
		if now := w.look(); now && !isServing {
			isServing = true
			close(w.serving)
		}
	}
}

// look finds the current phase and reports a new one. It returns false if messages would wait for
// the end of an install.
func (w *startWatch) look() (isServing bool) {
	var now startphase.Phase
	install, installs := w.child.Installing()
	if installs {
		now.Runner, now.Activity = install.Runner, install.Activity
	} else {
		now.LoginURL = findLogin(w.child.StderrTail(loginLines))
	}
	w.mu.Lock()
	isNew := w.phase != now
	w.phase = now
	w.mu.Unlock()
	if isNew {
		startphase.Report(w.ctx, now)
	}
	return !installs || install.IsGuess
}

// endWatch ends the watch and returns the last phase.
func (w *startWatch) endWatch() startphase.Phase {
	close(w.done)
	<-w.ended
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase
}

// awaitServing waits until messages can be sent. It returns the cause of ctx if ctx ends first, and
// the exit of a process that ends first.
func (w *startWatch) awaitServing(conn *childConn) error {
	select {
	case <-w.serving:
		return nil
	case <-w.child.Exited():
		return conn.explainEnd(io.EOF)
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// describeInterruption adds the phase in which the dial was ended to its error.
func describeInterruption(ctx context.Context, err error, p startphase.Phase) error {
	switch {
	case ctx.Err() == nil:
		return err
	case p.LoginURL != "":
		return fmt.Errorf("%w: the server waits for you to log in at %s", err, p.LoginURL)
	case p.Runner == "":
		return err
	}
	return fmt.Errorf("%w: %s", err, p.Doing())
}
