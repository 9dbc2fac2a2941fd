package history

import (
	"fmt"
	"time"
)

// checkHeard is I3 and I4 for the states that one subscription tells: none is older than the one
// before, and none comes after the end but the same end.
func checkHeard(h *History) (all []Violation) {
	type told struct {
		within *Op
		task   string
	}
	last := map[told]*Op{}
	for _, o := range h.ops {
		if o.Kind != Hear {
			continue
		}
		switch before := last[told{o.Within, o.Key}]; {
		case before == nil:
		case isTerminal(before.Status) && end(o) != end(before):
			all = append(all, violation("I4", o, "a subscription has told %q after %q", end(o), end(before)))
		case o.Updated < before.Updated:
			all = append(all, violation("I3", o, "a subscription has told the state of %.3fs after that of %.3fs", o.Updated.Seconds(), before.Updated.Seconds()))
		}
		last[told{o.Within, o.Key}] = o
	}
	return all
}

// checkFollowed is I2 for subscriptions: they leave a task out only if something was done to the
// cluster.
func checkFollowed(h *History) (all []Violation) {
	for _, o := range h.ops {
		if o.Kind == Follow && o.Outcome == Missing && !h.disturbed(o.Call, o.Return, func(*Fault) bool { return true }) {
			all = append(all, violation("I2", o, "a subscription leaves the task out: %s", o.Err))
		}
	}
	return all
}

// checkTold is I11 for clients that only listen: they hear what has become of the task of a killed
// replica in time, although no request asks for it.
func checkTold(h *History) (all []Violation) {
	for _, a := range h.orphanedAwaits() {
		if kill := a.orphan.kill; !h.wasTold(a) {
			all = append(all, Violation{"I11", a.Key, a.limit, fmt.Sprintf("%s was killed at %.3fs, and the client that listens to its task has not heard of it", kill.Target, kill.From.Seconds())})
		}
	}
	return all
}

// An orphanedAwait is a listener whose task worked in a process that was killed. Nothing else was
// done to the cluster until the limit that would excuse that it hears nothing.
type orphanedAwait struct {
	*Op
	orphan orphan
	limit  time.Duration
}

func (h *History) orphanedAwaits() (all []orphanedAwait) {
	orphans := map[string]orphan{} // by the task
	for _, c := range h.orphans() {
		orphans[c.Key] = c
	}
	for _, a := range h.ops {
		c, isOrphan := orphans[a.Key]
		if a.Kind != Await || !isOrphan || a.Return != 0 && c.kill.From >= a.Return {
			continue
		}
		if limit := c.kill.From + h.Limits.Orphan; h.isLeftAlone(c.kill, limit) {
			all = append(all, orphanedAwait{a, c, limit})
		}
	}
	return all
}

// wasTold reports whether a listener has heard in time about its task after a kill: the end, a
// question that waits, or a state that began after the kill if the task may run again.
func (h *History) wasTold(a orphanedAwait) bool {
	waits := a.Status != Hosted && a.orphan.begun.Kind == Create // for an answer
	for _, o := range h.ops {
		if o.Kind != Hear || o.Key != a.Key || o.Client != a.Client || o.Return > a.limit {
			continue
		}
		if isTerminal(o.Status) || o.Status == "input_required" && waits || a.Status == Rerun && o.Updated >= a.orphan.kill.From {
			return true
		}
	}
	return false
}
