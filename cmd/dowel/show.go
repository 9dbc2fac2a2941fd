package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/agent"
)

// renderer shows a conversation by lines: events go in, text comes out. It decides nothing. It is safe for concurrent use.
type renderer struct {
	out  *screen // what the model says
	side *screen // what is told about it; on a terminal the same
	now  func() time.Time
	// verbose shows results and thoughts whole.
	verbose bool

	mu      sync.Mutex // guards all below
	state   agent.State
	since   time.Time // when state began
	began   time.Time // when the run did
	calls   []*shownCall
	refused map[string]bool // ids of calls that were shown as refused
	thought thought
	open    bool      // the last line of out has no end yet
	spoke   time.Time // when the model said something last
	last    part
}

// part is what was shown last: what is of another kind has a gap before it.
type part int

const (
	nothing part = iota
	words        // of the model
	remark       // about what happens
)

func newRenderer(out, side *screen) *renderer {
	return &renderer{out: out, side: side, now: time.Now, refused: map[string]bool{}}
}

// event shows what happens in a run.
func (r *renderer) event(e agent.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, thinks := e.(agent.Thought); !thinks {
		r.endThought()
	}
	switch e := e.(type) {
	case agent.StateChanged:
		r.become(e.State)
	case agent.Said:
		r.say(e.Text)
	case agent.Thought:
		r.thought.add(e.Text)
		if r.now().Sub(r.thought.drawn) < redraw {
			return // a tick follows
		}
		r.thought.drawn = r.now()
	case agent.Replied:
		r.endLine()
	case agent.Decided:
		r.decided(e)
	case agent.CallStarted:
		r.start(e)
	case agent.CallProgressed:
		r.progress(e)
	case agent.CallEnded:
		r.end(e)
	case agent.ToolsChanged:
		r.toolsChanged(e)
	case agent.Noticed:
		r.remark("%s", r.side.yellow(line(e.Text)))
	case agent.Compacted:
		r.compacted(e)
	case agent.Ended:
		r.ended(e)
	}
	r.stand()
}

// become begins another state.
func (r *renderer) become(s agent.State) {
	if r.began.IsZero() {
		r.began, r.last = r.now(), nothing
	}
	r.state, r.since = s, r.now()
	switch s {
	case agent.Finished, agent.Failed:
		r.endLine()
		r.calls = nil
	}
}

// idle ends what stands for now: a run is over, however it has ended.
func (r *renderer) idle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endThought()
	r.endLine()
	r.state, r.calls, r.began, r.last = "", nil, time.Time{}, nothing
	r.stand()
}

// say shows a piece of what the model says.
func (r *renderer) say(text string) {
	if r.last != words {
		text = strings.TrimLeft(text, "\n")
	}
	if text == "" {
		return
	}
	r.side.show("") // it would be taken for a part of the line
	if r.last == remark && r.together() {
		_, _ = io.WriteString(r.out, "\n") // the screen knows when nobody reads
	}
	r.last, r.spoke = words, r.now()
	_, _ = io.WriteString(r.out, r.out.clean(text))
	r.open = !strings.HasSuffix(text, "\n")
}

// together reports whether what the model says and what is told about it are read in one place.
func (r *renderer) together() bool {
	return r.side == r.out || r.side.isTerminal() && r.out.isTerminal()
}

// endLine ends a line of the model's that has no end.
func (r *renderer) endLine() {
	if r.open {
		r.open = false
		_, _ = io.WriteString(r.out, "\n")
	}
}

// remark tells something about the run, on a line of its own.
func (r *renderer) remark(format string, args ...any) {
	r.endLine()
	r.side.show("") // it is out of date
	if r.last == words && r.together() {
		_, _ = io.WriteString(r.out, "\n")
	}
	r.last = remark
	fmt.Fprintf(r.side, format+"\n", args...)
}

// note tells something beside a run.
func (r *renderer) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remark("%s", r.side.dim(fmt.Sprintf(format, args...)))
	r.stand()
}

// trouble tells what went wrong, and what to do about it.
func (r *renderer) trouble(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endThought()
	r.remark("%s %s", r.side.red("dowel:"), strings.ReplaceAll(r.side.clean(err.Error()), "\n", "\n  "))
	if advice := advice(err); advice != "" {
		r.remark("  %s", advice)
	}
	r.stand()
}

// hold clears the way for a question, which has the screen for itself until it is let go.
func (r *renderer) hold(held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held {
		r.endThought()
		r.endLine()
		r.last = remark
	}
	r.side.hold(held)
	if !held {
		r.stand()
	}
}

// tick shows that time passes.
func (r *renderer) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stand()
}

// silence is after which silence the model is taken to be thinking again.
const silence = time.Second

// stand shows what goes on for now, below everything else.
func (r *renderer) stand() {
	if !r.side.isTerminal() || r.open {
		return
	}
	width := r.side.columns() - 1
	var lines []string
	switch r.state {
	case agent.Thinking:
		if r.last == words && r.now().Sub(r.spoke) < silence {
			break // it is in the middle of its answer
		}
		lines = append(lines, r.side.dim(shorten(r.thinking(width), width)))
	case agent.Acting, agent.Waiting:
		for _, c := range r.calls[:min(len(r.calls), max(r.side.rows()-2, 1))] {
			lines = append(lines, c.running(r.now(), width))
		}
	}
	r.side.stand(strings.Join(lines, "\n"))
}

// ended tells what a run took, or why it did not end with an answer.
func (r *renderer) ended(e agent.Ended) {
	r.endLine()
	switch e.Reason {
	case agent.BudgetSpent:
		r.remark("%s", r.side.yellow(fmt.Sprintf("the budget of %s is spent; what you say next goes on from here", counted(e.Steps, "step"))))
	case agent.CutOff:
		r.remark("%s", r.side.yellow(`the answer is not whole; say "go on" for the rest of it`))
	}
	if !r.side.isTerminal() && !r.verbose {
		return
	}
	parts := []string{counted(e.Steps, "step"), brieflyTook(r.now().Sub(r.began))}
	if u := e.Usage; u.Input > 0 || u.Output > 0 {
		read := grouped(u.Input) + " tokens read"
		if u.Cached > 0 {
			read += " (" + grouped(u.Cached) + " of them cached)"
		}
		parts = append(parts, read, grouped(u.Output)+" written")
	}
	r.remark("%s", r.side.dim(strings.Join(parts, ", ")))
}

func (r *renderer) compacted(e agent.Compacted) {
	r.remark("%s", r.side.yellow(fmt.Sprintf("the conversation was near the model's limit, and has been compacted from about %s to %s tokens",
		grouped(e.Before), grouped(e.After))))
	if e.Summary != "" {
		r.remark("%s", r.side.dim("  "+r.excerpt(e.Summary, 3)))
	}
}

// toolsChanged tells which tools came and went, by server.
func (r *renderer) toolsChanged(e agent.ToolsChanged) {
	for _, change := range []struct {
		words string
		names []string
	}{{"new", e.Added}, {"gone", e.Removed}} {
		if len(change.names) > 0 {
			r.remark("%s", r.side.dim(shorten(fmt.Sprintf("%s: %s", change.words, byServer(change.names)), r.side.width())))
		}
	}
}

// byServer is "files.read, files.write; shell (12 tools)".
func byServer(names []string) string {
	const most = 5
	var servers []string
	tools := map[string][]string{}
	for _, name := range names {
		var server string
		if o, ok := originOf(name); ok {
			server = o.server
		}
		if tools[server] == nil {
			servers = append(servers, server)
		}
		tools[server] = append(tools[server], spoken(name))
	}
	var parts []string
	for _, server := range servers {
		if n := len(tools[server]); n > most && server != "" {
			parts = append(parts, fmt.Sprintf("%s (%d tools)", server, n))
			continue
		}
		parts = append(parts, strings.Join(tools[server], ", "))
	}
	return strings.Join(parts, "; ")
}
