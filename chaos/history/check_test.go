package history

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// at makes a history of operations. Its times are small: one nanosecond stands for a millisecond.
func at(ops []Op, faults []Fault, steps []Step) *History {
	h := New(Limits{Orphan: 11_000, AfterKill: 5_000, Cancel: 5_000, Grace: 1_000})
	for _, o := range ops {
		if o.Outcome == "" {
			o.Outcome = OK
		}
		h.ops = append(h.ops, &o)
	}
	for _, f := range faults {
		h.faults = append(h.faults, &f)
	}
	h.steps = steps
	return h
}

var started = []Step{{1, "j", "start", ""}}

func get(from, until time.Duration, status, got string) Op {
	return Op{Kind: Get, Key: "t", Job: "j", Call: from, Return: until, Status: status, Got: got}
}

func create(job string) Op {
	return Op{Kind: Create, Key: "t", Job: "j", Got: job, Call: 0, Return: 10, Owner: "r1"}
}

func steps(outcome Outcome, numbers ...int) Op {
	return Op{Kind: Steps, Job: "j", Count: 3, Events: numbers, Call: 0, Return: 100, Outcome: outcome, Owner: "r1"}
}

// Each promise has histories that keep it and histories that break it, and the checker tells them apart.
func TestBrokenHistories(t *testing.T) {
	kill := func(from, until time.Duration) []Fault { return []Fault{{Kill, "r1", from, until}} }
	answered := append(slices.Clone(started), Step{20, "j", "answer", "answer-j"})
	answer := Op{Kind: Answer, Key: "t", Job: "j", Call: 20, Return: 30}
	lostAnswer := answer
	lostAnswer.Outcome = Failed
	cancel := Op{Kind: Cancel, Key: "t", Call: 20, Return: 30}
	hosted := create("waits")
	hosted.Status = Hosted
	session := func(kind Kind, from, until time.Duration, outcome Outcome) Op {
		return Op{Kind: kind, Key: "s", Call: from, Return: until, Outcome: outcome}
	}
	missing := get(20, 30, "", "")
	missing.Outcome = Missing
	for _, c := range []struct {
		name   string
		broken string // the promise, or "" if all are kept
		ops    []Op
		faults []Fault
		steps  []Step
	}{
		{"a call that hangs", "I1", []Op{{Kind: Call, Job: "j", Return: 9000, Outcome: Hung}}, nil, started},
		{"an error without a cause", "I1", []Op{{Kind: Call, Job: "j", Call: 5000, Return: 5100, Outcome: Failed}}, kill(10, 20), started},
		{"an error with a cause", "", []Op{{Kind: Call, Job: "j", Call: 500, Return: 5100, Outcome: Failed}}, kill(10, 20), started},
		{"a call of a killed replica that waits", "I1", []Op{{Kind: Call, Job: "j", Call: 0, Return: 6000, Outcome: Failed, Owner: "r1"}}, kill(10, 20), started},
		{"a call of a killed replica that ends", "", []Op{{Kind: Call, Job: "j", Call: 0, Return: 3000, Outcome: Failed, Owner: "r1"}}, kill(10, 20), started},

		{"a task that is not there after its creation", "I3", []Op{create("plain"), missing}, nil, started},
		{"a session", "", []Op{session(OpenSession, 0, 10, OK), session(UseSession, 20, 30, OK), session(EndSession, 40, 60, OK), session(UseSession, 50, 55, Missing), session(UseSession, 70, 80, Missing)}, nil, nil},
		{"a session that is lost", "I2", []Op{session(OpenSession, 0, 10, OK), session(UseSession, 20, 30, Missing)}, nil, nil},
		{"a session that is there again", "I2", []Op{session(OpenSession, 0, 10, OK), session(EndSession, 20, 60, OK), session(UseSession, 30, 35, Missing), session(UseSession, 40, 50, OK)}, nil, nil},
		{"a session that outlives its end", "I2", []Op{session(OpenSession, 0, 10, OK), session(EndSession, 20, 30, OK), session(UseSession, 40, 50, OK)}, nil, nil},
		{"an end of a session without an answer", "", []Op{session(OpenSession, 0, 10, OK), session(EndSession, 20, 30, Failed), session(UseSession, 40, 50, OK), session(UseSession, 60, 70, Missing)}, kill(10, 20), nil},

		{"a task", "", []Op{create("plain"), get(20, 30, "working", ""), get(40, 50, "completed", "x"), get(60, 70, "completed", "x")}, nil, started},
		{"a task that asks", "", []Op{create("asks"), get(12, 15, "input_required", "q"), answer, get(25, 28, "input_required", "q"), get(40, 50, "working", ""), get(60, 70, "completed", "x")}, nil, answered},
		{"a task that goes back from its end", "I3", []Op{create("plain"), get(20, 30, "completed", "x"), get(40, 50, "working", "")}, nil, started},
		{"two clients that overlap", "", []Op{create("plain"), get(20, 45, "completed", "x"), get(40, 50, "working", "")}, nil, started},
		{"a task with two ends", "I3", []Op{create("plain"), get(20, 30, "completed", "x"), get(40, 50, "failed", "")}, nil, started},
		{"a task whose result changes", "I3", []Op{create("plain"), get(20, 30, "completed", "x"), get(40, 50, "completed", "y")}, nil, started},
		{"an end without the answer", "I3", []Op{create("asks"), get(20, 30, "completed", "x")}, nil, started},
		{"a cancelled task that nobody cancelled", "I3", []Op{create("plain"), get(20, 30, "cancelled", "")}, nil, started},
		{"a question that comes back", "I3", []Op{create("asks"), get(12, 15, "input_required", "q"), answer, get(40, 50, "input_required", "q")}, nil, answered},
		{"a question that goes by itself", "I3", []Op{create("asks"), get(12, 15, "input_required", "q"), get(40, 50, "working", "")}, nil, started},
		{"an answer that may be lost", "", []Op{create("asks"), get(12, 15, "input_required", "q"), lostAnswer, get(40, 50, "input_required", "q")}, kill(10, 20), started},
		{"an answer that may have come", "", []Op{create("asks"), get(12, 15, "input_required", "q"), lostAnswer, get(40, 50, "completed", "x")}, kill(10, 20), answered},

		{"a wrong result", "I4", []Op{{Kind: Ask, Job: "j", Want: "a", Got: "b", Return: 5}}, nil, started},
		{"an answer that comes twice", "I5", []Op{create("asks")}, nil, append(slices.Clone(answered), Step{25, "j", "answer", "answer-j"})},
		{"an answer that is another's", "I5", []Op{create("asks")}, nil, append(slices.Clone(started), Step{25, "j", "answer", "answer-k"})},
		{"an acknowledged answer that is lost", "I5", []Op{create("asks"), get(12, 15, "input_required", "q"), answer, get(40, 50, "working", "")}, nil, started},
		{"a handler that starts twice", "I6", []Op{create("plain")}, nil, append(slices.Clone(started), Step{30, "j", "start", ""})},
		{"an answer without a handler", "I6", []Op{{Kind: Call, Job: "other", Return: 5}}, nil, started},

		{"a cancelled task that goes on", "I8", []Op{create("waits"), cancel, get(6000, 6010, "working", "")}, nil, started},
		{"a cancelled task that ends", "", []Op{create("waits"), cancel, get(600, 610, "working", ""), get(6000, 6010, "cancelled", "")}, nil, started},

		{"a stream", "", []Op{steps(OK, 1, 2, 3)}, nil, started},
		{"a stream with a gap", "I9", []Op{steps(OK, 1, 3)}, nil, started},
		{"a stream that repeats", "I9", []Op{steps(Failed, 1, 2, 2)}, kill(0, 50), started},
		{"a stream that ends early", "I9", []Op{steps(OK, 1, 2)}, nil, started},
		{"a stream that fails by the fault of another", "I9", []Op{steps(Failed, 1, 2)}, []Fault{{Kill, "r2", 10, 20}, {CutCalls, "all", 10, 20}}, started},
		{"a stream of a killed replica", "", []Op{steps(Failed, 1, 2)}, kill(10, 20), started},

		{"another user that reaches a task", "I10", []Op{{Kind: Steal, Key: "t", Got: "working", Return: 5}}, nil, nil},
		{"another user that is refused", "", []Op{{Kind: Steal, Key: "t", Outcome: Missing, Return: 5}}, nil, nil},

		{"an orphan that stays", "I11", []Op{hosted, get(12000, 12010, "working", "")}, kill(20, 100), started},
		{"an orphan that ends", "", []Op{hosted, get(10000, 10010, "working", ""), get(12000, 12010, "failed", "its replica has ended")}, kill(20, 100), started},
		{"an orphan without a cluster", "", []Op{hosted, get(12000, 12010, "working", "")}, append(kill(20, 100), Fault{KillStore, "n1", 5000, 9000}), started},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := at(c.ops, c.faults, c.steps)
			var broken []string
			for _, v := range h.Check() {
				broken = append(broken, v.Promise)
				if near := h.Near(v); v.At > 0 && v.Key != "" && !strings.Contains(near, shortKey(v.Key)) {
					t.Errorf("%v is not in what happened near it:\n%s", v, near)
				}
			}
			if c.broken == "" && len(broken) > 0 || c.broken != "" && !slices.Contains(broken, c.broken) {
				t.Errorf("broken: %v, want %q: %v", broken, c.broken, h.Check())
			}
			if c.broken != "" && slices.ContainsFunc(broken, func(b string) bool { return b != c.broken }) {
				t.Errorf("broken: %v, want only %s: %v", broken, c.broken, h.Check())
			}
		})
	}
}

// A history of a thousand tasks is checked in seconds, and one stale read is found in it.
func TestLargeHistory(t *testing.T) {
	h := at(nil, nil, nil)
	for task := range 1000 {
		key := "t" + string(rune('a'+task%26)) + time.Duration(task).String()
		add := func(kind Kind, from time.Duration, status, got string) *Op {
			o := &Op{Kind: kind, Key: key, Job: key, Call: from, Return: from + 15, Outcome: OK, Status: status, Got: got}
			h.ops = append(h.ops, o)
			return o
		}
		add(Create, 0, "", "plain")
		h.steps = append(h.steps, Step{0, key, "start", ""})
		for i := range time.Duration(8) {
			add(Get, 20+i*10, "working", "")
		}
		add(Get, 120, "completed", "x")
		if task == 700 {
			add(Get, 140, "working", "")
		}
	}
	if all := h.Check(); len(all) != 1 || all[0].Promise != "I3" {
		t.Errorf("want the one stale read: %v", all)
	}
}
