package chathost

import (
	"slices"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// turnProgress follows the events of a turn.
type turnProgress struct {
	control.ChatProgress
	hasAnswered bool // the model's last message calls no tool
}

// addEvent adds an event. After an answer without calls, a run acts only to wait for a task.
func (p *turnProgress) addEvent(e agent.Event) {
	switch e := e.(type) {
	case agent.StateChanged:
		p.IsWaiting = p.hasAnswered && e.State == agent.Acting
	case agent.Delta:
		p.Draft += e.Text
		if e.Notice != "" {
			p.Notice = term.Line(e.Notice)
		}
		if e.Message != nil {
			p.Draft = ""
			p.hasAnswered = e.Message.Role == mcp.RoleAssistant && !slices.ContainsFunc(e.Message.Content, func(c mcp.Content) bool { return c.ToolUse != nil })
		}
	}
}
