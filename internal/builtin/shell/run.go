package shell

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// runCommand gives the shell a command. It is an error if one runs.
func (sh *shell) runCommand(text string) (*command, error) {
	sh.input.Lock()
	defer sh.input.Unlock()
	for {
		c, err := sh.nextCommand()
		if err != nil {
			return nil, err
		}
		if c.isSettling {
			if !sh.settleInterrupt(c) {
				return nil, fmt.Errorf("the shell %s has not answered since it was interrupted: call with restart to end it and begin anew", sh.handle)
			}
			continue
		}
		// Write fails if the shell has ended; the caller that waits for the command notices that.
		_, _ = sh.child.Write([]byte(commandLine(sh.token, c.number, c.earlier, text)))
		return c, nil
	}
}

// nextCommand makes a command the running one: one that settles the shell, where that was
// interrupted.
func (sh *shell) nextCommand() (*command, error) {
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
		c.isSettling, c.hasBegun, c.interrupt = true, true, true
	} else {
		c.before, sh.finished = sh.finished, nil
	}
	sh.running = c
	return c, nil
}

// settleInterrupt waits until the shell has dealt with an interrupt. One that came after the end of
// its command may hit the shell later, while it reads: of a line that is lost in part, the rest
// would be run. Any part of this one does no harm. It reports whether the shell has answered, or
// ended.
func (sh *shell) settleInterrupt(c *command) bool {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	bound := time.NewTimer(settleBound)
	defer bound.Stop()
	for {
		sh.sendAgainLine(c)
		select {
		case <-c.done:
			return true
		case <-sh.exited:
			return true
		case <-bound.C:
			return false
		case <-tick.C:
		}
	}
}

// currentCommand returns the running command, else one that has ended since a call waited for it,
// or nil.
func (sh *shell) currentCommand() *command {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	switch {
	case sh.running == nil:
		return sh.finished
	case sh.running.isSettling:
		return nil
	}
	return sh.running
}

// interruptCommand does the same as Ctrl-C on a terminal. A command that the shell is still reading
// is interrupted after it has been read; otherwise the shell would take the rest of it for another
// command.
func (sh *shell) interruptCommand(c *command) {
	sh.mu.Lock()
	if sh.running == c {
		c.interrupt = true
	}
	begun := c.hasBegun
	sh.mu.Unlock()
	if begun {
		sh.signalCommand(c)
	}
}

// signalCommand interrupts a command that has begun.
func (sh *shell) signalCommand(c *command) {
	sh.mu.Lock()
	select {
	case <-sh.child.Exited():
	default:
		if sh.running == c {
			c.children = groupChildren(sh.group)
			interruptGroup(sh.group)
			sh.unsettled = true
		}
	}
	sh.mu.Unlock()
	sh.askAgain(c)
}

// repeatInterrupt makes sure that an interrupt has an effect. A program may end by itself at that
// moment, or handle the interrupt, and the shell continues with the next program; a program that is
// just starting does not notice it. In these cases the new program is interrupted. The old one is
// not interrupted again, because it might take that as an order to abandon its cleanup.
func (sh *shell) repeatInterrupt(c *command) {
	sh.mu.Lock()
	wentOn := sh.running == c && c.hasBegun && c.interrupt &&
		slices.ContainsFunc(groupChildren(sh.group), func(child string) bool { return !slices.Contains(c.children, child) })
	sh.mu.Unlock()
	if wentOn {
		sh.signalCommand(c)
	} else {
		sh.askAgain(c)
	}
}

// askAgain asks the shell once more how an interrupted command has ended. The command may have just
// ended, and the shell lost the endLine while reading it. It does not wait for another writer: a
// stopped shell reads nothing, and askAgain is called again later.
func (sh *shell) askAgain(c *command) {
	if sh.input.TryLock() {
		defer sh.input.Unlock()
		sh.sendAgainLine(c)
	}
}

// sendAgainLine sends an againLine where there is a use for it. The input must be locked.
func (sh *shell) sendAgainLine(c *command) {
	sh.mu.Lock()
	due := sh.running == c && c.hasBegun && c.interrupt && c.reminders < maxReminders
	if due {
		c.reminders++
	}
	sh.mu.Unlock()
	if due {
		_, _ = sh.child.Write([]byte(againLine(sh.token, c.number)))
	}
}

// awaitCommand waits until the command is done, the shell has ended, or the time is up. c may be
// nil. Meanwhile it calls report at intervals with the elapsed time and the output since the last
// report; the first time, the output since seen.
func (sh *shell) awaitCommand(ctx context.Context, c *command, timeout time.Duration, seen int, report func(elapsed time.Duration, printed string)) error {
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
		case <-sh.exited:
			return nil
		case <-up.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case now := <-tick.C:
			sh.repeatInterrupt(c)
			printed, count := sh.printedSince(seen)
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

func (sh *shell) countPrinted() int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.printed
}

// printedSince returns the output since the count was seen, or its last characters, and the current
// count.
func (sh *shell) printedSince(seen int) (string, int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.unread.latestText(min(sh.printed-seen, maxReport)), sh.printed
}
