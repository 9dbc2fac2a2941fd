package agent

import (
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// Event is something that happens in a run: one of the types of this file.
type Event interface{ isEvent() }

// State is what an agent is doing.
type State string

const (
	Idle     State = "idle"     // nothing has been run yet
	Thinking State = "thinking" // the model replies
	Acting   State = "acting"   // tools run
	Waiting  State = "waiting"  // for an approval, or for what a server asks the user
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

// Replied: the model has said all of a reply. One that holds nothing is not told: the model is asked again.
type Replied struct{ Message Message }

// CallStarted: a tool is being run.
type CallStarted struct {
	Call mcp.ToolUse
	Tool mcp.Tool
}

// CallProgressed: a tool says how far it is.
type CallProgressed struct {
	Call mcp.ToolUse
	mcp.ProgressParams
}

// CallEnded: a tool has a result, which may be that it failed or was not run.
type CallEnded struct {
	Call    mcp.ToolUse
	Result  mcp.ToolResultContent
	Took    time.Duration
	Refusal string // why it was not run; empty where it was
}

// Decided: a call may be made, or not, and this is why. Where a server wants to use the model (sampling) there is no Call, and no
// Effect. A call that could not be made anyhow, of a tool that is not there or with arguments that are no object, is not decided
// on: its [CallEnded] says why.
type Decided struct {
	Call    mcp.ToolUse // with the arguments that it is made with
	Server  string
	Effect  Effect
	Allowed bool
	By      string // one of [ByMode], [ByAnnotation], [BySession], [ByAlways] and [ByUser]
	Reason  string // in words; of a refusal, what the model is told
}

// What a decision comes from.
const (
	ByMode       = "mode"       // Options.Mode; of samples, also Options.MaxSteps
	ByAnnotation = "annotation" // the tool says that it is read-only
	BySession    = "session"    // a Decision before, with For
	ByAlways     = "always"     // Options.Allowed
	ByUser       = "user"       // Options.Approve
)

// Asked: a server asks the user something (elicitation), or wants to use the model (sampling); what comes next in the run is
// the question itself, if there is one, and the answer.
type Asked struct {
	Server  string
	Message string
	Kind    string // [Elicitation] or [Sampling]
}

// The kinds of [Asked].
const (
	Elicitation = "elicitation"
	Sampling    = "sampling"
)

// Compacted: the conversation came near to the model's window, and its older part has been replaced by a summary; where the
// model could not write one, Summary is empty, and results of older calls have been left out instead.
type Compacted struct {
	Before, After int // tokens of the next request
	Summary       string
}

// ToolsChanged: there are other tools than before, by name.
type ToolsChanged struct{ Added, Removed []string }

// Noticed is something that the user should know of the run.
type Noticed struct{ Text string }

// Ended is the last event of a run that did not fail.
type Ended struct {
	Reason Reason
	Steps  int
	Usage  Usage // of all replies together, summaries and samples among them
}

// Reason says why a run has ended.
type Reason string

const (
	Answered    Reason = "answered"     // the model has called no tool
	BudgetSpent Reason = "budget spent" // Options.MaxSteps
	CutOff      Reason = "cut off"      // the last reply reached the bound of its length, and calls no tool: what it said is kept
)

func (StateChanged) isEvent()   {}
func (Said) isEvent()           {}
func (Thought) isEvent()        {}
func (Replied) isEvent()        {}
func (CallStarted) isEvent()    {}
func (CallProgressed) isEvent() {}
func (CallEnded) isEvent()      {}
func (Decided) isEvent()        {}
func (Asked) isEvent()          {}
func (Compacted) isEvent()      {}
func (ToolsChanged) isEvent()   {}
func (Noticed) isEvent()        {}
func (Ended) isEvent()          {}
