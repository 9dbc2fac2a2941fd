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
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
)

// Renderer shows the events of an agent as text. Make one with [NewRenderer]. It is safe for
// concurrent use; change its exported fields before the first event.
type Renderer struct {
	Out  *term.Screen // the model's answer
	Side *term.Screen // calls, notes and the status; may be the same screen as Out
	now  func() time.Time
	// Excerpts shows the beginning of results too. Verbose shows results and thoughts completely.
	Excerpts, Verbose bool

	// Mu guards the screens and the fields below. Lock it to write to the screens directly.
	Mu         sync.Mutex
	state      agent.State
	stateStart time.Time // when state began
	runStart   time.Time // when the run began; zero between runs
	calls      []*shownCall
	refused    map[string]bool // IDs of calls that were shown as refused
	thought    thought
	lineOpen   bool      // Out is in the middle of a line
	notes      []string  // remarks that wait for the end of the line
	answeredAt time.Time // when the last piece of the answer arrived
	lastOutput outputKind
}

// outputKind is the kind of the last output. A blank line separates output of different kinds.
type outputKind int

const (
	noOutput     outputKind = iota
	answerOutput            // the model's answer
	remarkOutput            // a line about the run
)

// NewRenderer returns a renderer that writes answers to out and everything else to side.
func NewRenderer(out, side *term.Screen) *Renderer {
	return &Renderer{Out: out, Side: side, now: time.Now, refused: map[string]bool{}}
}

// Event shows an event of a run and updates the status line.
func (r *Renderer) Event(e agent.Event) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if d, ok := e.(agent.Delta); !ok || d.Reasoning == "" {
		r.finishThought()
	}
	switch e := e.(type) {
	case agent.StateChanged:
		r.setState(e.State)
	case agent.Delta:
		if !r.showDelta(e) {
			return
		}
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
	case agent.ResourcesChanged:
		r.showResourceChanges(e)
	case agent.Compacted:
		r.showCompaction(e)
	case agent.Ended:
		r.showSummary(e)
	}
	r.drawStatus()
}

// showDelta shows a piece of a reply, or a notice. It reports false for a thought that the next
// Tick draws.
func (r *Renderer) showDelta(d agent.Delta) (drawNow bool) {
	switch {
	case d.Message != nil:
		r.EndLine()
	case d.Notice != "":
		r.writeRemark("%s", r.Side.Yellow(term.Line(d.Notice)))
	case d.Reasoning != "":
		r.thought.appendText(d.Reasoning)
		if r.now().Sub(r.thought.drawnAt) < thoughtInterval {
			return false
		}
		r.thought.drawnAt = r.now()
	default:
		r.writeAnswer(d.Text)
	}
	return true
}

// setState records a change of the agent's state. The first change begins a run.
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

// Idle removes the status line and ends the run. Call it after every run, however it ended.
func (r *Renderer) Idle() {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.finishThought()
	r.EndLine()
	r.state, r.calls, r.runStart, r.lastOutput = "", nil, time.Time{}, noOutput
	r.drawStatus()
}

// writeAnswer writes a piece of the model's answer.
func (r *Renderer) writeAnswer(text string) {
	if r.lastOutput != answerOutput {
		text = strings.TrimLeft(text, "\n")
	}
	if text == "" {
		return
	}
	r.Side.SetStatus("") // the status must not share a line with the answer
	if r.lastOutput == remarkOutput && r.sharesScreen() {
		_, _ = io.WriteString(r.Out, "\n") // the screen handles write errors
	}
	r.lastOutput, r.answeredAt = answerOutput, r.now()
	_, _ = io.WriteString(r.Out, r.Out.Clean(text))
	r.lineOpen = !strings.HasSuffix(text, "\n")
}

// sharesScreen reports whether the answer and the remarks appear on the same terminal.
func (r *Renderer) sharesScreen() bool {
	return r.Side == r.Out || r.Side.IsTerminal() && r.Out.IsTerminal()
}

// EndLine ends an unfinished line of the answer, and writes the notes that waited for that. The
// caller must hold r.Mu.
func (r *Renderer) EndLine() {
	if r.lineOpen {
		r.lineOpen = false
		_, _ = io.WriteString(r.Out, "\n")
	}
	notes := r.notes
	r.notes = nil
	for _, note := range notes {
		r.writeRemark("%s", note)
	}
}

// writeRemark writes a line about the run.
func (r *Renderer) writeRemark(format string, args ...any) {
	r.EndLine()
	r.Side.SetStatus("") // it is out of date
	if r.lastOutput == answerOutput && r.sharesScreen() {
		_, _ = io.WriteString(r.Out, "\n")
	}
	r.lastOutput = remarkOutput
	fmt.Fprintf(r.Side, format+"\n", args...)
}

// Note writes a dim line that is not part of a run. It does not break a line of the answer: the
// note waits for its end.
func (r *Renderer) Note(format string, args ...any) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	note := r.Side.Dim(fmt.Sprintf(format, args...))
	if r.lineOpen && r.sharesScreen() {
		r.notes = append(r.notes, note)
		return
	}
	r.writeRemark("%s", note)
	r.drawStatus()
}

// Trouble shows an error with its advice.
func (r *Renderer) Trouble(err error) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.finishThought()
	r.writeRemark("%s %s", r.Side.Red("dowel:"), strings.ReplaceAll(r.Side.Clean(secretmask.Text(err.Error())), "\n", "\n  "))
	if advice := exit.Advice(err); advice != "" {
		r.writeRemark("  %s", advice)
	}
	r.drawStatus()
}

// Hold(true) clears the status line and keeps it away, so that a question to the user has the
// screen. Hold(false) shows it again.
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

// Tick updates the times in the status line. Call it regularly during a run.
func (r *Renderer) Tick() {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.drawStatus()
}

// thinkingDelay is the pause in an answer after which the status shows "thinking" again.
const thinkingDelay = time.Second

// drawStatus draws the status lines below all output: the model's thinking or the running calls.
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

// showSummary shows why a run ended without a complete answer, and its steps, time and tokens.
func (r *Renderer) showSummary(e agent.Ended) {
	r.EndLine()
	if text := DescribeEnd(e); text != "" {
		r.writeRemark("%s", r.Side.Yellow(text))
	}
	if !r.Side.IsTerminal() && !r.Verbose && !r.Excerpts {
		return
	}
	r.writeRemark("%s", r.Side.Dim(DescribeEffort(e, r.now().Sub(r.runStart))))
}

// DescribeEnd returns why a run ended without a complete answer, or "".
func DescribeEnd(e agent.Ended) string {
	switch e.Reason {
	case agent.BudgetSpent:
		return fmt.Sprintf("the budget of %s is used up; write on to continue", display.Count(e.Steps, "step"))
	case agent.CutOff:
		return `the answer was cut off; write "go on" for the rest`
	}
	return ""
}

// DescribeEffort returns the steps, time and tokens of a run.
func DescribeEffort(e agent.Ended, took time.Duration) string {
	parts := []string{display.Count(e.Steps, "step"), display.Duration(took)}
	if u := e.Usage; u.Input > 0 || u.Output > 0 {
		read := display.Thousands(u.Input) + " tokens read"
		if u.Cached > 0 {
			read += " (" + display.Thousands(u.Cached) + " of them cached)"
		}
		parts = append(parts, read, display.Thousands(u.Output)+" written")
	}
	return strings.Join(parts, ", ")
}

func (r *Renderer) showCompaction(e agent.Compacted) {
	r.writeRemark("%s", r.Side.Yellow(DescribeCompaction(e)))
	if e.Summary != "" {
		r.writeRemark("%s", r.Side.Dim("  "+r.Excerpt(e.Summary, 3)))
	}
}

// DescribeCompaction tells that a conversation has been compacted.
func DescribeCompaction(e agent.Compacted) string {
	return fmt.Sprintf("the conversation was near the model's limit, and has been compacted from about %s to %s tokens",
		display.Thousands(e.Before), display.Thousands(e.After))
}

// showToolChanges shows which tools were added and removed, by server.
func (r *Renderer) showToolChanges(e agent.ToolsChanged) {
	for _, line := range DescribeToolChanges(e) {
		r.writeRemark("%s", r.Side.Dim(term.Shorten(line, r.Side.Width())))
	}
}

// DescribeToolChanges returns a line each for the new and the removed tools, by server.
func DescribeToolChanges(e agent.ToolsChanged) (lines []string) {
	for _, change := range []struct {
		words string
		names []string
	}{{"new", e.Added}, {"gone", e.Removed}} {
		if len(change.names) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", change.words, groupByServer(change.names)))
		}
	}
	return lines
}

// showResourceChanges shows which resources the model was told to have changed.
func (r *Renderer) showResourceChanges(e agent.ResourcesChanged) {
	r.writeRemark("%s", r.Side.Dim(term.Shorten(DescribeResourceChanges(e), r.Side.Width())))
}

// DescribeResourceChanges names the resources that the model was told to have changed.
func DescribeResourceChanges(e agent.ResourcesChanged) string {
	var names []string
	for _, one := range e.Resources {
		names = append(names, toolname.DisplayResource(one))
	}
	return "changed since it was read: " + strings.Join(names, ", ")
}

// groupByServer lists tools by server, such as "files.read, files.write; shell (12 tools)".
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
