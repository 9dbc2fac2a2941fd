package history

import (
	"slices"
	"time"
)

// An orphan is a task whose process was killed while the task worked there, as far as the history
// says.
type orphan struct {
	*Op       // the Create
	begun *Op // the Create, or the Answer after which another process may have run the task
	kill  *Fault
}

// orphans returns the tasks that worked in a killed process. It leaves out the tasks that may have
// worked elsewhere: a fault before the kill may have moved them.
func (h *History) orphans() (all []orphan) {
	answers := map[string][]*Op{}
	for _, o := range h.ops {
		if o.Kind == Answer {
			answers[o.Key] = append(answers[o.Key], o)
		}
	}
	for _, c := range h.ops {
		if c.Kind != Create || c.Outcome != OK || c.Status == Elsewhere {
			continue
		}
		begun := lastRun(c, answers[c.Key])
		if begun == nil || h.wasCut(begun) {
			continue
		}
		if f := h.firstFault(begun); f != nil && f.Kind == Kill && f.From >= begun.Return {
			all = append(all, orphan{c, begun, f})
		}
	}
	return all
}

// lastRun returns the operation that began the last run of a task, or nil if it is not known. The
// process that gets the answer to the only question of a task runs the task, unless the task is
// hosted.
func lastRun(c *Op, answers []*Op) *Op {
	switch {
	case c.Status == Hosted || len(answers) == 0:
		return c
	case len(answers) == 1 && answers[0].Outcome == OK && answers[0].Owner != "":
		return answers[0]
	}
	return nil
}

// firstFault returns the first fault since the call of an operation after which the process that
// got it may not run the task any more.
func (h *History) firstFault(begun *Op) (first *Fault) {
	for _, f := range h.faults {
		if (f.Target == begun.Owner || f.Kind == KillStore) && (f.Until == 0 || f.Until >= begun.Call) && (first == nil || f.From < first.From) {
			first = f
		}
	}
	return first
}

// isLeftAlone reports whether after a kill nothing else is done to the NATS servers and to
// processes of the same kind, whose names begin with the same letter.
func (h *History) isLeftAlone(kill *Fault, until time.Duration) bool {
	concerns := func(f *Fault) bool { return f.Kind == KillStore || f.Target[0] == kill.Target[0] }
	wasStopped := slices.ContainsFunc(h.faults, func(f *Fault) bool {
		return f != kill && concerns(f) && f.From <= until && (f.Until == 0 || f.Until >= kill.From)
	})
	return !wasStopped && !h.hadFault(kill.From, until, func(f *Fault) bool { return isOfStore(f) && concerns(f) })
}

func isOfStore(f *Fault) bool {
	return f.Kind == KillStore || f.Kind == CutStore || f.Kind == SlowStore
}

// wasCut reports whether the connection of an operation may have been cut. Then another process
// than its Owner may have got it, too.
func (h *History) wasCut(o *Op) bool {
	return slices.ContainsFunc(h.faults, func(f *Fault) bool {
		return f.Kind == CutCalls && f.From <= o.Return && (f.Until == 0 || f.Until >= o.Call)
	})
}

// knowsWhoIsGone reports whether the process that answered a Get knew which others are gone:
// nothing was done to it and to the NATS servers for the time of the promise. If the process is not
// known, nothing was done to any.
func (h *History) knowsWhoIsGone(o *Op) bool {
	from := o.Call - h.Limits.Orphan
	return !h.wasCut(o) && h.withoutLeader(from, o.Return) == 0 && !h.hadFault(from, o.Return, func(f *Fault) bool {
		return f.Kind == KillStore || f.Target == o.Owner || o.Owner == ""
	})
}

// checkOrphans is I11: the task of a killed replica ends in time. A job with its handler elsewhere
// is no orphan. Questions that are stored stay.
func checkOrphans(h *History) (all []Violation) {
	for _, c := range h.orphans() {
		if c.Status == Rerun {
			continue // checkTakeovers
		}
		for _, o := range h.ops {
			isOver := isTerminal(o.Status) || c.Status == Once && o.Status == "input_required"
			if o.Kind == Get && o.Key == c.Key && o.Outcome == OK && !isOver && o.Call > c.kill.From+h.Limits.Orphan && h.knowsWhoIsGone(o) {
				all = append(all, violation("I11", o, "%s was killed at %.3fs, and its task is still %s", c.kill.Target, c.kill.From.Seconds(), o.Status))
				break
			}
		}
	}
	return all
}

// checkTakeovers is I11 for tasks that are run again: they never fail, and a look after the limit
// finds them taken over.
func checkTakeovers(h *History) (all []Violation) {
	for _, c := range h.ops {
		if c.Kind != Create || c.Outcome != OK || c.Status != Rerun {
			continue
		}
		for _, o := range h.ops {
			if o.Kind == Get && o.Key == c.Key && o.Outcome == OK && o.Status == "failed" {
				all = append(all, violation("I11", o, "a task that can be run again has failed: %s", o.Got))
				break
			}
		}
	}
	for _, c := range h.orphans() {
		if c.Status == Rerun {
			all = append(all, h.checkTakeover(c)...)
		}
	}
	return all
}

// lookTime is how long the run of a task may take to begin after the look that began it.
const lookTime = 2 * time.Second

func (h *History) checkTakeover(c orphan) []Violation {
	var looked time.Duration
	for _, o := range h.ops {
		if o.Kind != Get || o.Key != c.Key || o.Outcome != OK || o.Call < c.kill.From+h.Limits.Orphan {
			continue
		}
		switch {
		case isTerminal(o.Status) || o.Status == "input_required":
			return nil
		case !h.isLeftAlone(c.kill, o.Return):
			return nil // the promise needs a leader, and a running process that reads the task
		case looked == 0:
			if o.Owner != c.kill.Target { // which may have started late
				looked = o.Return
			}
		case o.Call < looked+min(lookTime, h.Limits.Orphan):
		case !slices.ContainsFunc(h.steps, func(s Step) bool { return s.Job == c.Job && s.At > c.kill.From && s.At <= o.Call }):
			return []Violation{violation("I11", o, "%s was killed at %.3fs, and no process has run its task again", c.kill.Target, c.kill.From.Seconds())}
		default:
			return nil
		}
	}
	return nil
}
