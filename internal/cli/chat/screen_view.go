package chat

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/question"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/tui/screen"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
	"github.com/dowel-mcp/dowel/mcp"
)

// screenView tells the full screen what happens.
type screenView struct {
	post      func(message any)
	isVerbose bool
	pictures  *pictureFolder

	mu      sync.Mutex // guards the fields below
	begun   time.Time  // when the run began; zero between runs
	refused map[string]bool
}

func newScreenView(post func(any), isVerbose bool) *screenView {
	return &screenView{post: post, isVerbose: isVerbose, pictures: &pictureFolder{}, refused: map[string]bool{}}
}

// Event implements [chatView].
func (v *screenView) Event(e agent.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := e.(type) {
	case agent.StateChanged:
		v.showState(e.State)
	case agent.Delta:
		v.showDelta(e)
	case agent.Approval:
		v.showDecision(e)
	case agent.CallStarted:
		v.post(screen.Ticked{Now: time.Now()})
		v.post(screen.CallStarted{ID: e.Call.ID, Card: newCard(e.Call)})
	case agent.CallProgressed:
		v.post(screen.CallProgressed{ID: e.Call.ID, Text: display.ProgressText(e.ProgressParams)})
	case agent.CallEnded:
		v.showResult(e)
	default:
		v.showRemark(e)
	}
}

// showRemark shows an event as a remark.
func (v *screenView) showRemark(e agent.Event) {
	switch e := e.(type) {
	case agent.ToolsChanged:
		for _, line := range agentview.DescribeToolChanges(e) {
			v.postNotice(transcript.Info, line)
		}
	case agent.ResourcesChanged:
		v.postNotice(transcript.Info, agentview.DescribeResourceChanges(e))
	case agent.Compacted:
		v.postNotice(transcript.Warning, agentview.DescribeCompaction(e))
	case agent.Ended:
		if text := agentview.DescribeEnd(e); text != "" {
			v.postNotice(transcript.Warning, text)
		}
		v.postNotice(transcript.Info, agentview.DescribeEffort(e, time.Since(v.begun)))
	}
}

func (v *screenView) postNotice(kind transcript.Kind, text string) {
	v.post(screen.Noticed{Kind: kind, Text: text})
}

// showState shows what the agent does. The first state begins a run.
func (v *screenView) showState(s agent.State) {
	if v.begun.IsZero() {
		v.begun = time.Now()
	}
	v.post(screen.Ticked{Now: time.Now()})
	words := map[agent.State]string{agent.Thinking: "thinking", agent.Acting: "running tools", agent.Waiting: "waiting for you"}
	v.post(screen.Working{Activity: words[s]})
}

func (v *screenView) showDelta(d agent.Delta) {
	switch {
	case d.Message != nil:
		v.post(screen.Replied{})
	case d.Notice != "":
		v.postNotice(transcript.Warning, term.Line(d.Notice))
	case d.Reasoning != "":
		v.post(screen.Thought{Piece: d.Reasoning})
	case d.Text != "":
		v.post(screen.Said{Piece: d.Text})
	}
}

// briefInput limits the arguments on the line of a folded card.
const briefInput = 400

// newCard returns the card of a call.
func newCard(call mcp.ToolUse) toolcard.Card {
	return toolcard.Card{
		Tool: toolname.Display(call.Name), Brief: agentview.BrieflyInput(call.Input, briefInput),
		Arguments: question.FormatArguments(call.Input),
	}
}

// showDecision shows a refusal of a call or of the use of the model.
func (v *screenView) showDecision(e agent.Approval) {
	switch {
	case e.Allowed:
	case e.Call.ID == "":
		v.postNotice(transcript.Warning, fmt.Sprintf("%s may not use the model: %s", term.Line(e.Server), term.Line(e.Reason)))
	default:
		v.refused[e.Call.ID] = true
		v.showRefusal(e.Call, e.Reason)
	}
}

func (v *screenView) showRefusal(call mcp.ToolUse, why string) {
	card := newCard(call)
	card.State, card.Facts = toolcard.Refused, "not run: "+term.Line(why)
	v.post(screen.CallEnded{ID: call.ID, Card: card})
}

// showResult shows the outcome of a call.
func (v *screenView) showResult(e agent.CallEnded) {
	if e.Refusal != "" {
		if !v.refused[e.Call.ID] {
			v.showRefusal(e.Call, e.Refusal)
		}
		return
	}
	card := newCard(e.Call)
	card.State, card.Facts, card.Result = toolcard.Succeeded, agentview.DescribeOutcome(e), agentview.ResultText(e.Result)
	card.Pictures = v.pictures.findPictures(e.Result.Content)
	if e.Result.IsError {
		card.State = toolcard.Failed
	}
	v.post(screen.CallEnded{ID: e.Call.ID, Card: card})
}

// Idle implements [chatView].
func (v *screenView) Idle() {
	v.mu.Lock()
	v.begun = time.Time{}
	clear(v.refused)
	v.mu.Unlock()
	v.post(screen.RunEnded{})
}

// Tick implements [chatView].
func (v *screenView) Tick() { v.post(screen.Ticked{Now: time.Now()}) }

// Note implements [chatView].
func (v *screenView) Note(format string, args ...any) {
	v.postNotice(transcript.Info, fmt.Sprintf(format, args...))
}

// Trouble implements [chatView].
func (v *screenView) Trouble(err error) {
	text := secretmask.Text(err.Error())
	if advice := exit.Advice(err); advice != "" {
		text += "\n" + advice
	}
	v.postNotice(transcript.Trouble, text)
}

// Working implements [chatView].
func (v *screenView) Working(text string) {
	v.post(screen.Ticked{Now: time.Now()})
	v.post(screen.Working{Activity: text})
}

// Hold implements [chatView]. A form has its own place.
func (*screenView) Hold(bool) {}

// Excerpt implements [chatView].
func (v *screenView) Excerpt(text string, lines int) string {
	if v.isVerbose {
		return strings.TrimSpace(term.Printable(text))
	}
	const columns = 80
	return term.Shorten(term.Line(text), columns*lines)
}

// Model implements [chatView].
func (v *screenView) Model(name string) { v.post(screen.ModelChosen{Name: name}) }

// Servers implements [chatView].
func (v *screenView) Servers(all []agentcmd.Server) {
	var counts screen.ServersChanged
	for _, s := range all {
		switch s.Status {
		case hub.Ready:
			counts.Ready++
		case hub.Starting:
			counts.Starting++
		case hub.NeedsLogin:
			counts.NeedLogin++
		case hub.Stopped, hub.Disabled:
		default:
			counts.Failed++
		}
	}
	v.post(counts)
}

// Context implements [chatView].
func (v *screenView) Context(t agent.Tokens, cost string) {
	v.post(screen.ContextUsed{Used: t.Total, Window: t.Window, Cost: cost})
}
