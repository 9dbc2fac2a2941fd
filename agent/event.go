package agent

import (
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// Event is something that happens in a run: a [Delta] of the reply, [StateChanged], [CallStarted],
// [CallProgressed], [CallEnded], [Approval], [Asked], [Compacted], [ToolsChanged],
// [ResourcesChanged], or [Ended]. A Delta that is an event has one field set. Its Message is never
// blank: the model is asked again after an empty reply.
type Event interface{ isEvent() }

// event is embedded in the types of events.
type event struct{}

func (event) isEvent() {}

// State says what an agent is doing.
type State string

const (
	Thinking State = "thinking" // the model replies
	Acting   State = "acting"   // tools run
	Waiting  State = "waiting"  // for an approval, or for the user's answer to a server
	Finished State = "finished"
	Failed   State = "failed"
)

// StateChanged reports that the agent does something else.
type StateChanged struct {
	event
	State State
	Step  int // from 1 on
}

// CallStarted reports that a tool runs.
type CallStarted struct {
	event
	Call mcp.ToolUse
}

// CallProgressed reports the progress that a tool has sent.
type CallProgressed struct {
	event
	Call mcp.ToolUse
	mcp.ProgressParams
}

// CallEnded reports the result of a call, also if the tool failed or was not run.
type CallEnded struct {
	event
	Call    mcp.ToolUse
	Result  mcp.ToolResultContent
	Took    time.Duration
	Refusal string // why the tool was not run; empty if it ran
}

// Approval reports whether a call is made, and why. If a server wants to use the model (sampling),
// Call and Effect are zero. A call that cannot be made, of an unknown tool or with invalid
// arguments, has no Approval: its [CallEnded] says why.
//
// By is the source of the decision:
//
//	mode        Options.Mode; of samples, also Limits.MaxSteps
//	annotation  the tool says that it is read-only
//	session     an earlier [Decision] with For
//	always      Options.Allowed
//	user        Options.Approve
type Approval struct {
	event
	Call    mcp.ToolUse // with the arguments that are sent
	Server  string
	Effect  Effect
	Allowed bool
	By      string // mode, annotation, session, always or user
	Reason  string // in words; the model is told it if the call is refused
}

// Values of Approval.By.
const (
	byMode       = "mode"
	byAnnotation = "annotation"
	bySession    = "session"
	byAlways     = "always"
	byUser       = "user"
)

// Asked reports that a server asks the user something (elicitation), or wants to use the model
// (sampling). The question follows, unless it is answered without the user, and then the answer.
type Asked struct {
	event
	Server   string
	Message  string
	Sampling bool // the server wants to use the model
}

// Compacted reports that the older part of the conversation has been replaced by Summary, because
// the conversation came near to the model's window. If the model could not write a summary,
// Summary is empty, and results of older calls have been left out.
type Compacted struct {
	event
	Before, After int // tokens of the next request
	Summary       string
}

// ToolsChanged reports the names of tools that have come and gone.
type ToolsChanged struct {
	event
	Added, Removed []string
}

// Ended is the last event of a run without an error.
type Ended struct {
	event
	Reason Reason
	Steps  int
	Usage  Usage // of all replies together, with summaries and samples
}

// Reason says why a run has ended.
type Reason string

const (
	Answered    Reason = "answered"     // the model has called no tool
	BudgetSpent Reason = "budget spent" // Limits.MaxSteps
	CutOff      Reason = "cut off"      // the last reply reached the limit of its length and calls no tool; its text is in the conversation
)
