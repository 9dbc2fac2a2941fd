package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// toolCall is a call that is to be run.
type toolCall struct {
	use       mcp.ToolUse
	requested json.RawMessage // the arguments as the model has given them
	tool      *mcp.Tool
	runOwn    func(input json.RawMessage) (string, error) // runs a tool of the agent's own
	decided   bool                                        // on tool as it is
	granted   *allowanceKey                               // what that decision has allowed beside the call
	refusal   string                                      // why it is not to be run
	edited    bool                                        // the user has changed the arguments
	result    mcp.ToolResultContent
}

const interruptedReason = "the work was interrupted"

// runCalls runs the calls of a reply and returns their results, one for each and in order. Tools that are read-only run at the same
// time; one that is not runs alone. An error ends the run; calls that have not been run by then have results that say so.
func (r *run) runCalls(calls []*mcp.ToolUse) (results []mcp.Content, err error) {
	r.setState(Acting)
	tasks := make([]*toolCall, 0, len(calls))
	for _, use := range calls {
		tasks = append(tasks, r.newToolCall(use))
	}
	err = r.refreshTools() // behind the names of the agent's own tools, which are those that the model knows
	for _, t := range tasks {
		if t.runOwn == nil && t.refusal == "" {
			r.resolveTool(t)
		}
	}
	for rest := tasks; len(rest) > 0; {
		group := rest[:countParallel(rest)]
		if err == nil {
			err = r.approveCalls(group)
		}
		group = group[:countParallel(group)] // a tool may have become another one meanwhile
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

// countParallel is how many of the first tasks may run at the same time.
func countParallel(tasks []*toolCall) int {
	n := 1
	for tasks[0].isParallel() && n < len(tasks) && tasks[n].isParallel() {
		n++
	}
	return n
}

// newToolCall is what a call comes to before the tools are known: of the agent's own, or one that cannot be made.
func (r *run) newToolCall(use *mcp.ToolUse) *toolCall {
	t := &toolCall{use: *use, result: mcp.ToolResultContent{ToolUseID: use.ID}}
	input, ok := parseArguments(use.Input)
	if !ok {
		t.refusal = fmt.Sprintf("the arguments of %s are not a JSON object; send one, as its schema says", oneLine(use.Name))
		return t
	}
	t.use.Input, t.requested = input, input
	switch use.Name {
	case r.offer.searchName: // also where all are offered, in a conversation that began otherwise
		t.tool, t.runOwn = new(searchDefinition(use.Name)), r.searchTools
	case r.results.tool:
		t.tool, t.runOwn = new(r.results.definition()), r.results.readResult
	}
	return t
}

// resolveTool finds the tool that a call means.
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
		r.emit(Noticed{fmt.Sprintf("the model called %s, which is taken for %s", called, tool.Name)})
	}
	t.tool, t.use.Name = tool, tool.Name
	r.offerTool(tool.Name)
}

// isParallel reports whether the call may run beside others like it.
func (t *toolCall) isParallel() bool { return t.tool == nil || EffectOf(t.tool) == ReadOnly }

// runAll runs calls at the same time.
func (r *run) runAll(tasks []*toolCall) error {
	box, running := newInbox(), 0
	defer box.close()
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
		for _, p := range box.takeItems() {
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

// startCall runs a call, and reports whether its end comes through the box.
func (r *run) startCall(t *toolCall, box *inbox) bool {
	r.emit(CallStarted{t.use, *t.tool})
	switch {
	case r.ctx.Err() != nil: // whoever was told has ended the run
		r.refuseCall(t, interruptedReason)
	case t.runOwn != nil:
		r.runOwnTool(t)
	default:
		r.startTool(t, box)
		return true
	}
	return false
}

// handleItem takes what has happened.
func (r *run) handleItem(p inboxItem) {
	switch {
	case p.progress != nil:
		r.emit(CallProgressed{p.task.use, *p.progress})
	case p.ended != nil:
		p.ended.Result = r.results.limitResult(p.ended.Result, r.opts.MaxResult, r.opts.MaxMedia)
		if p.task.edited {
			p.ended.Result.Content = slices.Concat([]mcp.Content{mcp.Text(describeEdit(p.task.use.Input))}, p.ended.Result.Content)
		}
		p.task.result = p.ended.Result
		r.emit(*p.ended)
	case p.question != nil:
		r.answerQuestion(p.question)
	case p.notice != "":
		r.emit(Noticed{p.notice})
	}
}

// describeEdit is what the model is told, whose call is in the conversation as it has made it.
func describeEdit(input json.RawMessage) string {
	const longest = 2000
	return fmt.Sprintf("The user changed the arguments to %s; this is the result of that.", abbreviate(string(input), longest))
}

// refuseCall gives a call a result that says why it was not run.
func (r *run) refuseCall(t *toolCall, why string) {
	t.result = errorResult(t.use.ID, "This tool was not run: "+why+".")
	r.emit(CallEnded{Call: t.use, Result: t.result, Refusal: why})
}

func errorResult(id, why string) mcp.ToolResultContent {
	return mcp.ToolResultContent{ToolUseID: id, Content: []mcp.Content{mcp.Text(why)}, IsError: true}
}

// runOwnTool runs a tool of the agent's own.
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

// startTool runs a tool beside this goroutine. What its server asks meanwhile comes back through the box, as all else does.
func (r *run) startTool(t *toolCall, box *inbox) {
	ctx := context.WithValue(r.ctx, targetKey{}, &questionTarget{inbox: box, ctx: r.ctx, server: r.opts.Server(t.use.Name), sampled: &r.sampleUsage})
	r.calls.Go(func() {
		began, result := time.Now(), errorResult(t.use.ID, "The tool has ended without a result.")
		defer func() { // also where the goroutine ends in the middle: the run waits for this
			if p := recover(); p != nil {
				result = errorResult(t.use.ID, fmt.Sprintf("The tool has panicked: %v", p))
			}
			box.putItem(inboxItem{task: t, ended: &CallEnded{Call: t.use, Result: result, Took: time.Since(began)}})
		}()
		res, err := r.tools.Call(ctx, t.use, func(p mcp.ProgressParams) { box.putItem(inboxItem{task: t, progress: &p}) })
		switch {
		case err != nil:
			result = errorResult(t.use.ID, err.Error())
		case res != nil:
			result = toolResult(&t.use, res)
		}
	})
}
