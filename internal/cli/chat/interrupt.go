package chat

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// errStopped is the cause of a context that Ctrl-C cancelled.
var errStopped = errors.New("the user stopped it")

// interruptHandler handles Ctrl-C in a conversation. One press stops the current work. A second
// press within doublePressTime ends the program, unless the user typed a line between them. It is
// safe for concurrent use.
type interruptHandler struct {
	endProgram func(cause error)
	restore    func() // restores the terminal before an exit; may be nil

	mu        sync.Mutex        // guards the fields below
	lastPress time.Time         // zero after the user typed a line
	stopWork  func(cause error) // nil if no work is running
	isEnding  bool              // the next press exits at once
}

// doublePressTime is the longest time between the two presses of Ctrl-C that end the program.
const doublePressTime = 2 * time.Second

// handlePress handles one press of Ctrl-C, and reports whether it ends the program. A press while
// the program is ending exits at once.
func (i *interruptHandler) handlePress() (ends bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	switch {
	case i.isEnding:
		if i.restore != nil {
			i.restore()
		}
		os.Exit(exit.Interrupted)
	case now.Sub(i.lastPress) < doublePressTime:
		i.isEnding = true
		i.endProgram(&exit.Interruption{Signal: os.Interrupt})
		return true
	}
	i.lastPress = now
	if i.stopWork != nil {
		i.stopWork(errStopped)
	}
	return false
}

// stopCurrent stops the current work, if there is some.
func (i *interruptHandler) stopCurrent() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopWork != nil {
		i.stopWork(errStopped)
	}
}

// isWorking reports whether work is running.
func (i *interruptHandler) isWorking() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopWork != nil
}

// forgetPress must be called when the user has typed a line. The next press counts as a first one.
func (i *interruptHandler) forgetPress() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lastPress = time.Time{}
}

// markEnding must be called when the program ends. The next press exits at once.
func (i *interruptHandler) markEnding() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.isEnding = true
}

// startWork returns a context that Ctrl-C cancels with errStopped. Call done when the work has
// ended.
func (i *interruptHandler) startWork(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	i.stopWork = cancel
	i.mu.Unlock()
	return ctx, func() {
		i.mu.Lock()
		i.stopWork = nil
		i.mu.Unlock()
		cancel(nil)
	}
}

// listenSignals handles Ctrl-C, which would otherwise end the program, until done is called.
func (i *interruptHandler) listenSignals() (done func()) {
	signal.Ignore(os.Interrupt) // takes the signal from the program's own handler
	signals, stop, stopped := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-signals:
				i.handlePress()
			case <-stop:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(stop)
		<-stopped
	}
}
