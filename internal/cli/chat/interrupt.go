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

// errStopped is the cause of what Ctrl-C has stopped.
var errStopped = errors.New("the user stopped it")

// interrupts are the presses of Ctrl-C in a conversation: one stops what is going on, a second within a moment the program, unless
// a line was typed between them. It is safe for concurrent use.
type interrupts struct {
	end func(cause error) // ends the program

	mu     sync.Mutex
	before time.Time         // when it was pressed last
	stop   func(cause error) // ends what is going on; nil: nothing is
	ended  bool
}

// moment is within how long a second Ctrl-C ends the program.
const moment = 2 * time.Second

// press is one Ctrl-C. A third, once the program is ending, does not wait for its end.
func (i *interrupts) press() (ends bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	switch {
	case i.ended:
		os.Exit(exit.Interrupted)
	case now.Sub(i.before) < moment:
		i.ended = true
		i.end(&exit.Interruption{Signal: os.Interrupt})
		return true
	}
	i.before = now
	if i.stop != nil {
		i.stop(errStopped)
	}
	return false
}

// typed says that a line was typed: what is pressed from then on has nothing to do with what was pressed before.
func (i *interrupts) typed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.before = time.Time{}
}

// last says that the program is ending: the next Ctrl-C does not wait for its end.
func (i *interrupts) last() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
}

// during returns a context that Ctrl-C ends. What it is for is over when done is called.
func (i *interrupts) during(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	i.stop = cancel
	i.mu.Unlock()
	return ctx, func() {
		i.mu.Lock()
		i.stop = nil
		i.mu.Unlock()
		cancel(nil)
	}
}

// listen takes Ctrl-C over from the program, of which it would be the end, until done is called.
func (i *interrupts) listen() (done func()) {
	signal.Ignore(os.Interrupt) // which takes it from whoever had it
	signals, stop, stopped := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-signals:
				i.press()
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
