package chat

import (
	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
)

// chatView shows a conversation to the user. It is safe for concurrent use.
type chatView interface {
	// Event shows an event of a run, Idle ends the run, and Tick updates the times on the screen.
	Event(e agent.Event)
	Idle()
	Tick()
	// Note shows a remark, Trouble an error with its advice.
	Note(format string, args ...any)
	Trouble(err error)
	// Working shows what the program does besides a run; "" removes it.
	Working(text string)
	// Hold(true) clears the screen for a question to the user.
	Hold(held bool)
	// Excerpt returns the beginning of a text, fit to be shown.
	Excerpt(text string, lines int) string

	// Model, Servers and Context update a view that shows them all the time.
	Model(name string)
	Servers(all []agentcmd.Server)
	Context(t agent.Tokens, cost string)
}

// linesView shows a conversation line by line.
type linesView struct{ *agentview.Renderer }

// Working implements [chatView].
func (v linesView) Working(text string) { v.Side.SetStatus(v.Side.Dim(text)) }

// Model implements [chatView]. The line about the model is in the output already.
func (linesView) Model(string) {}

// Servers implements [chatView].
func (linesView) Servers([]agentcmd.Server) {}

// Context implements [chatView].
func (linesView) Context(agent.Tokens, string) {}
