// Package history records what the clients of a cluster did and saw, and checks that against what
// the cluster promises. README.md of the module lists the promises, I1 to I11.
package history

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is what an operation does.
type Kind string

// Kinds of operations.
const (
	OpenSession Kind = "open"   // a legacy session; Key is its id
	UseSession  Kind = "use"    // a plain request within the session Key
	EndSession  Kind = "end"    // DELETE of the session Key
	Call        Kind = "call"   // a call without shared state; Want is its result
	Ask         Kind = "ask"    // a call with a question; Want is its result if the question was answered
	Steps       Kind = "steps"  // a call that sends Count numbered events
	Create      Kind = "create" // a call that becomes the task Key
	Get         Kind = "get"    // the state of the task Key
	Answer      Kind = "answer" // an answer to the question of the task Key
	Cancel      Kind = "cancel" // of the task Key; Status is that of a refusal or of the cancelled task in 2025-11-25
	Result      Kind = "result" // the result of the task Key in 2025-11-25: Status is "" if it is an error
	Steal       Kind = "steal"  // an attempt of another user to reach Key
	Shared      Kind = "shared" // a call of the server that runs once in the cluster
	Listen      Kind = "listen" // a subscription, from its acknowledgement to its end
	Follow      Kind = "follow" // a subscription to the task Key
	Hear        Kind = "hear"   // a state of the task Key, which the subscription Within has told
	Await       Kind = "await"  // a client that only listens, from the creation of the task Key to the end that it hears
)

// Outcome is how an operation ended.
type Outcome string

// Outcomes of operations.
const (
	OK      Outcome = "ok"
	Missing Outcome = "missing" // the server does not know the session or the task
	Failed  Outcome = "failed"  // with an error; whether there was an effect is unknown
	Hung    Outcome = "hung"    // not before the limit
	Sent    Outcome = "sent"    // as planned; its effect is not acknowledged
)

// An Op is one operation of a client.
type Op struct {
	Client       string
	Kind         Kind
	Key          string
	Job          string // the work that a call names; its handler knows it by that
	Want         string
	Count        int
	Call, Return time.Duration // since the beginning of the history
	Outcome      Outcome
	Status       string // of a task
	Got          string // the result, or what a task asks
	Err          string
	Events       []int // the numbers of the events, in their order of arrival
	EventIDs     []string
	Owner        string        // the replica that got the request
	NoResult     bool          // a Get or Hear shows the Status only
	Within       *Op           // the subscription of a Hear
	Updated      time.Duration // when the state of a Hear began
}

func (o *Op) String() string {
	text := fmt.Sprintf("%9.3fs to %9.3fs  %-9s %-6s %s at %s: %s", o.Call.Seconds(), o.Return.Seconds(), o.Client, o.Kind, shortKey(cmp.Or(o.Key, o.Job)), cmp.Or(o.Owner, "?"), o.Outcome)
	for _, part := range []string{o.Status, o.Got, o.Err} {
		if part != "" {
			text += " " + part
		}
	}
	if o.Kind == Steps {
		text += fmt.Sprint(" events ", o.Events)
	}
	return text
}

// shortKey returns enough of a sealed id to tell it from others.
func shortKey(key string) string { return key[:min(len(key), 14)] }

// A Fault is a disturbance of the cluster by the test.
type Fault struct {
	Kind, Target string
	From, Until  time.Duration // Until is when it was healed
}

// Kinds of faults.
const (
	Kill      = "kill"       // SIGKILL of a replica, which is started again
	Stop      = "stop"       // SIGSTOP of a replica, and SIGCONT
	Freeze    = "freeze"     // Stop for longer than a lease
	CutCalls  = "cut"        // connections of clients are reset
	SlowCalls = "slow"       // connections of clients are delayed
	CutStore  = "cut-store"  // a replica cannot reach NATS
	SlowStore = "slow-store" // messages between a replica and NATS are delayed
	KillStore = "kill-store" // SIGKILL of a NATS server, which is started again
)

func (f Fault) String() string {
	return fmt.Sprintf("%9.3fs to %9.3fs  FAULT %s %s", f.From.Seconds(), f.Until.Seconds(), f.Kind, f.Target)
}

// A Step is what the handler of a tool did.
type Step struct {
	At    time.Duration
	Job   string
	What  string // start, answer, change or notice
	Value string
	By    string // the process that did it; "" for the test
}

// A Write is a version of the record of a task that the store has accepted.
type Write struct {
	Key           string
	Prev, Version uint64
	Epoch         int
	Runner        string // the process that runs the task by this version
	By            string // the process that has written it
	Process       string // the name of that process; a new process after a kill has the same one
	Status        string
}

// Limits bound the times of a history.
type Limits struct {
	Orphan    time.Duration // from the end of a replica to the end of its tasks
	AfterKill time.Duration // from the end of a replica to the end of its calls
	Cancel    time.Duration // from the acknowledgement to the end of the task
	Grace     time.Duration // after a fault is healed, until errors need another cause
	Election  time.Duration // after the kill of a NATS server, until JetStream has a leader
	Recovery  time.Duration // after a fault is healed, until the store and the processes do what they promise
	Notice    time.Duration // from a change to its notification
}

// A History has what happened in a cluster. The methods may be called concurrently until Check.
type History struct {
	mu     sync.Mutex
	begin  time.Time
	ops    []*Op
	faults []*Fault
	steps  []Step
	writes []Write
	Limits Limits
}

// New begins a history.
func New(l Limits) *History { return &History{begin: time.Now(), Limits: l} }

// Now returns the time since the beginning.
func (h *History) Now() time.Duration { return time.Since(h.begin) }

// Begin records the call of an operation. The caller fills in the rest and calls End.
func (h *History) Begin(o *Op) *Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Call = h.Now()
	h.ops = append(h.ops, o)
	return o
}

// End records the return of an operation.
func (h *History) End(o *Op, outcome Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Return, o.Outcome = h.Now(), outcome
}

// AddHeard records a state that a subscription has told. The server has read it since the
// subscription began.
func (h *History) AddHeard(o *Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Call, o.Return, o.Outcome = o.Within.Call, h.Now(), OK
	h.ops = append(h.ops, o)
}

// TimeOf returns the time of the wire since the beginning.
func (h *History) TimeOf(wire string) (time.Duration, error) {
	at, err := time.Parse(time.RFC3339, wire)
	return at.Sub(h.begin), err
}

// BeginFault records a fault. EndFault records that it is healed.
func (h *History) BeginFault(kind, target string) *Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := &Fault{Kind: kind, Target: target, From: h.Now()}
	h.faults = append(h.faults, f)
	return f
}

// EndFault records that a fault is healed.
func (h *History) EndFault(f *Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.Until = h.Now()
}

// AddStep records what a handler of a process did.
func (h *History) AddStep(job, what, value, by string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps = append(h.steps, Step{h.Now(), job, what, value, by})
}

// AddWrite records a version of a task.
func (h *History) AddWrite(w Write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, w)
}

// Summary returns how many operations of each kind there were, and how they ended.
func (h *History) Summary() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := map[string]int{}
	for _, o := range h.ops {
		counts[string(o.Kind)+" "+string(o.Outcome)]++
	}
	for _, f := range h.faults {
		counts["fault "+f.Kind]++
	}
	for _, s := range h.steps {
		if s.What == "change" || s.What == "notice" || s.What == "start" && s.By != "" {
			counts["step "+s.What]++
		}
	}
	for _, w := range h.writes {
		counts["write of a task"]++
		if w.Epoch > 0 && w.Status == "working" && w.Runner == w.By {
			counts["run begun again"]++
		}
	}
	counts["await of an orphan"] = len(h.orphanedAwaits())
	for _, c := range h.orphans() {
		counts["orphan "+c.Status]++
		if h.isLeftAlone(c.kill, c.kill.From+h.Limits.Orphan) {
			counts["orphan left alone"]++
		}
	}
	var lines []string
	for name, n := range counts {
		lines = append(lines, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// Failures returns the texts of the errors, with how often each came. Numbers and ids count as
// equal.
func (h *History) Failures() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := map[string]int{}
	for _, o := range h.ops {
		if o.Outcome != OK && o.Outcome != Sent {
			counts[fmt.Sprintf("%s %s: %.200s", o.Kind, o.Outcome, digits.ReplaceAllString(o.Err, "N"))]++
		}
	}
	var lines []string
	for text, n := range counts {
		lines = append(lines, fmt.Sprintf("%5d × %s", n, text))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

var digits = regexp.MustCompile(`[\w-]{30,}|[\d.]*\d`)

// isLong reports whether an operation lasts for much of the history.
func isLong(o *Op) bool {
	return o.Kind == Listen || o.Kind == Follow || o.Kind == Hear || o.Kind == Await
}

// Near returns the operations of a key and of others at the same time, and the faults before.
func (h *History) Near(v Violation) string {
	const around, most = 2 * time.Second, 60
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	for _, f := range h.faults {
		if f.From < v.At+around && f.Until > v.At-10*time.Second {
			lines = append(lines, line{f.From, f.String()})
		}
	}
	related := func(o *Op) bool { return v.Key != "" && (o.Key == v.Key || o.Job == v.Key) }
	for _, o := range h.ops {
		if o.Kind != Listen && related(o) || !isLong(o) && o.Call < v.At+around/20 && o.Return > v.At-around/20 {
			lines = append(lines, line{o.Call, o.String()})
		}
	}
	for _, s := range h.steps {
		if s.Job == v.Key || s.By == v.Key && s.What == "notice" && s.At > v.At-around && s.At < v.At+5*around {
			lines = append(lines, line{s.At, fmt.Sprintf("%9.3fs  handler of %s: %s %s %s", s.At.Seconds(), s.Job, s.What, s.Value, s.By)})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	if len(lines) > most {
		lines = slices.Concat(lines[:most/2], lines[len(lines)-most/2:])
	}
	var text strings.Builder
	for _, l := range lines {
		text.WriteString("  " + l.text + "\n")
	}
	return text.String()
}
