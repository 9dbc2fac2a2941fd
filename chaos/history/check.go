package history

import (
	"fmt"
	"slices"
	"time"
)

// A Violation is a broken promise.
type Violation struct {
	Promise string // I1 to I11
	Key     string // the session, task or job
	At      time.Duration
	Text    string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s broken at %.3fs for %s: %s", v.Promise, v.At.Seconds(), shortKey(v.Key), v.Text)
}

// Check returns the broken promises. The history must have ended.
func (h *History) Check() (all []Violation) {
	for _, check := range []func(*History) []Violation{
		checkEnds, checkCauses, checkKilled, checkSessions, checkTasks, checkResults, checkHandlers, checkAnswers, checkCancelled, checkStreams,
		checkStrangers, checkOrphans, checkReruns, checkTakeovers, checkHeard, checkFollowed, checkTold, checkWrites, checkChanges, checkSharedCalls, checkSharedOwner,
	} {
		all = append(all, check(h)...)
	}
	return all
}

func violation(promise string, o *Op, format string, args ...any) Violation {
	key := o.Key
	if key == "" {
		key = o.Job
	}
	return Violation{promise, key, o.Return, fmt.Sprintf(format, args...)}
}

// checkEnds is I1: each operation ends, within the limit of its client.
func checkEnds(h *History) (all []Violation) {
	for _, o := range h.ops {
		if o.Outcome == Hung || o.Outcome == "" {
			all = append(all, violation("I1", o, "the operation %s of %s has not ended", o.Kind, o.Client))
		}
	}
	return all
}

// checkCauses is I1: an operation fails only if something was done to the cluster.
func checkCauses(h *History) (all []Violation) {
	for _, o := range h.ops {
		if o.Outcome == Failed && !h.disturbed(o.Call, o.Return, func(*Fault) bool { return true }) {
			all = append(all, violation("I1", o, "the operation %s of %s has failed without a cause: %s", o.Kind, o.Client, o.Err))
		}
	}
	return all
}

// disturbed reports whether a fault of a kind had an effect in a time.
func (h *History) disturbed(from, until time.Duration, matches func(*Fault) bool) bool {
	for _, f := range h.faults {
		if f.From <= until && (f.Until == 0 || f.Until+h.Limits.Grace >= from) && matches(f) {
			return true
		}
	}
	return false
}

// hadFault reports whether a fault of a kind had an effect in a time on what a healthy cluster
// promises.
func (h *History) hadFault(from, until time.Duration, matches func(*Fault) bool) bool {
	return slices.ContainsFunc(h.faults, func(f *Fault) bool {
		return f.From <= until && (f.Until == 0 || f.Until+h.Limits.Recovery >= from) && matches(f)
	})
}

// checkKilled is I1: the operations of a killed replica end at once.
func checkKilled(h *History) (all []Violation) {
	for _, f := range h.faults {
		if f.Kind != Kill {
			continue
		}
		for _, o := range h.ops {
			if o.Kind != Listen && o.Owner == f.Target && o.Call < f.From && o.Return > f.From+h.Limits.AfterKill+h.excused(f, o.Return) {
				all = append(all, violation("I1", o, "%s was killed at %.3fs, and the operation %s ended %.3f s later", f.Target, f.From.Seconds(), o.Kind, (o.Return-f.From).Seconds()))
			}
		}
	}
	return all
}

// withoutLeader returns how much of a time JetStream may have had no leader: what is promised needs
// one.
func (h *History) withoutLeader(from, until time.Duration) (sum time.Duration) {
	for _, f := range h.faults {
		if f.Kind == KillStore {
			sum += max(0, min(until, max(f.Until, f.From+h.Limits.Election))-max(from, f.From))
		}
	}
	return sum
}

// excused returns how much of the time after a kill does not count for the operations of the killed
// process: JetStream may have no leader, and a client that turns to another process may reach a
// stopped one.
func (h *History) excused(kill *Fault, until time.Duration) time.Duration {
	sum := h.withoutLeader(kill.From, until)
	for _, f := range h.faults {
		if (f.Kind == Stop || f.Kind == Freeze) && f.Target != kill.Target {
			sum += max(0, min(until, f.Until)-max(kill.From, f.From))
		}
	}
	return sum
}

// LongestAfterKill returns the longest time from the end of a replica to the end of one of its
// operations, without the time that is excused.
func (h *History) LongestAfterKill() (longest time.Duration) {
	for _, f := range h.faults {
		for _, o := range h.ops {
			if f.Kind == Kill && o.Kind != Listen && o.Owner == f.Target && o.Call < f.From && o.Return > f.From {
				longest = max(longest, o.Return-f.From-h.excused(f, o.Return))
			}
		}
	}
	return longest
}

// checkResults is I4: clients get the result of their job.
func checkResults(h *History) (all []Violation) {
	for _, o := range h.ops {
		if o.Outcome != OK || o.Want == "" || o.Kind == Create {
			continue
		}
		if (o.Kind == Get || o.Kind == Hear || o.Kind == Result) && o.Status != "completed" {
			continue
		}
		if o.Got != o.Want {
			all = append(all, violation("I4", o, "the result of %s is %q, want %q", o.Job, o.Got, o.Want))
		}
	}
	return all
}

// checkHandlers is I6: the handler of a job starts once. Each start stands for one request that has
// arrived: a question runs the handler again, but not the step that records the start.
func checkHandlers(h *History) (all []Violation) {
	starts, rerun := map[string]int{}, h.reruns()
	for _, s := range h.steps {
		if s.What == "start" {
			if starts[s.Job]++; starts[s.Job] == 2 && !rerun[s.Job] {
				all = append(all, Violation{"I6", s.Job, s.At, "its handler has started twice"})
			}
		}
	}
	for _, o := range h.ops {
		if o.Outcome == OK && o.Job != "" && starts[o.Job] == 0 && (o.Kind == Call || o.Kind == Ask || o.Kind == Steps || o.Kind == Create || o.Kind == Shared) && !h.endedEarly(o) {
			all = append(all, violation("I6", o, "the call was answered, and its handler never started"))
		}
	}
	return all
}

// checkAnswers is I5: an answer reaches its handler once, as it was sent.
func checkAnswers(h *History) (all []Violation) {
	answers, rerun := map[string]int{}, h.reruns()
	for _, s := range h.steps {
		if s.What != "answer" {
			continue
		}
		if answers[s.Job]++; answers[s.Job] == 2 && !rerun[s.Job] {
			all = append(all, Violation{"I5", s.Job, s.At, "its answer was delivered twice"})
		}
		if s.Value != AnswerOf(s.Job) {
			all = append(all, Violation{"I5", s.Job, s.At, fmt.Sprintf("the handler got the answer %q, want %q", s.Value, AnswerOf(s.Job))})
		}
	}
	ends := map[string]string{} // the last known state of the task of a job
	for _, o := range h.ops {
		if o.Kind == Get && o.Outcome == OK {
			ends[o.Job] = o.Status
		}
	}
	for _, o := range h.ops {
		if o.Kind == Answer && o.Outcome == OK && answers[o.Job] == 0 && (ends[o.Job] == "completed" || ends[o.Job] == "working") {
			all = append(all, violation("I5", o, "the acknowledged answer was not applied, and the task is %s", ends[o.Job]))
		}
	}
	return all
}

// AnswerOf returns the answer that clients give to the question of a job.
func AnswerOf(job string) string { return "answer-" + job }

// checkCancelled is I8: a task ends soon after its cancellation was acknowledged.
func checkCancelled(h *History) (all []Violation) {
	for _, c := range h.ops {
		if c.Kind != Cancel || c.Outcome != OK {
			continue
		}
		for _, o := range h.ops {
			if o.Kind == Get && o.Key == c.Key && o.Outcome == OK && !isTerminal(o.Status) && o.Call > c.Return+h.Limits.Cancel {
				all = append(all, violation("I8", o, "cancelled at %.3fs, and still %s", c.Return.Seconds(), o.Status))
				break
			}
			limit := c.Return + h.Limits.Cancel
			if o.Kind == Await && o.Key == c.Key && o.Return > limit && !h.hadFault(c.Return, limit, func(*Fault) bool { return true }) {
				all = append(all, violation("I8", o, "cancelled at %.3fs, and its listener has heard of the end at %.3fs", c.Return.Seconds(), o.Return.Seconds()))
			}
		}
	}
	return all
}

func isTerminal(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// checkStreams is I9: the events of a call arrive in order, without a gap and without a double,
// over all connections. A call fails only if its replica or the store had a fault.
func checkStreams(h *History) (all []Violation) {
	for _, o := range h.ops {
		if o.Kind != Steps {
			continue
		}
		for i, n := range o.Events {
			if n != i+1 {
				all = append(all, violation("I9", o, "event %d is number %d: %v", i+1, n, o.Events))
				break
			}
		}
		if o.Outcome == OK && len(o.Events) != o.Count {
			all = append(all, violation("I9", o, "%d events before the result, want %d", len(o.Events), o.Count))
		}
		if o.Outcome != OK && o.Owner != "" && len(o.Events) > 0 && !h.disturbed(o.Call, o.Return, func(f *Fault) bool {
			return f.Target == o.Owner || f.Kind == KillStore || f.Kind == CutStore || f.Kind == SlowStore
		}) {
			all = append(all, violation("I9", o, "the call has failed, and neither its replica nor the store had a fault: %s", o.Err))
		}
	}
	return all
}

// checkStrangers is I10: another user reaches nothing.
func checkStrangers(h *History) (all []Violation) {
	for _, o := range h.ops {
		if o.Kind == Steal && o.Outcome == OK {
			all = append(all, violation("I10", o, "another user got %s", o.Got))
		}
	}
	return all
}

// What becomes of the task of a Create when the process that runs it ends: the Status of the
// operation.
const (
	Elsewhere = ""       // nothing: its function runs in the server behind the replicas
	Hosted    = "hosted" // it fails; its questions are not stored
	Once      = "once"   // it fails; its questions are stored
	Rerun     = "rerun"  // its function runs again in another process
)
