package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTime bounds the search for an order of the operations of one task or session.
const checkTime = 20 * time.Second

// checkTasks is I2, I3 and I4: for each task there is one order of all operations, in agreement
// with their times, in which the task is known from its creation on, moves only along the diagram
// of states, and keeps one end. It checks each task by itself, since tasks are independent of each
// other.
func checkTasks(h *History) []Violation {
	return h.checkEach("I3", taskModel, func(o *Op) bool {
		switch o.Kind {
		case Create:
			return o.Outcome == OK
		case Get, Hear:
			return o.Outcome == OK || o.Outcome == Missing
		case Answer, Cancel:
			return o.Outcome != Missing
		case Result:
			return o.Outcome == OK
		}
		return false
	})
}

// checkSessions is I2 for sessions: from the answer to initialize on, every replica knows the
// session until it is ended, and none after that.
func checkSessions(h *History) []Violation {
	return h.checkEach("I2", sessionModel, func(o *Op) bool {
		switch o.Kind {
		case OpenSession:
			return o.Outcome == OK
		case UseSession:
			return o.Outcome == OK || o.Outcome == Missing
		case EndSession:
			return true
		}
		return false
	})
}

// checkEach checks the operations of each key against a model.
func (h *History) checkEach(promise string, model porcupine.Model, counts func(*Op) bool) (all []Violation) {
	keys := map[string][]*Op{}
	for _, o := range h.ops {
		if o.Key != "" && counts(o) {
			keys[o.Key] = append(keys[o.Key], o)
		}
	}
	for key, ops := range keys {
		ops = withoutRepeats(ops)
		switch result := porcupine.CheckOperationsTimeout(model, operations(ops), checkTime); result {
		case porcupine.Illegal:
			last := ops[h.firstBad(model, ops)]
			all = append(all, violation(promise, last, "there is no order of its operations that explains them; the first one too many: %s", last))
		case porcupine.Unknown:
			all = append(all, Violation{promise, key, ops[0].Call, fmt.Sprintf("the order of %d operations was not found within %v", len(ops), checkTime)})
		}
	}
	return all
}

// withoutRepeats returns the operations in the order of Call. Of each kind it keeps only the first
// operation of unknown effect: that one may have its effect at any later time, too, and a second
// effect changes nothing. With 22 cancellations that fail while NATS is away, there are so
// many orders that the search does not end.
func withoutRepeats(ops []*Op) (all []*Op) {
	known := map[Kind]bool{}
	for _, o := range slices.SortedFunc(slices.Values(ops), func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) }) {
		if hasUnknownEffect(o) {
			if known[o.Kind] {
				continue
			}
			known[o.Kind] = true
		}
		all = append(all, o)
	}
	return all
}

// hasUnknownEffect reports whether an operation may have its effect at any later time, or never.
func hasUnknownEffect(o *Op) bool {
	return o.Outcome == Failed || o.Outcome == Hung || o.Outcome == Sent
}

// firstBad returns the index of the first operation, in the order of returns, with which the
// history is illegal.
func (h *History) firstBad(model porcupine.Model, ops []*Op) int {
	slices.SortFunc(ops, func(a, b *Op) int { return cmp.Compare(a.Return, b.Return) })
	for i, last := range ops {
		known := slices.Clone(ops[:i+1])
		for _, o := range ops[i+1:] { // may have had its effect before it returned
			if o.Call < last.Return && o.Kind != Get && o.Kind != Hear && o.Kind != Result && o.Kind != UseSession {
				pending := *o
				pending.Outcome = Failed
				known = append(known, &pending)
			}
		}
		if porcupine.CheckOperationsTimeout(model, operations(withoutRepeats(known)), checkTime) == porcupine.Illegal {
			return i
		}
	}
	return len(ops) - 1
}

// operations returns operations for porcupine. One whose effect is unknown may have it at any later
// time, or never.
func operations(ops []*Op) (all []porcupine.Operation) {
	for i, o := range ops {
		end := int64(o.Return)
		if hasUnknownEffect(o) {
			end = math.MaxInt64
		}
		all = append(all, porcupine.Operation{ClientId: i, Input: o, Output: o, Call: int64(o.Call), Return: end})
	}
	return all
}

// taskState is the state of one task.
type taskState struct {
	Status    string // "" before the creation
	Job       string // what the handler does: plain, asks or waits
	Hosted    bool   // replicas that cannot reach its owner do not know its questions
	Answered  bool
	Cancelled bool // a cancellation has arrived
	Final     string
}

var taskModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{taskState{}} },
	Step: func(state, input, output any) (next []any) {
		for _, s := range stepTask(state.(taskState), input.(*Op)) {
			next = append(next, s)
		}
		return next
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string { return input.(*Op).String() },
}).ToModel()

// stepTask returns the states of a task after an operation, or none if it is not possible.
func stepTask(s taskState, o *Op) (next []taskState) {
	if o.Kind == Create {
		if s.Status != "" {
			return nil
		}
		return []taskState{{Status: "working", Job: o.Got, Hosted: o.Status == Hosted}}
	}
	for _, now := range reachable(s) {
		switch after := now; o.Kind {
		case Get, Hear, Result:
			if ok := observe(&after, o); ok {
				next = append(next, after)
			}
			continue
		case Answer:
			if now.Status == "input_required" {
				after.Status, after.Answered = "working", true
			}
			next = append(next, after)
		case Cancel:
			if !isTerminal(now.Status) {
				after.Cancelled = true
			}
			if o.Outcome == OK && o.Status != "" && !observe(&after, &Op{Status: o.Status, NoResult: true}) {
				continue
			}
			next = append(next, after)
		}
		if o.Outcome != OK {
			next = append(next, now) // without an effect
		}
	}
	return next
}

// reachable returns a state and the states that the task reaches from it by itself.
func reachable(s taskState) (all []taskState) {
	all = []taskState{s}
	if s.Status == "working" && s.Job == "asks" && !s.Answered {
		s.Status = "input_required"
		all = append(all, s)
	}
	return all
}

// observe reports whether a client may see what it saw of a task. A task that is first seen at its
// end keeps that.
func observe(s *taskState, o *Op) bool {
	if o.Outcome == Missing {
		return s.Status == ""
	}
	if s.Status == "" {
		return false
	}
	if s.Hosted && s.Status == "input_required" && o.Status == "working" {
		return true
	}
	if isTerminal(s.Status) || !isTerminal(o.Status) {
		if s.Final == "" && isTerminal(s.Status) && !o.NoResult {
			s.Final = end(o)
		}
		return s.Status == o.Status && (o.NoResult || s.Final == "" || s.Final == end(o))
	}
	switch {
	case o.Status == "cancelled" && !s.Cancelled, o.Status == "completed" && s.Job == "asks" && !s.Answered:
		return false
	}
	if s.Status = o.Status; !o.NoResult {
		s.Final = end(o)
	}
	return true
}

// end returns the end of a task as a client saw it, byte for byte.
func end(o *Op) string { return o.Status + " " + o.Got + o.Err }

// Sessions: 0 is not yet opened, 1 open, 2 ended.
var sessionModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{0} },
	Step: func(state, input, output any) []any {
		s, o := state.(int), input.(*Op)
		switch {
		case o.Kind == OpenSession && s == 0:
			return []any{1}
		case o.Kind == UseSession && (o.Outcome == OK && s == 1 || o.Outcome == Missing && s == 2):
			return []any{s}
		case o.Kind == EndSession && o.Outcome == OK && s == 1, o.Kind == EndSession && o.Outcome == Missing && s == 2:
			return []any{2}
		case o.Kind == EndSession && (o.Outcome == Failed || o.Outcome == Hung):
			return []any{s, 2}
		}
		return nil
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string { return input.(*Op).String() },
}).ToModel()
