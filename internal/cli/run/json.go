package run

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/mcp"
)

// jsonViewer writes events for programs, each as one line of JSON. A line does not depend on
// earlier lines.
type jsonViewer struct {
	*factory.Factory
	progress *taskProgress
}

// eventHead holds the fields that every event begins with.
type eventHead struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	Step  int       `json:"step"` // 0 before the first step
}

// The types of events. The comment of each names the values of "event" that it has.
type (
	eventBegan struct { // began
		eventHead
		Model    string        `json:"model"`
		Provider string        `json:"provider"`
		Approve  agent.Mode    `json:"approve"`
		Servers  []eventServer `json:"servers"`
		// Session is the ID under which the conversation is saved.
		Session string `json:"session,omitzero"`
		// Instructions are the AGENTS.md files that the model gets.
		Instructions []string `json:"instructions,omitzero"`
		// Resources were added to the task with @SERVER:URI.
		Resources []eventResource `json:"resources,omitzero"`
	}
	eventResource struct {
		Server string `json:"server"`
		URI    string `json:"uri"`
	}
	eventServer struct {
		Name   string     `json:"name"`
		Status hub.Status `json:"status"`
		Tools  int        `json:"tools"`
	}
	eventState struct { // state
		eventHead
		State agent.State `json:"state"`
	}
	eventText struct { // text, a piece of the reply; thought; notice
		eventHead
		Text string `json:"text"`
	}
	eventReply struct { // reply, complete
		eventHead
		Text  string         `json:"text"`
		Calls []eventToolUse `json:"calls"`
		Usage *agent.Usage   `json:"usage,omitzero"`
	}
	eventToolUse struct {
		ID        string          `json:"id"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	eventDecision struct { // decision; id and tool are empty if a server wants to use the model
		eventHead
		eventToolUse
		Server  string       `json:"server"`
		Effect  agent.Effect `json:"effect,omitzero"`
		Allowed bool         `json:"allowed"`
		By      string       `json:"by"`
		Reason  string       `json:"reason,omitzero"`
	}
	eventCall struct { // call
		eventHead
		eventToolUse
	}
	eventProgress struct { // progress
		eventHead
		ID       string  `json:"id"`
		Tool     string  `json:"tool"`
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitzero"`
		Message  string  `json:"message,omitzero"`
	}
	eventResult struct { // result, as the model gets it
		eventHead
		ID      string        `json:"id"`
		Tool    string        `json:"tool"`
		Error   bool          `json:"error"`
		Refused string        `json:"refused,omitzero"` // why it was not run
		MS      float64       `json:"ms"`
		Content []mcp.Content `json:"content"`
	}
	eventQuestion struct { // question
		eventHead
		Server  string `json:"server"`
		Kind    string `json:"kind"`
		Message string `json:"message"`
	}
	eventTools struct { // tools
		eventHead
		Added   []string `json:"added"`
		Removed []string `json:"removed"`
	}
	eventResources struct { // resources; they have changed since the model has read them
		eventHead
		Changed []eventResource `json:"changed"`
	}
	eventCompacted struct { // compacted
		eventHead
		Before  int    `json:"before"`
		After   int    `json:"after"`
		Summary string `json:"summary"`
	}
	eventEnd struct { // end
		eventHead
		Reason  string          `json:"reason"` // answered, budget spent, time over, cut off, approval needed, interrupted, failed
		Exit    int             `json:"exit"`
		Answer  string          `json:"answer"`
		Partial bool            `json:"partial,omitzero"` // the run failed in the middle of the answer
		Value   json.RawMessage `json:"value,omitzero"`   // the answer as JSON, with --schema
		Tool    string          `json:"tool,omitzero"`    // the tool that needs an approval
		Error   string          `json:"error,omitzero"`
		Advice  string          `json:"advice,omitzero"`
		Usage   agent.Usage     `json:"usage"`
		MS      float64         `json:"ms"`
	}
)

// newJSONViewer returns a viewer and writes the first event, "began".
func newJSONViewer(ctx context.Context, f *factory.Factory, r *agentcmd.Runtime, p *taskProgress, session string) *jsonViewer {
	v := &jsonViewer{f, p}
	began := eventBegan{eventHead: v.newHead("began"), Model: r.Model.Model, Provider: r.Model.Provider, Approve: r.Mode, Servers: []eventServer{}, Session: session, Instructions: r.InstructionPaths()}
	if servers, err := r.Servers(ctx); err == nil {
		for _, s := range servers {
			began.Servers = append(began.Servers, eventServer{s.Name, s.Status, s.Tools})
		}
	}
	for _, r := range p.references {
		began.Resources = append(began.Resources, eventResource{r.Server, r.URI})
	}
	factory.WriteJSONLine(v.Stdout, began)
	return v
}

func (v *jsonViewer) newHead(event string) eventHead {
	return eventHead{event, time.Now(), v.progress.step}
}

// showEvent implements [viewer].
func (v *jsonViewer) showEvent(e agent.Event) {
	if line := v.encodeEvent(e); line != nil {
		factory.WriteJSONLine(v.Stdout, line)
	}
}

// encodeEvent returns the JSON form of an event, or nil for an event that is not written.
func (v *jsonViewer) encodeEvent(e agent.Event) any {
	switch e := e.(type) {
	case agent.StateChanged:
		return eventState{v.newHead("state"), e.State}
	case agent.Delta:
		return v.encodeDelta(e)
	case agent.Approval:
		return eventDecision{v.newHead("decision"), encodeCall(e.Call), e.Server, e.Effect, e.Allowed, e.By, e.Reason}
	case agent.CallStarted:
		return eventCall{v.newHead("call"), encodeCall(e.Call)}
	case agent.CallProgressed:
		return eventProgress{v.newHead("progress"), e.Call.ID, e.Call.Name, e.Progress, e.Total, e.Message}
	case agent.CallEnded:
		content := e.Result.Content
		if content == nil {
			content = []mcp.Content{}
		}
		return eventResult{v.newHead("result"), e.Call.ID, e.Call.Name, e.Result.IsError, e.Refusal, toMilliseconds(e.Took), content}
	case agent.Asked:
		kind := "elicitation"
		if e.Sampling {
			kind = "sampling"
		}
		return eventQuestion{v.newHead("question"), e.Server, kind, e.Message}
	case agent.ToolsChanged:
		return eventTools{v.newHead("tools"), emptyIfNil(e.Added), emptyIfNil(e.Removed)}
	case agent.ResourcesChanged:
		line := eventResources{eventHead: v.newHead("resources")}
		for _, r := range e.Resources {
			line.Changed = append(line.Changed, eventResource{r.Server, toolname.OwnURI(r)})
		}
		return line
	case agent.Compacted:
		return eventCompacted{v.newHead("compacted"), e.Before, e.After, e.Summary}
	}
	return nil
}

// encodeDelta returns the JSON form of a piece of a reply, a complete reply, or a notice.
func (v *jsonViewer) encodeDelta(d agent.Delta) any {
	switch {
	case d.Message != nil:
		calls := []eventToolUse{}
		for _, use := range d.Message.Calls() {
			calls = append(calls, encodeCall(*use))
		}
		return eventReply{v.newHead("reply"), d.Message.Text(), calls, d.Message.Usage}
	case d.Notice != "":
		return eventText{v.newHead("notice"), d.Notice}
	case d.Reasoning != "":
		return eventText{v.newHead("thought"), d.Reasoning}
	}
	return eventText{v.newHead("text"), d.Text}
}

// encodeCall returns the JSON form of a call. Arguments that are not JSON become null.
func encodeCall(use mcp.ToolUse) eventToolUse {
	arguments := use.Input
	if !json.Valid(arguments) {
		arguments = json.RawMessage("null")
	}
	return eventToolUse{use.ID, use.Name, arguments}
}

func emptyIfNil(names []string) []string { return append([]string{}, names...) }

func toMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// showEnd implements [viewer]. It writes the last event, "end".
func (v *jsonViewer) showEnd(err error) {
	e := eventEnd{
		eventHead: v.newHead("end"), Reason: "answered", Exit: exit.Code(err), Answer: v.progress.answerText(), Partial: err != nil && v.progress.answerText() != "",
		Value: v.progress.value, Usage: v.progress.usage, MS: toMilliseconds(time.Since(v.progress.startTime)),
	}
	var budget errBudget
	var approval errApproval
	var interrupted *exit.Interruption
	switch {
	case err == nil:
	case errors.As(err, &budget), errors.As(err, new(errSpent)):
		e.Reason = string(agent.BudgetSpent)
	case errors.As(err, new(errTime)):
		e.Reason = "time over"
	case errors.As(err, new(errCut)):
		e.Reason = string(agent.CutOff)
	case errors.As(err, &approval):
		e.Reason, e.Tool = "approval needed", approval.tool
	case errors.As(err, &interrupted):
		e.Reason = "interrupted"
	default:
		e.Reason = "failed"
	}
	if err != nil {
		e.Error, e.Advice = secretmask.Text(err.Error()), exit.Advice(err)
	}
	factory.WriteJSONLine(v.Stdout, e)
}
