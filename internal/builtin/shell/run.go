package shell

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// runCommand starts a command in the shell. It fails if another command runs.
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
				return nil, fmt.Errorf("the shell %s has not answered since it was interrupted: call with restart to end it and open a new one", sh.handle)
			}
			continue
		}
		// Write fails if the shell has ended; awaitCommand notices that.
		_, _ = sh.child.Write([]byte(commandLine(sh.token, c.number, c.earlier, text)))
		return c, nil
	}
}

// nextCommand returns a new command and makes it the running one. If the shell has been
// interrupted, the new command is a settling one: the caller must pass it to settleInterrupt and
// then call nextCommand again.
func (sh *shell) nextCommand() (*command, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if c := sh.running; c != nil {
		return nil, fmt.Errorf("the shell %s is busy: its command has been running for %v. Call with an empty command to wait for it and read its output, with the command ctrl+c to interrupt it, or with restart to end it; or omit the argument shell to open another shell",
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

// settleInterrupt waits until the shell has handled an interrupt. If the interrupt arrived after
// the end of its command, the shell may handle it while it reads the next line: it discards the
// beginning of that line and runs the rest. So settleInterrupt sends again lines, of which every
// part is harmless, until the shell answers one. It returns true if the shell has answered or
// ended, false after settleBound.
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

// currentCommand returns the running command, or a finished one that no result has reported yet, or
// nil.
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
	hasNewChild := sh.running == c && c.hasBegun && c.interrupt &&
		slices.ContainsFunc(groupChildren(sh.group), func(child string) bool { return !slices.Contains(c.children, child) })
	sh.mu.Unlock()
	if hasNewChild {
		sh.signalCommand(c)
	} else {
		sh.askAgain(c)
	}
}

// askAgain asks the shell once more how an interrupted command has ended, because the shell may
// have discarded the endLine. It does nothing if another goroutine is writing to the shell, because
// that can take long if the shell is stopped; awaitCommand calls askAgain again later.
func (sh *shell) askAgain(c *command) {
	if sh.input.TryLock() {
		defer sh.input.Unlock()
		sh.sendAgainLine(c)
	}
}

// sendAgainLine sends an againLine if c is running and has been interrupted. The caller holds
// sh.input.
func (sh *shell) sendAgainLine(c *command) {
	sh.mu.Lock()
	send := sh.running == c && c.hasBegun && c.interrupt && c.reminders < maxReminders
	if send {
		c.reminders++
	}
	sh.mu.Unlock()
	if send {
		_, _ = sh.child.Write([]byte(againLine(sh.token, c.number)))
	}
}

// awaitCommand waits until the command is done, the shell has ended, or timeout has passed. If c is
// nil, it returns at once. Meanwhile it calls report with the elapsed time and the output since the
// last report; seen is the value of shell.printed at which the first report begins.
func (sh *shell) awaitCommand(ctx context.Context, c *command, timeout time.Duration, seen int, report func(elapsed time.Duration, printed string)) error {
	if c == nil {
		return nil
	}
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	began, latest := time.Now(), time.Now()
	for {
		select {
		case <-c.done:
			return nil
		case <-sh.exited:
			return nil
		case <-limit.C:
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
	reportEvery = 250 * time.Millisecond // between two reports with output
	signOfLife  = 5 * time.Second        // until a report without output
	maxReport   = 2000                   // characters in a report
)

func (sh *shell) countPrinted() int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.printed
}

// printedSince returns the output after the first seen characters, at most its last maxReport
// characters, and the current value of shell.printed.
func (sh *shell) printedSince(seen int) (string, int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.unread.latestText(min(sh.printed-seen, maxReport)), sh.printed
}
