package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// reruns returns the jobs of tasks that another process may run again.
func (h *History) reruns() map[string]bool {
	all := map[string]bool{}
	for _, o := range h.ops {
		if o.Kind == Create && o.Status == Rerun {
			all[o.Job] = true
		}
	}
	return all
}

// endedEarly reports whether the process of a task may have ended before its function started.
func (h *History) endedEarly(c *Op) bool {
	return c.Kind == Create && (c.Status == Hosted || c.Status == Once || c.Status == Rerun) &&
		slices.ContainsFunc(h.faults, func(f *Fault) bool { return f.Target == c.Owner && f.Until >= c.Call })
}

// mayBeGone reports whether the others may have taken a process for gone in a time.
func (h *History) mayBeGone(process string, from, until time.Duration) bool {
	return slices.ContainsFunc(h.faults, func(f *Fault) bool {
		return f.From <= until && (f.Until == 0 || f.Until >= from) && (f.Target == process && f.Kind != SlowCalls || f.Kind == KillStore)
	})
}

// checkReruns is I6 for tasks that are run again: each further run needs the end of the process
// before, or of its connection to the store. The steps before a question are not done again after a
// client has seen the question.
func checkReruns(h *History) (all []Violation) {
	rerun, last, asked := h.reruns(), map[string]Step{}, map[string]time.Duration{}
	for _, o := range h.ops {
		if at, known := asked[o.Job]; o.Kind == Get && o.Status == "input_required" && (!known || o.Return < at) {
			asked[o.Job] = o.Return
		}
	}
	for _, s := range h.steps {
		if s.What != "start" || !rerun[s.Job] {
			continue
		}
		before, again := last[s.Job]
		if again && !h.mayBeGone(before.By, before.At, s.At) {
			all = append(all, Violation{"I6", s.Job, s.At, fmt.Sprintf("%s runs its handler again, and nothing was done to %s", s.By, before.By)})
		}
		if seen, known := asked[s.Job]; again && known && s.At > seen && !h.wasFrozen(s.By, s.At) {
			all = append(all, Violation{"I6", s.Job, s.At, "a step before its question was done again after the question"})
		}
		last[s.Job] = s
	}
	return all
}

// wasFrozen reports whether a process did not know that it had lost its tasks. No store can stop
// the effects of a function that still runs there.
func (h *History) wasFrozen(process string, at time.Duration) bool {
	return slices.ContainsFunc(h.faults, func(f *Fault) bool {
		return f.Target == process && f.Kind != Kill && f.From <= at && f.Until+h.Limits.Orphan >= at
	})
}

// checkWrites is I7: each accepted version of a task follows on the one before, and only the
// process that runs the task by the version before changes it. Another one may only cancel it,
// answer it, or take it over from a process that may be gone; that begins an epoch.
func checkWrites(h *History) (all []Violation) {
	keys, processes := map[string][]Write{}, map[string]string{}
	for _, w := range h.writes {
		keys[w.Key] = append(keys[w.Key], w)
		processes[w.By] = w.Process
	}
	for key, writes := range keys {
		slices.SortFunc(writes, func(a, b Write) int { return cmp.Compare(a.Version, b.Version) })
		bad := func(w Write, format string, args ...any) {
			all = append(all, Violation{"I7", key, h.endOf(key), fmt.Sprintf("version %d of %s: %s", w.Version, w.By, fmt.Sprintf(format, args...))})
		}
		for i, w := range writes[min(1, len(writes)):] {
			switch before := writes[i]; {
			case w.Prev == before.Prev:
				bad(w, "version %d was replaced twice, also by %s", w.Prev, before.By)
			case w.Epoch < before.Epoch:
				bad(w, "epoch %d after %d", w.Epoch, before.Epoch)
			case isTerminal(before.Status):
				bad(w, "the task is %s after %s", w.Status, before.Status)
			case w.Prev != before.Version: // one in between was not recorded
			case w.Epoch == before.Epoch && w.By != before.Runner && w.Status != "cancelled":
				bad(w, "it stored %s in the epoch of %s", w.Status, before.Runner)
			case w.Epoch > before.Epoch && before.Status == "working" && before.Runner != w.By && !h.mayBeGone(processes[before.Runner], 0, math.MaxInt64):
				bad(w, "it took the task over from %s, to which nothing was done", before.Runner)
			}
		}
	}
	return all
}

// endOf returns when the last operation of a job of a task or with its key has returned.
func (h *History) endOf(key string) (at time.Duration) {
	for _, o := range h.ops {
		if o.Key == key {
			at = max(at, o.Return)
		}
	}
	return at
}
