package client

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// awaitNextPoll waits until the task must be asked for again: after the server's interval, or when
// a notification says that the task has ended or asks. It listens to a task that works. It reports
// false if ctx ends first.
func (w *taskWait) awaitNextPoll(ctx context.Context, revision mcp.Revision, polled *mcpwire.Task) bool {
	if _, mayReopen := w.listener.state(); mayReopen {
		w.stopListening()
	}
	if w.listener == nil && revision.Modern() && polled.Status == mcpwire.TaskWorking {
		w.listener = w.client.listenToTask(ctx, w.id)
	}
	if w.listener == nil {
		return waitDelay(ctx, pollInterval(polled), nil)
	}
	began := time.Now()
	timer := time.NewTimer(w.pollDelay(polled))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-w.listener.wake:
			if w.takeNotified(polled) {
				return true
			}
			timer.Reset(w.pollDelay(polled) - time.Since(began))
		}
	}
}

// pollDelay returns the wait before the next poll. It is long only if the task works, and if
// notifications tell each change after the latest known state.
func (w *taskWait) pollDelay(polled *mcpwire.Task) time.Duration {
	interval := pollInterval(polled)
	isActive, _ := w.listener.state()
	if !isActive || !w.isCurrent || w.hasEnded || polled.Status != mcpwire.TaskWorking {
		return interval
	}
	return max(interval, minSlowPoll, min(slowPollFactor*interval, maxSlowPoll))
}

// notePolled notes a state that the server has returned. wasActive reports that notifications
// arrived already when the poll was sent, so that no change between the two is lost.
func (w *taskWait) notePolled(polled *mcpwire.Task, wasActive bool) {
	w.isCurrent = w.isCurrent || wasActive
	if t := updateTime(polled); t.After(w.updated) {
		w.updated = t
	}
}

// takeNotified takes the state that a notification has told, and reports whether the task must be
// asked for at once. tasks/get has the result and the questions. A state that is older than the
// known one does not count, nor does any after the end of the task.
func (w *taskWait) takeNotified(polled *mcpwire.Task) bool {
	task := w.listener.takeState()
	if task == nil || w.hasEnded || isOlder(task, w.updated) {
		return false
	}
	w.isCurrent = true
	if t := updateTime(task); t.After(w.updated) {
		w.updated = t
	}
	w.reportMessage(task)
	w.hasEnded = task.HasEnded()
	asks := task.Status == mcpwire.TaskInputRequired && (polled.Status != mcpwire.TaskInputRequired || w.hasNewQuestion(task))
	return w.hasEnded || asks
}

// hasNewQuestion reports whether the task has a question that the client has not answered.
func (w *taskWait) hasNewQuestion(task *mcpwire.Task) bool {
	for key := range task.InputRequests {
		if !w.answered[key] {
			return true
		}
	}
	return false
}

// stopListening ends the subscription to the task, if there is one.
func (w *taskWait) stopListening() {
	if w.listener == nil {
		return
	}
	w.listener.closeListener()
	w.listener, w.isCurrent = nil, false
}

// firstPoll returns the wait before the first poll for a task that a call has made. The answer to
// the call has neither the questions nor the result of a task that is not working: a poll has
// them.
func firstPoll(created *mcpwire.Task) time.Duration {
	if created.Status != mcpwire.TaskWorking {
		return 0
	}
	return pollInterval(created)
}

// pollInterval returns the wait before the next poll.
func pollInterval(task *mcpwire.Task) time.Duration {
	if task.PollIntervalMs <= 0 {
		return defaultPoll
	}
	return max(shortestPoll, time.Duration(task.PollIntervalMs)*time.Millisecond)
}
