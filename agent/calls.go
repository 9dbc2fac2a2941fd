package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/opentask"
	"github.com/dowel-mcp/dowel/mcp"
)

// toolCall is a call of the model on its way to a result.
type toolCall struct {
	use       mcp.ToolUse
	requested json.RawMessage // the arguments that the model has given
	tool      *mcp.Tool
	server    string                                      // that is called; "" if it is unknown, or for most of the agent's own tools
	isOwn     bool                                        // the tool is the agent's own
	runOwn    func(input json.RawMessage) (string, error) // runs an own tool on the goroutine of the run; nil for others
	decided   bool                                        // on the current definition of the tool
	granted   *allowanceKey                               // the lasting approval that the decision gave; nil for none
	refusal   string                                      // why the call is not made; "" if it is
	edited    bool                                        // the user has changed the arguments
	result    mcp.ToolResultContent
	open      *opentask.Task  // the task of the call that its result names; nil for none
	end       <-chan *taskEnd // of open
}

const interruptedReason = "the work was interrupted"

// runCalls runs the calls of a reply and returns one result for each, in their order. Read-only
// tools run in parallel; every other tool runs alone, since a model expects its calls to happen
// in order. An error ends the run; the calls that have not run by then get results that say so.
func (r *run) runCalls(calls []*mcp.ToolUse) (results []mcp.Content, err error) {
	r.setState(Acting)
	tasks := make([]*toolCall, 0, len(calls))
	for _, use := range calls {
		tasks = append(tasks, r.newToolCall(use))
	}
	err = r.refreshTools(r.ctx) // after newToolCall, which needs the names of the agent's own tools that the model knows
	for _, t := range tasks {
		if !t.isOwn && t.refusal == "" {
			r.resolveTool(t)
		}
	}
	for rest := tasks; len(rest) > 0; {
		group := rest[:countParallel(rest)]
		if err == nil {
			err = r.approveCalls(group)
		}
		group = group[:countParallel(group)] // a tool may have stopped to be read-only meanwhile
		if err == nil {
			err = r.runAll(group)
		} else {
			for _, t := range group {
				r.refuseCall(t, interruptedReason)
			}
		}
		rest = rest[len(group):]
	}
	for _, t := range tasks {
		results = append(results, mcp.Content{Type: mcp.ContentToolResult, ToolResult: &t.result})
	}
	return results, err
}

// countParallel returns how many calls at the beginning may run in parallel, at least 1.
func countParallel(tasks []*toolCall) int {
	n := 1
	for tasks[0].isParallel() && n < len(tasks) && tasks[n].isParallel() {
		n++
	}
	return n
}

// newToolCall checks the arguments of a call, and resolves calls of the agent's own tools.
func (r *run) newToolCall(use *mcp.ToolUse) *toolCall {
	t := &toolCall{use: *use, result: mcp.ToolResultContent{ToolUseID: use.ID}}
	input, ok := parseArguments(use.Input)
	if !ok {
		t.refusal = fmt.Sprintf("the arguments of %s are not a JSON object; send one, as its schema says", oneLine(use.Name))
		return t
	}
	t.use.Input, t.requested = input, input
	own, isResourceTool := r.resources.toolNamed(use.Name)
	skillTool, isSkillTool := r.skills.toolNamed(use.Name)
	switch {
	case use.Name == r.offer.searchName: // also if all tools are offered by now
		t.tool, t.runOwn = new(searchDefinition(use.Name)), r.searchTools
	case use.Name == r.results.tool:
		t.tool, t.runOwn = new(r.results.definition()), r.results.readResult
	case isResourceTool && use.Name == r.resources.listTool:
		t.tool, t.runOwn = &own, r.resources.listForModel
	case isSkillTool:
		t.tool, t.server = &skillTool, r.skills.serverOfCall(input)
	case isResourceTool:
		t.tool, t.server = &own, r.resources.describeURI(requestedURI(input)).Server
	}
	t.isOwn = t.tool != nil
	return t
}

// resolveTool finds the tool of a call. A name that is nearly right is corrected.
func (r *run) resolveTool(t *toolCall) {
	called := t.use.Name
	tool, mended := r.resolveName(called)
	switch {
	case tool == nil && indexOfTool(r.announced, called) >= 0:
		t.refusal = withdrawnReason(called)
		return
	case tool == nil:
		t.refusal = r.unknownToolReason(called)
		return
	case mended:
		r.emit(Delta{Notice: fmt.Sprintf("the model called %s, which is taken for %s", called, tool.Name)})
	}
	t.tool, t.use.Name, t.server = tool, tool.Name, r.serverOf(tool.Name)
	r.offerTool(tool.Name)
}

// isParallel reports whether the call may run beside other such calls.
func (t *toolCall) isParallel() bool { return t.tool == nil || EffectOf(t.tool) == ReadOnly }

// runAll runs calls in parallel, and handles their questions and progress until all have ended.
func (r *run) runAll(tasks []*toolCall) error {
	box, running := newInbox(), 0
	box.wake = r.background.wake
	defer box.closeInbox()
	for _, t := range tasks {
		switch {
		case r.ctx.Err() != nil:
			r.refuseCall(t, interruptedReason)
		case t.refusal != "":
			r.refuseCall(t, t.refusal)
		default:
			if r.startCall(t, box) {
				running++
			}
		}
	}
	for running > 0 {
		for _, p := range box.takeItems(r.background) {
			if r.handleItem(p); p.ended != nil {
				running--
			}
		}
	}
	if r.ctx.Err() != nil {
		return r.endCause()
	}
	return nil
}

// startCall runs a call. It reports whether the call's end will come through the inbox.
func (r *run) startCall(t *toolCall, box *inbox) bool {
	r.emit(CallStarted{Call: t.use})
	switch {
	case r.ctx.Err() != nil: // the listener has ended the run
		r.refuseCall(t, interruptedReason)
	case t.runOwn != nil:
		r.runOwnTool(t)
	default:
		r.startTool(t, box)
		return true
	}
	return false
}

// handleItem handles an item on the goroutine of the run.
func (r *run) handleItem(p inboxItem) {
	switch {
	case p.progress != nil:
		r.emit(CallProgressed{Call: p.task.use, ProgressParams: *p.progress})
	case p.ended != nil:
		p.ended.Result = r.results.limitResult(p.ended.Result, r.opts.Limits.MaxResult, r.opts.Limits.MaxMedia)
		if p.task.edited {
			p.ended.Result.Content = slices.Concat([]mcp.Content{mcp.Text(describeEdit(p.task.use.Input))}, p.ended.Result.Content)
		}
		r.addTask(p.task, &p.ended.Result)
		p.task.result = p.ended.Result
		r.emit(*p.ended)
	case p.taskEnd != nil:
		r.handleTaskEnd(p.taskEnd)
	case p.question != nil:
		r.answerQuestion(p.question)
	case p.notice != "":
		r.emit(Delta{Notice: p.notice})
	}
}

// describeEdit tells the model that the user has changed the arguments. The conversation keeps
// the call as the model has made it.
func describeEdit(input json.RawMessage) string {
	const longest = 2000
	return fmt.Sprintf("The user changed the arguments to %s; this is the result of that.", abbreviate(string(input), longest))
}

// refuseCall gives a call a result that says why the tool was not run.
func (r *run) refuseCall(t *toolCall, why string) {
	t.result = errorResult(t.use.ID, "This tool was not run: "+why+".")
	r.emit(CallEnded{Call: t.use, Result: t.result, Refusal: why})
}

func errorResult(id, why string) mcp.ToolResultContent {
	return mcp.ToolResultContent{ToolUseID: id, Content: []mcp.Content{mcp.Text(why)}, IsError: true}
}

// runOwnTool runs one of the agent's own tools.
func (r *run) runOwnTool(t *toolCall) {
	began := time.Now()
	text, err := t.runOwn(t.use.Input)
	if err != nil {
		t.result = errorResult(t.use.ID, err.Error())
	} else {
		t.result.Content = []mcp.Content{mcp.Text(text)}
	}
	r.emit(CallEnded{Call: t.use, Result: t.result, Took: time.Since(began)})
}

// startTool runs a tool on a new goroutine. Its progress, its end, and what its server asks
// meanwhile come through the inbox.
func (r *run) startTool(t *toolCall, box *inbox) {
	hold := func(ctx context.Context, task *client.Task, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		return r.holdTask(ctx, t, task, progress)
	}
	ctx := context.WithValue(r.ctx, targetKey{}, &questionTarget{inbox: box, ctx: r.ctx, server: t.server, sampled: &r.sampleUsage, hold: hold})
	r.calls.Go(func() {
		began, result := time.Now(), errorResult(t.use.ID, "The tool has ended without a result.")
		defer func() { // also if the tool panics or ends the goroutine: the run waits for this item
			if p := recover(); p != nil {
				result = errorResult(t.use.ID, fmt.Sprintf("The tool has panicked: %v", p))
			}
			box.putItem(inboxItem{task: t, ended: &CallEnded{Call: t.use, Result: result, Took: time.Since(began)}})
		}()
		res, err := r.callTool(ctx, t, func(p mcp.ProgressParams) { box.putItem(inboxItem{task: t, progress: &p}) })
		switch {
		case err != nil:
			result = errorResult(t.use.ID, err.Error())
		case res != nil:
			result = toolResult(&t.use, res)
		}
	})
}

// callTool calls a server: with a tool, or to read a resource or a skill.
func (r *run) callTool(ctx context.Context, t *toolCall, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	switch {
	case t.isOwn && t.use.Name == r.skills.tool:
		return r.skills.readForModel(ctx, t.use.Input)
	case t.isOwn:
		return r.resources.readForModel(ctx, t.use.Input)
	}
	return r.tools.Call(ctx, t.use, progress)
}
