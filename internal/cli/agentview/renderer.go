// Package agentview shows the events of an agent to a person: the answer as it is written, calls
// with their progress and results, thoughts in brief, notices, and a status line for whatever is
// going on.
package agentview

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/term"
)

// Renderer shows a conversation by lines: events go in, text comes out. It decides nothing. It is safe for concurrent use.
type Renderer struct {
	Out  *term.Screen // what the model says
	Side *term.Screen // what is told about it; on a terminal the same
	now  func() time.Time
	// verbose shows results and thoughts whole.
	Verbose bool

	Mu         sync.Mutex // guards all below
	state      agent.State
	stateStart time.Time // when state began
	runStart   time.Time // when the run did
	calls      []*shownCall
	refused    map[string]bool // ids of calls that were shown as refused
	thought    thought
	lineOpen   bool      // the last line of out has no end yet
	answeredAt time.Time // when the model said something last
	lastOutput outputKind
}

// outputKind is what was shown last: what is of another kind has a gap before it.
type outputKind int

const (
	noOutput     outputKind = iota
	answerOutput            // of the model
	remarkOutput            // about what happens
)

func NewRenderer(out, side *term.Screen) *Renderer {
	return &Renderer{Out: out, Side: side, now: time.Now, refused: map[string]bool{}}
}

// Event shows what happens in a run.
func (r *Renderer) Event(e agent.Event) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if _, thinks := e.(agent.Thought); !thinks {
		r.finishThought()
	}
	switch e := e.(type) {
	case agent.StateChanged:
		r.setState(e.State)
	case agent.Said:
		r.writeAnswer(e.Text)
	case agent.Thought:
		r.thought.appendText(e.Text)
		if r.now().Sub(r.thought.drawnAt) < thoughtInterval {
			return // a tick follows
		}
		r.thought.drawnAt = r.now()
	case agent.Replied:
		r.EndLine()
	case agent.Approval:
		r.showDecision(e)
	case agent.CallStarted:
		r.addCall(e)
	case agent.CallProgressed:
		r.setProgress(e)
	case agent.CallEnded:
		r.showResult(e)
	case agent.ToolsChanged:
		r.showToolChanges(e)
	case agent.Noticed:
		r.writeRemark("%s", r.Side.Yellow(term.Line(e.Text)))
	case agent.Compacted:
		r.showCompaction(e)
	case agent.Ended:
		r.showSummary(e)
	}
	r.drawStatus()
}

// setState begins another state.
func (r *Renderer) setState(s agent.State) {
	if r.runStart.IsZero() {
		r.runStart, r.lastOutput = r.now(), noOutput
	}
	r.state, r.stateStart = s, r.now()
	switch s {
	case agent.Finished, agent.Failed:
		r.EndLine()
		r.calls = nil
	}
}

// Idle ends what stands for now: a run is over, however it has ended.
func (r *Renderer) Idle() {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.finishThought()
	r.EndLine()
	r.state, r.calls, r.runStart, r.lastOutput = "", nil, time.Time{}, noOutput
	r.drawStatus()
}

// writeAnswer shows a piece of what the model says.
func (r *Renderer) writeAnswer(text string) {
	if r.lastOutput != answerOutput {
		text = strings.TrimLeft(text, "\n")
	}
	if text == "" {
		return
	}
	r.Side.SetStatus("") // it would be taken for a part of the line
	if r.lastOutput == remarkOutput && r.sharesScreen() {
		_, _ = io.WriteString(r.Out, "\n") // the screen knows when nobody reads
	}
	r.lastOutput, r.answeredAt = answerOutput, r.now()
	_, _ = io.WriteString(r.Out, r.Out.Clean(text))
	r.lineOpen = !strings.HasSuffix(text, "\n")
}

// sharesScreen reports whether what the model says and what is told about it are read in one place.
func (r *Renderer) sharesScreen() bool {
	return r.Side == r.Out || r.Side.IsTerminal() && r.Out.IsTerminal()
}

// EndLine ends a line of the model's that has no end.
func (r *Renderer) EndLine() {
	if r.lineOpen {
		r.lineOpen = false
		_, _ = io.WriteString(r.Out, "\n")
	}
}

// writeRemark tells something about the run, on a line of its own.
func (r *Renderer) writeRemark(format string, args ...any) {
	r.EndLine()
	r.Side.SetStatus("") // it is out of date
	if r.lastOutput == answerOutput && r.sharesScreen() {
		_, _ = io.WriteString(r.Out, "\n")
	}
	r.lastOutput = remarkOutput
	fmt.Fprintf(r.Side, format+"\n", args...)
}

// Note tells something beside a run.
func (r *Renderer) Note(format string, args ...any) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.writeRemark("%s", r.Side.Dim(fmt.Sprintf(format, args...)))
	r.drawStatus()
}

// Trouble tells what went wrong, and what to do about it.
func (r *Renderer) Trouble(err error) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.finishThought()
	r.writeRemark("%s %s", r.Side.Red("dowel:"), strings.ReplaceAll(r.Side.Clean(err.Error()), "\n", "\n  "))
	if advice := exit.Advice(err); advice != "" {
		r.writeRemark("  %s", advice)
	}
	r.drawStatus()
}

// Hold clears the way for a question, which has the screen for itself until it is let go.
func (r *Renderer) Hold(held bool) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if held {
		r.finishThought()
		r.EndLine()
		r.lastOutput = remarkOutput
	}
	r.Side.HoldStatus(held)
	if !held {
		r.drawStatus()
	}
}

// Tick shows that time passes.
func (r *Renderer) Tick() {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.drawStatus()
}

// thinkingDelay is after which silence the model is taken to be thinking again.
const thinkingDelay = time.Second

// drawStatus shows what goes on for now, below everything else.
func (r *Renderer) drawStatus() {
	if !r.Side.IsTerminal() || r.lineOpen {
		return
	}
	width := r.Side.Columns() - 1
	var lines []string
	switch r.state {
	case agent.Thinking:
		if r.lastOutput == answerOutput && r.now().Sub(r.answeredAt) < thinkingDelay {
			break // it is in the middle of its answer
		}
		lines = append(lines, r.Side.Dim(term.Shorten(r.thinkingLine(width), width)))
	case agent.Acting, agent.Waiting:
		for _, c := range r.calls[:min(len(r.calls), max(r.Side.Rows()-2, 1))] {
			lines = append(lines, c.statusLine(r.now(), width))
		}
	}
	r.Side.SetStatusLines(strings.Join(lines, "\n"))
}

// showSummary tells what a run took, or why it did not end with an answer.
func (r *Renderer) showSummary(e agent.Ended) {
	r.EndLine()
	switch e.Reason {
	case agent.BudgetSpent:
		r.writeRemark("%s", r.Side.Yellow(fmt.Sprintf("the budget of %s is spent; what you say next goes on from here", display.Count(e.Steps, "step"))))
	case agent.CutOff:
		r.writeRemark("%s", r.Side.Yellow(`the answer is not whole; say "go on" for the rest of it`))
	}
	if !r.Side.IsTerminal() && !r.Verbose {
		return
	}
	parts := []string{display.Count(e.Steps, "step"), display.Duration(r.now().Sub(r.runStart))}
	if u := e.Usage; u.Input > 0 || u.Output > 0 {
		read := display.Thousands(u.Input) + " tokens read"
		if u.Cached > 0 {
			read += " (" + display.Thousands(u.Cached) + " of them cached)"
		}
		parts = append(parts, read, display.Thousands(u.Output)+" written")
	}
	r.writeRemark("%s", r.Side.Dim(strings.Join(parts, ", ")))
}

func (r *Renderer) showCompaction(e agent.Compacted) {
	r.writeRemark("%s", r.Side.Yellow(fmt.Sprintf("the conversation was near the model's limit, and has been compacted from about %s to %s tokens",
		display.Thousands(e.Before), display.Thousands(e.After))))
	if e.Summary != "" {
		r.writeRemark("%s", r.Side.Dim("  "+r.Excerpt(e.Summary, 3)))
	}
}

// showToolChanges tells which tools came and went, by server.
func (r *Renderer) showToolChanges(e agent.ToolsChanged) {
	for _, change := range []struct {
		words string
		names []string
	}{{"new", e.Added}, {"gone", e.Removed}} {
		if len(change.names) > 0 {
			r.writeRemark("%s", r.Side.Dim(term.Shorten(fmt.Sprintf("%s: %s", change.words, groupByServer(change.names)), r.Side.Width())))
		}
	}
}

// groupByServer is "files.read, files.write; shell (12 tools)".
func groupByServer(names []string) string {
	const most = 5
	var servers []string
	tools := map[string][]string{}
	for _, name := range names {
		var server string
		if o, ok := toolname.Split(name); ok {
			server = o.Server
		}
		if tools[server] == nil {
			servers = append(servers, server)
		}
		tools[server] = append(tools[server], toolname.Display(name))
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
