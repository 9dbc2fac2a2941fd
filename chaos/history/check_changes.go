package history

import (
	"fmt"
	"slices"
	"time"
)

// checkChanges is S1: a client with an acknowledged subscription hears of each change that comes
// after the acknowledgement, at the latest within the limit. It may hear of a change more than
// once, since a client that has reconnected is told what it may have missed; but no event arrives
// twice. Of the list, hearing of it counts and not what was found: another replica may hear of the
// change a little later.
//
// A Listen has the Key of a client, and Got is what it listens to. A change is a Step of the test
// with that as Job, and the number of the change as Value. A notice is a Step by the client, whose
// Value is the number that the client then found.
func checkChanges(h *History) (all []Violation) {
	type heard struct{ client, what string }
	notices := map[heard][]Step{}
	for _, s := range h.steps {
		if s.What == "notice" {
			notices[heard{s.By, s.Job}] = append(notices[heard{s.By, s.Job}], s)
		}
	}
	for _, o := range h.ops {
		if o.Kind != Listen {
			continue
		}
		seen := map[string]bool{}
		for _, id := range o.EventIDs {
			if seen[id] {
				all = append(all, violation("S1", o, "the event %s has arrived twice", id))
				break
			}
			seen[id] = true
		}
		for _, change := range h.steps {
			limit := change.At + h.Limits.Notice
			if change.What != "change" || change.Job != o.Got || change.At < o.Call || o.Outcome != OK || limit > o.Return {
				continue
			}
			if !slices.ContainsFunc(notices[heard{o.Client, o.Got}], func(s Step) bool {
				return s.At >= change.At && s.At <= limit && (change.Job == TheList || atLeast(s.Value, change.Value))
			}) {
				all = append(all, Violation{"S1", o.Client, change.At, fmt.Sprintf("it has not heard of change %s of %s within %v", change.Value, o.Got, h.Limits.Notice)})
				break
			}
		}
	}
	return all
}

// TheList is the name of the list of resources.
const TheList = "the list"

// atLeast compares two numbers without a sign.
func atLeast(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a >= b }

// checkSharedCalls is S2: a call of the shared server that runs in the process of a killed owner
// ends at once. I6 says that it starts in one process only.
func checkSharedCalls(h *History) (all []Violation) {
	calls := map[string]*Op{}
	for _, o := range h.ops {
		if o.Kind == Shared {
			calls[o.Job] = o
		}
	}
	for _, s := range h.steps {
		o := calls[s.Job]
		if o == nil || s.What != "start" {
			continue
		}
		for _, f := range h.faults {
			if f.Kind == Kill && f.Target == s.Value && s.At < f.From && o.Return > f.From+h.Limits.AfterKill+h.excused(f, o.Return) {
				all = append(all, violation("S2", o, "its owner %s was killed at %.3fs, and the call ended %.3f s later", f.Target, f.From.Seconds(), (o.Return-f.From).Seconds()))
			}
		}
	}
	return all
}

// checkSharedOwner is S2: the shared server has an owner again in time after the end of one. Until
// then its calls fail.
func checkSharedOwner(h *History) (all []Violation) {
	for _, f := range h.faults {
		limit := f.From + h.Limits.Orphan
		ofOthers := func(other *Fault) bool { return other != f && (isOfStore(other) || other.Target[0] == 'r') }
		if f.Kind != Kill && f.Kind != Freeze || f.Target[0] != 'r' || h.hadFault(f.From, limit, ofOthers) {
			continue
		}
		for _, o := range h.ops {
			if o.Kind == Shared && o.Outcome == Failed && o.Call > limit && o.Owner != "" && o.Owner != f.Target && !h.hadFault(limit, o.Return, func(other *Fault) bool { return other != f }) {
				all = append(all, violation("S2", o, "%s had a fault at %.3fs, and the shared server still has no owner: %s", f.Target, f.From.Seconds(), o.Err))
				break
			}
		}
	}
	return all
}

// Overlaps returns how often a call started in one process of the shared server after another
// process had started one later.
func (h *History) Overlaps() (n int) {
	first := map[string]time.Duration{}
	for _, s := range h.steps {
		if _, known := first[s.By]; s.What == "start" && s.By != "" && !known {
			first[s.By] = s.At
		}
	}
	newest := time.Duration(0)
	for _, s := range h.steps {
		if at, known := first[s.By]; known && s.What == "start" && s.Value != "" {
			if at < newest {
				n++
			}
			newest = max(newest, at)
		}
	}
	return n
}
