package shell

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// run gives the shell a command. It is an error if one runs.
func (sh *shell) run(text string) (*command, error) {
	sh.input.Lock()
	defer sh.input.Unlock()
	for {
		c, err := sh.next()
		if err != nil {
			return nil, err
		}
		if c.settles {
			if !sh.settle(c) {
				return nil, fmt.Errorf("the shell %s has not answered since it was interrupted: call with restart to end it and begin anew", sh.handle)
			}
			continue
		}
		// A shell that has ended cannot be written to: whoever waits for the command sees that.
		_, _ = sh.child.Write([]byte(commandLine(sh.token, c.number, c.earlier, text)))
		return c, nil
	}
}

// next makes a command the running one: one that settles the shell, where that was interrupted.
func (sh *shell) next() (*command, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if c := sh.running; c != nil {
		return nil, fmt.Errorf("the shell %s is busy: its command has been running for %v. Call with an empty command to wait for it and read its output, with the command ctrl+c to interrupt it, or with restart to end it; or leave the argument shell out to open another shell",
			sh.handle, time.Since(c.began).Round(time.Second))
	}
	sh.number++
	c := &command{number: sh.number, began: time.Now(), earlier: sh.status, printed: sh.printed, done: make(chan struct{})}
	if sh.unsettled && !sh.isGone() {
		sh.unsettled = false
		c.settles, c.begun, c.interrupt = true, true, true
	} else {
		c.before, sh.finished = sh.finished, nil
	}
	sh.running = c
	return c, nil
}

// settle waits until the shell has dealt with an interrupt. One that came after the end of its command may hit the shell
// later, while it reads: of a line that is lost in part, the rest would be run. Any part of this one does no harm. It reports
// whether the shell has answered, or ended.
func (sh *shell) settle(c *command) bool {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	bound := time.NewTimer(settleBound)
	defer bound.Stop()
	for {
		sh.ask(c)
		select {
		case <-c.done:
			return true
		case <-sh.gone:
			return true
		case <-bound.C:
			return false
		case <-tick.C:
		}
	}
}

// current returns the command that runs, or else one that has ended since a call waited for it; nil if there is none.
func (sh *shell) current() *command {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	switch {
	case sh.running == nil:
		return sh.finished
	case sh.running.settles:
		return nil
	}
	return sh.running
}

// interrupt does what Ctrl-C does on a terminal. A command that the shell has not read to its end is interrupted then: the
// rest of it would be taken for another command.
func (sh *shell) interrupt(c *command) {
	sh.mu.Lock()
	if sh.running == c {
		c.interrupt = true
	}
	begun := c.begun
	sh.mu.Unlock()
	if begun {
		sh.signal(c)
	}
}

// signal interrupts a command that has begun.
func (sh *shell) signal(c *command) {
	sh.mu.Lock()
	select {
	case <-sh.child.Exited():
	default:
		if sh.running == c {
			c.children = children(sh.group)
			interruptGroup(sh.group)
			sh.unsettled = true
		}
	}
	sh.mu.Unlock()
	sh.remind(c)
}

// insist sees to it that an interrupt is heeded. Where a program ends by itself just when the interrupt comes, or after it
// has dealt with it, the shell goes on to the next program; and one that was just being started does not notice. That one is
// interrupted then, and not the one before once more, which might take it as an order to drop everything.
func (sh *shell) insist(c *command) {
	sh.mu.Lock()
	wentOn := sh.running == c && c.begun && c.interrupt &&
		slices.ContainsFunc(children(sh.group), func(child string) bool { return !slices.Contains(c.children, child) })
	sh.mu.Unlock()
	if wentOn {
		sh.signal(c)
	} else {
		sh.remind(c)
	}
}

// remind asks the shell once more how a command that was interrupted has ended: if it had just ended, the shell may have
// been reading the endLine, and lost it. It does not wait for somebody else who writes: a shell that was stopped reads nothing,
// and there will be another time.
func (sh *shell) remind(c *command) {
	if sh.input.TryLock() {
		defer sh.input.Unlock()
		sh.ask(c)
	}
}

// ask sends an againLine where there is a use for it. The input must be locked.
func (sh *shell) ask(c *command) {
	sh.mu.Lock()
	due := sh.running == c && c.begun && c.interrupt && c.reminders < maxReminders
	if due {
		c.reminders++
	}
	sh.mu.Unlock()
	if due {
		_, _ = sh.child.Write([]byte(againLine(sh.token, c.number)))
	}
}

// await waits until the command is done, the shell has ended, or the time is up, whichever comes first. c may be nil.
// While it waits it reports, now and then, how long, and what was printed since the last report, the first since seen.
func (sh *shell) await(ctx context.Context, c *command, timeout time.Duration, seen int, report func(elapsed time.Duration, printed string)) error {
	if c == nil {
		return nil
	}
	up := time.NewTimer(timeout)
	defer up.Stop()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	began, latest := time.Now(), time.Now()
	for {
		select {
		case <-c.done:
			return nil
		case <-sh.gone:
			return nil
		case <-up.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case now := <-tick.C:
			sh.insist(c)
			printed, count := sh.since(seen)
			if count == seen && now.Sub(latest) < signOfLife {
				continue
			}
			seen, latest = count, now
			report(now.Sub(began), printed)
		}
	}
}

const (
	settleEvery = 20 * time.Millisecond
	settleBound = 5 * time.Second
	reportEvery = 250 * time.Millisecond // at most, and only where something was printed
	signOfLife  = 5 * time.Second        // where nothing is
	maxReport   = 2000                   // characters
)

func (sh *shell) count() int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.printed
}

// since returns what was printed since the count was seen, or its last characters, and the count now.
func (sh *shell) since(seen int) (string, int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.unread.latest(min(sh.printed-seen, maxReport)), sh.printed
}
