package agent

import (
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// Event is something that happens in a run: one of the types of this file.
type Event interface{ event() }

// State is what an agent is doing.
type State string

const (
	Idle     State = "idle"
	Thinking State = "thinking" // the model replies
	Acting   State = "acting"   // tools run
	Waiting  State = "waiting"  // for an approval
	Finished State = "finished"
	Failed   State = "failed"
)

// StateChanged: the agent does something else.
type StateChanged struct {
	State State
	Step  int // from 1 on
}

// Said is a piece of what the model says, and Thought of what it thinks.
type (
	Said    struct{ Text string }
	Thought struct{ Text string }
)

// Replied: the model has said all of a reply.
type Replied struct{ Message Message }

// CallStarted: a tool is being run.
type CallStarted struct {
	Call mcp.ToolUse
	Tool mcp.Tool
}

// CallProgressed: a tool says how far it is.
type CallProgressed struct {
	ID string
	mcp.ProgressParams
}

// CallEnded: a tool has a result, which may be that it failed or was not run.
type CallEnded struct {
	ID      string
	Result  mcp.ToolResultContent
	Took    time.Duration
	Refusal string // why it was not run; empty where it was
}

// ToolsChanged: there are other tools than before, by name.
type ToolsChanged struct{ Added, Removed []string }

// Noticed is something that the user should know of the run.
type Noticed struct{ Text string }

// Ended is the last event of a run that did not fail.
type Ended struct {
	Reason Reason
	Steps  int
	Usage  Usage // of all replies together
}

// Reason says why a run has ended.
type Reason string

const (
	Answered    Reason = "answered"     // the model has called no tool
	BudgetSpent Reason = "budget spent" // Options.MaxSteps
)

func (StateChanged) event()   {}
func (Said) event()           {}
func (Thought) event()        {}
func (Replied) event()        {}
func (CallStarted) event()    {}
func (CallProgressed) event() {}
func (CallEnded) event()      {}
func (ToolsChanged) event()   {}
func (Noticed) event()        {}
func (Ended) event()          {}
