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
	endProgram func(cause error) // ends the program

	mu        sync.Mutex
	lastPress time.Time         // when it was pressed last
	stopWork  func(cause error) // ends what is going on; nil: nothing is
	isEnding  bool
}

// doublePressTime is within how long a second Ctrl-C ends the program.
const doublePressTime = 2 * time.Second

// handlePress is one Ctrl-C. A third, once the program is ending, does not wait for its end.
func (i *interruptHandler) handlePress() (ends bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	switch {
	case i.isEnding:
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

// forgetPress says that a line was typed: what is pressed from then on has nothing to do with what was pressed before.
func (i *interruptHandler) forgetPress() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lastPress = time.Time{}
}

// markEnding says that the program is ending: the next Ctrl-C does not wait for its end.
func (i *interruptHandler) markEnding() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.isEnding = true
}

// startWork returns a context that Ctrl-C ends. What it is for is over when done is called.
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

// listenSignals takes Ctrl-C over from the program, of which it would be the end, until done is called.
func (i *interruptHandler) listenSignals() (done func()) {
	signal.Ignore(os.Interrupt) // which takes it from whoever had it
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
