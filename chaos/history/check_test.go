package history

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// at makes a history of operations. Its times are small: one nanosecond stands for a millisecond.
func at(ops []Op, faults []Fault, steps []Step) *History {
	h := New(Limits{Orphan: 11_000, AfterKill: 5_000, Cancel: 5_000, Grace: 1_000, Recovery: 300, Notice: 3_000})
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

var started = []Step{{1, "j", "start", "", ""}}

func get(from, until time.Duration, status, got string) Op {
	return Op{Kind: Get, Key: "t", Job: "j", Call: from, Return: until, Status: status, Got: got}
}

func create(job string) Op {
	return Op{Kind: Create, Key: "t", Job: "j", Got: job, Call: 0, Return: 10, Owner: "r1"}
}

func steps(outcome Outcome, numbers ...int) Op {
	return Op{Kind: Steps, Job: "j", Count: 3, Events: numbers, Call: 0, Return: 100, Outcome: outcome, Owner: "r1"}
}

// Each promise has histories that keep it and histories that break it, and the checker tells them
// apart.
func TestBrokenHistories(t *testing.T) {
	kill := func(from, until time.Duration) []Fault { return []Fault{{Kill, "r1", from, until}} }
	answered := append(slices.Clone(started), Step{20, "j", "answer", "answer-j", ""})
	answer := Op{Kind: Answer, Key: "t", Job: "j", Call: 20, Return: 30}
	lostAnswer := answer
	lostAnswer.Outcome = Failed
	cancel := Op{Kind: Cancel, Key: "t", Call: 20, Return: 30}
	hosted := create("waits")
	hosted.Status = Hosted
	session := func(kind Kind, from, until time.Duration, outcome Outcome) Op {
		return Op{Kind: kind, Key: "s", Call: from, Return: until, Outcome: outcome}
	}
	once, rerun := create("plain"), create("plain")
	once.Status, rerun.Status = Once, Rerun
	onceAsks := create("asks")
	onceAsks.Status = Once
	answerAt := func(owner string) Op {
		o := answer
		o.Owner = owner
		return o
	}
	getAt := func(owner string, from time.Duration, status string) Op {
		o := get(from, from+10, status, "")
		o.Owner = owner
		return o
	}
	begun := func(at time.Duration, by string) Step { return Step{at, "j", "start", "", by} }
	listen := func(ids ...string) Op {
		return Op{Client: "c", Kind: Listen, Got: "x", Call: 5, Return: 9000, EventIDs: ids}
	}
	change := func(what string, at time.Duration, number string) Step {
		return Step{at, "x", what, number, map[string]string{"notice": "c"}[what]}
	}
	shared := func(from, until time.Duration, outcome Outcome) Op {
		return Op{Kind: Shared, Job: "j", Call: from, Return: until, Outcome: outcome, Owner: "r2"}
	}
	atOwner := []Step{{5, "j", "start", "r1", "r1/1"}}
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
		{"a call of a killed replica whose client goes on at a stopped one", "", []Op{{Kind: Call, Job: "j", Call: 0, Return: 6000, Outcome: Failed, Owner: "r1"}},
			[]Fault{{Kill, "r1", 10, 20}, {Freeze, "r2", 5, 5000}}, started},
		{"a call of a killed replica that waits longer than another one was stopped", "I1", []Op{{Kind: Call, Job: "j", Call: 0, Return: 6000, Outcome: Failed, Owner: "r1"}},
			[]Fault{{Kill, "r1", 10, 20}, {Freeze, "r2", 5, 500}}, started},
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
		{"an answer that comes twice", "I5", []Op{create("asks")}, nil, append(slices.Clone(answered), Step{25, "j", "answer", "answer-j", ""})},
		{"an answer that is another's", "I5", []Op{create("asks")}, nil, append(slices.Clone(started), Step{25, "j", "answer", "answer-k", ""})},
		{"an acknowledged answer that is lost", "I5", []Op{create("asks"), get(12, 15, "input_required", "q"), answer, get(40, 50, "working", "")}, nil, started},
		{"a handler that starts twice", "I6", []Op{create("plain")}, nil, append(slices.Clone(started), Step{30, "j", "start", "", ""})},
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
		{"an orphan that stays at one process while another one is stopped", "I11", []Op{hosted, getAt("r2", 12000, "working")}, append(kill(20, 100), Fault{Stop, "r3", 11000, 12005}), started},
		{"an orphan that a process shows which was stopped", "", []Op{hosted, getAt("r2", 12000, "working")}, append(kill(20, 100), Fault{Stop, "r2", 11000, 11900}), started},
		{"an orphan that stays although the store of another server was cut off", "I11", []Op{hosted, getAt("r2", 12000, "working")}, append(kill(20, 100), Fault{CutStore, "s1", 5000, 9000}), started},
		{"an orphan that waits for an answer", "", []Op{onceAsks, getAt("r2", 12000, "input_required")}, kill(20, 100), started},
		{"an orphan that was answered", "I11", []Op{onceAsks, get(12, 15, "input_required", "q"), answerAt("r1"), getAt("r2", 12000, "working")}, kill(40, 100), answered},
		{"a task that was answered at a process which still runs", "", []Op{onceAsks, get(12, 15, "input_required", "q"), answerAt("r2"), getAt("r2", 12000, "working")}, kill(40, 100), answered},
		{"a task that was answered at a process that is not known", "", []Op{onceAsks, get(12, 15, "input_required", "q"), answer, getAt("r2", 12000, "working")}, kill(40, 100), answered},
		{"an orphan without a cluster", "", []Op{hosted, get(12000, 12010, "working", "")}, append(kill(20, 100), Fault{KillStore, "n1", 5000, 9000}), started},

		{"a hosted task of which another replica does not know the question", "", []Op{hostedAsks(), get(12, 15, "input_required", "q"), get(20, 30, "working", ""), get(40, 50, "input_required", "q")}, nil, started},
		{"a task that fails with its process", "", []Op{once, get(12000, 12010, "failed", "")}, kill(20, 100), []Step{begun(5, "r1")}},
		{"a task that is not run again and stays", "I11", []Op{once, get(12000, 12010, "working", "")}, kill(20, 100), []Step{begun(5, "r1")}},
		{"a task that is run again although it must not", "I6", []Op{once}, kill(20, 100), []Step{begun(5, "r1"), begun(6000, "r2")}},
		{"a task that another process runs again", "", []Op{rerun, get(11100, 11110, "working", ""), get(19000, 19010, "completed", "x")}, kill(20, 100), []Step{begun(5, "r1"), begun(6000, "r2")}},
		{"a task that is run again without need", "I6", []Op{rerun}, nil, []Step{begun(5, "r1"), begun(6000, "r2")}},
		{"a step that is done again after a question", "I6", []Op{rerunAsks(), get(12, 15, "input_required", "q")}, kill(20, 100), []Step{begun(5, "r1"), begun(6000, "r2")}},
		{"a task that can be run again and fails", "I11", []Op{rerun, get(6000, 6010, "failed", "")}, kill(20, 100), []Step{begun(5, "r1")}},
		{"a task that no process takes over while other servers have faults", "I11", []Op{rerun, get(12000, 12010, "working", ""), get(40000, 40010, "working", "")}, append(kill(20, 100), Fault{Kill, "s1", 5000, 6000}), []Step{begun(5, "r1")}},
		{"a task that a killed process may have taken over", "", []Op{rerun, get(12000, 12010, "working", ""), get(40000, 40010, "working", "")}, append(kill(20, 100), Fault{Kill, "r2", 9000, 9500}), []Step{begun(5, "r1")}},
		{"a task that no process takes over", "I11", []Op{rerun, get(12000, 12010, "working", ""), get(40000, 40010, "working", "")}, kill(20, 100), []Step{begun(5, "r1")}},

		{"a change that is heard of", "", []Op{listen("a", "b")}, nil, []Step{change("change", 10, "1"), change("notice", 2000, "1")}},
		{"a change before the subscription", "", []Op{listen()}, nil, []Step{change("change", 2, "1")}},
		{"a change that is not heard of", "S1", []Op{listen()}, nil, []Step{change("change", 10, "2"), change("notice", 2000, "1")}},
		{"a change that is heard of late", "S1", []Op{listen()}, nil, []Step{change("change", 10, "1"), change("notice", 4000, "1")}},
		{"an event that arrives twice", "S1", []Op{listen("a", "b", "a")}, nil, nil},

		{"a shared call whose owner is killed", "", []Op{shared(2, 2000, Failed)}, kill(10, 20), atOwner},
		{"a shared call that waits after its owner was killed", "S2", []Op{shared(2, 6000, Failed)}, kill(10, 20), atOwner},
		{"a shared call in two processes", "I6", []Op{shared(2, 20, OK)}, nil, append(slices.Clone(atOwner), Step{6, "j", "start", "r2", "r2/1"})},
		{"a shared server without an owner", "S2", []Op{shared(11200, 11300, Failed)}, append(kill(10, 10500), Fault{CutCalls, "gate", 11100, 11100}), atOwner},
		{"a shared server that is looked for", "", []Op{shared(900, 1000, Failed)}, kill(10, 20), nil},
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

// What a client that only listens was told has histories of its own.
func TestBrokenListeners(t *testing.T) {
	kill := []Fault{{Kill, "r1", 20, 100}}
	created := func(fate, job string) Op {
		o := create(job)
		o.Status = fate
		return o
	}
	follow := &Op{Client: "c", Kind: Follow, Key: "t", Call: 12, Return: 30000, Outcome: OK}
	again := &Op{Client: "c", Kind: Follow, Key: "t", Call: 9000, Return: 30000, Outcome: OK}
	hear := func(within *Op, at, updated time.Duration, status, got string) Op {
		return Op{Client: "c", Kind: Hear, Key: "t", Job: "j", Call: within.Call, Return: at, Updated: updated, Status: status, Got: got, Within: within}
	}
	await := func(fate string, until time.Duration, outcome Outcome) Op {
		return Op{Client: "c", Kind: Await, Key: "t", Job: "j", Status: fate, Call: 10, Return: until, Outcome: outcome}
	}
	answered := func(owner string) Op {
		return Op{Kind: Answer, Key: "t", Job: "j", Call: 20, Return: 30, Owner: owner}
	}
	left := *follow
	left.Outcome, left.Return = Missing, 20
	cancel := Op{Kind: Cancel, Key: "t", Call: 200, Return: 300}
	for _, c := range []struct {
		name, broken string
		ops          []Op
		faults       []Fault
	}{
		{"a listener that hears the end", "", []Op{created(Once, "plain"), await(Once, 9000, OK), *follow, waiting(hear(follow, 15, 10, "working", "")), hear(follow, 9000, 8900, "failed", "gone")}, kill},
		{"a listener that never hears the end", "I1", []Op{created(Elsewhere, "plain"), await(Elsewhere, 60000, Hung), *follow, hear(follow, 15, 10, "working", "")}, nil},
		{"a listener that hears the end of a killed process late", "I11", []Op{created(Once, "plain"), await(Once, 12000, OK), *follow, hear(follow, 15, 10, "working", ""), hear(follow, 12000, 11900, "failed", "gone")}, kill},
		{"a listener that hears late while the store had a fault", "", []Op{created(Once, "plain"), await(Once, 12000, OK), *follow, hear(follow, 12000, 11900, "failed", "gone")}, append([]Fault{{CutStore, "r2", 500, 900}}, kill...)},
		{"a listener that hears of a run in another process", "", []Op{created(Rerun, "waits"), await(Rerun, 25000, OK), *follow, hear(follow, 15, 10, "working", ""), hear(follow, 8000, 7900, "working", ""), cancelAt(24000), hear(follow, 25000, 24900, "cancelled", "")}, kill},
		{"a listener that hears of no run in another process", "I11", []Op{created(Rerun, "waits"), await(Rerun, 25000, OK), *follow, hear(follow, 15, 10, "working", ""), hear(again, 9100, 10, "working", ""), cancelAt(24000), hear(follow, 25000, 24900, "cancelled", "")}, kill},
		{"a listener of a task that waits for an answer", "", []Op{created(Once, "asks"), await(Once, 25000, OK), *follow, hear(follow, 18, 15, "input_required", ""), hear(follow, 25000, 24900, "failed", "gone")}, kill},
		{"a listener that has answered and hears late", "I11", []Op{created(Once, "asks"), await(Once, 25000, OK), *follow, hear(follow, 18, 15, "input_required", ""), answered("r2"), hear(follow, 25000, 24900, "failed", "gone")}, []Fault{{Kill, "r2", 40, 100}}},
		{"a listener that has answered and hears in time", "", []Op{created(Once, "asks"), await(Once, 9000, OK), *follow, hear(follow, 18, 15, "input_required", ""), answered("r2"), waiting(hear(follow, 9000, 8900, "failed", "gone"))}, []Fault{{Kill, "r2", 40, 100}}},
		{"a state after the end", "I4", []Op{created(Once, "plain"), *follow, hear(follow, 20, 15, "completed", "x"), hear(follow, 25, 16, "working", "")}, nil},
		{"the same end twice", "", []Op{created(Once, "plain"), *follow, hear(follow, 20, 15, "completed", "x"), hear(follow, 25, 15, "completed", "x")}, nil},
		{"an old state after a newer one", "I3", []Op{created(Once, "plain"), *follow, hear(follow, 20, 15, "working", ""), hear(follow, 25, 12, "working", "")}, nil},
		{"a question after the run that its answer began", "I3", []Op{created(Once, "asks"), *follow, hear(follow, 15, 12, "input_required", ""), {Kind: Answer, Key: "t", Job: "j", Call: 20, Return: 30}, hear(again, 9100, 25, "input_required", "")}, nil},
		{"a listener that hears another end than a poll", "I3", []Op{created(Once, "plain"), *follow, get(20, 30, "completed", "x"), hear(again, 9100, 25, "failed", "y")}, nil},
		{"a listener that hears a wrong result", "I4", []Op{created(Once, "plain"), *follow, {Client: "c", Kind: Hear, Key: "t", Job: "j", Call: 12, Return: 40, Status: "completed", Got: "y", Want: "x", Within: follow}}, nil},
		{"a subscription that leaves its task out", "I2", []Op{created(Once, "plain"), left}, nil},
		{"a subscription that leaves its task out in an outage", "", []Op{created(Once, "plain"), left}, []Fault{{KillStore, "n1", 5, 15}}},
		{"a listener that hears late of a cancellation", "I8", []Op{created(Once, "waits"), cancel, await(Once, 6000, OK), *follow, hear(follow, 6000, 280, "cancelled", "")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered := append(slices.Clone(started), Step{25, "j", "answer", "answer-j", ""})
			all := at(c.ops, c.faults, answered).Check()
			if c.broken == "" && len(all) > 0 || c.broken != "" && !slices.ContainsFunc(all, func(v Violation) bool { return v.Promise == c.broken }) {
				t.Errorf("broken: %v, want %q", all, c.broken)
			}
			if slices.ContainsFunc(all, func(v Violation) bool { return v.Promise != c.broken }) {
				t.Errorf("broken: %v, want only %q", all, c.broken)
			}
		})
	}
}

// waiting adds the result that a client waits for.
func waiting(o Op) Op {
	o.Want = "x"
	return o
}

// What clients of 2025-11-25 see of their tasks: states without a result, and the result by itself.
func TestBrokenLegacyTasks(t *testing.T) {
	kill := []Fault{{Kill, "r1", 1, 2}}
	state := func(from, until time.Duration, status string) Op {
		o := get(from, until, status, "")
		o.NoResult = true
		return o
	}
	result := func(from, until time.Duration, status, got string) Op {
		return Op{Kind: Result, Key: "t", Job: "j", Want: "x", Call: from, Return: until, Status: status, Got: got}
	}
	cancel := func(from, until time.Duration, status string) Op {
		return Op{Kind: Cancel, Key: "t", Call: from, Return: until, Status: status}
	}
	sent := Op{Kind: Answer, Key: "t", Job: "j", Call: 15, Return: 20, Outcome: Sent}
	for _, c := range []struct {
		name, broken string
		ops          []Op
	}{
		{"a task", "", []Op{create("plain"), state(12, 15, "working"), result(12, 40, "completed", "x"), state(41, 45, "completed"), result(50, 60, "completed", "x")}},
		{"a task that asks", "", []Op{create("asks"), state(12, 14, "input_required"), sent, state(21, 22, "input_required"), result(12, 40, "completed", "x"), state(41, 45, "completed")}},
		{"a result before the end", "I3", []Op{create("plain"), result(12, 40, "completed", "x"), state(41, 45, "working")}},
		{"a result without the answer", "I3", []Op{create("asks"), result(12, 40, "completed", "x")}},
		{"a wrong result", "I4", []Op{create("plain"), result(12, 40, "completed", "y")}},
		{"two results", "I3", []Op{create("plain"), result(12, 40, "failed", "y"), result(50, 60, "failed", "z")}},
		{"a result of a task that has failed", "I3", []Op{create("plain"), state(12, 15, "failed"), result(20, 40, "completed", "x")}},
		{"a cancellation", "", []Op{create("waits"), cancel(20, 30, "cancelled"), state(31, 35, "cancelled"), result(12, 40, "cancelled", "none")}},
		{"a cancellation before the end of the task", "I3", []Op{create("waits"), cancel(20, 30, "cancelled"), state(31, 35, "working")}},
		{"a refused cancellation", "", []Op{create("plain"), cancel(20, 30, "completed"), state(31, 35, "completed")}},
		{"a cancellation that is refused too early", "I3", []Op{create("plain"), cancel(20, 30, "completed"), state(31, 35, "working")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := at(c.ops, kill, append(slices.Clone(started), Step{18, "j", "answer", "answer-j", ""})).Check()
			if c.broken == "" && len(all) > 0 || c.broken != "" && !slices.ContainsFunc(all, func(v Violation) bool { return v.Promise == c.broken }) {
				t.Errorf("broken: %v, want %q", all, c.broken)
			}
			if slices.ContainsFunc(all, func(v Violation) bool { return v.Promise != c.broken }) {
				t.Errorf("broken: %v, want only %q", all, c.broken)
			}
		})
	}
}

// cancelAt is a cancellation that was acknowledged at a time.
func cancelAt(at time.Duration) Op { return Op{Kind: Cancel, Key: "t", Call: at - 10, Return: at} }

// hostedAsks is the creation of a task that asks, and ends with its replica.
func hostedAsks() Op {
	o := create("asks")
	o.Status = Hosted
	return o
}

// rerunAsks is the creation of a task that asks, and is run again.
func rerunAsks() Op {
	o := create("asks")
	o.Status = Rerun
	return o
}

// I7 is kept by the versions of a task, not by what clients see.
func TestBrokenWrites(t *testing.T) {
	first := Write{Key: "t", Prev: 0, Version: 1, Runner: "a", By: "a", Process: "r1", Status: "working"}
	after := func(before Write, epoch int, runner, by, status string) Write {
		return Write{Key: "t", Prev: before.Version, Version: before.Version + 1, Epoch: epoch, Runner: runner, By: by, Process: map[string]string{"a": "r1", "b": "r2"}[by], Status: status}
	}
	asked := after(first, 0, "a", "a", "input_required")
	taken := after(first, 1, "b", "b", "working")
	kill := []Fault{{Kill, "r1", 1, 2}}
	for _, c := range []struct {
		name   string
		broken bool
		writes []Write
		faults []Fault
	}{
		{"its owner ends a task", false, []Write{first, after(first, 0, "a", "a", "completed")}, nil},
		{"another process cancels it", false, []Write{first, after(first, 0, "a", "b", "cancelled")}, nil},
		{"another process answers it", false, []Write{first, asked, after(asked, 1, "b", "b", "working")}, nil},
		{"another process takes it over", false, []Write{first, taken}, kill},
		{"versions that were not recorded", false, []Write{first, {Key: "t", Prev: 7, Version: 8, Epoch: 2, Runner: "c", By: "c", Status: "working"}}, nil},
		{"another process takes it over without need", true, []Write{first, taken}, nil},
		{"the owner before stores its end", true, []Write{first, taken, after(taken, 1, "b", "a", "completed")}, kill},
		{"the owner before stores a message", true, []Write{first, taken, after(taken, 0, "a", "a", "working")}, kill},
		{"two processes replace one version", true, []Write{first, taken, {Key: "t", Prev: 1, Version: 3, Epoch: 1, Runner: "c", By: "c", Status: "working"}}, kill},
		{"a change after the end", true, []Write{first, after(first, 0, "a", "a", "completed"), {Key: "t", Prev: 2, Version: 3, Runner: "a", By: "a", Status: "failed"}}, nil},
	} {
		h := at(nil, c.faults, nil)
		h.writes = c.writes
		if all := h.Check(); c.broken != (len(all) > 0) || len(all) > 0 && all[0].Promise != "I7" {
			t.Errorf("%s: %v", c.name, all)
		}
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
		h.steps = append(h.steps, Step{0, key, "start", "", ""})
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

// A client cancels a task again and again while the cluster cannot be reached. The order is found,
// and a state that none of the cancellations explains is noticed.
func TestManyFailedCancellations(t *testing.T) {
	ops := []Op{create("plain"), {Kind: Hear, Key: "t", Job: "j", Call: 10, Return: 200, Status: "completed", Got: "x"}}
	for i := range 40 {
		ops = append(ops, Op{Kind: Cancel, Key: "t", Call: time.Duration(100 + i), Return: time.Duration(101 + i), Outcome: Failed})
	}
	ops = append(ops, get(150, 160, "working", ""), get(170, 180, "completed", "x"))
	if broken := checkTasks(at(ops, nil, started)); len(broken) > 0 {
		t.Error(broken)
	}
	ops = append(ops, get(190, 195, "cancelled", ""))
	if broken := checkTasks(at(ops, nil, started)); len(broken) != 1 || broken[0].Promise != "I3" || strings.Contains(broken[0].Text, "not found within") {
		t.Error(broken)
	}
	early := []Op{create("plain"), get(20, 30, "cancelled", ""), {Kind: Cancel, Key: "t", Call: 40, Return: 41, Outcome: Failed}}
	if broken := checkTasks(at(early, nil, started)); len(broken) != 1 {
		t.Errorf("cancelled before the first cancellation: %v", broken)
	}
}
