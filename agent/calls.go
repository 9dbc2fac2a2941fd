package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// task is a call that is to be run.
type task struct {
	use     mcp.ToolUse
	wanted  json.RawMessage // the arguments as the model has given them
	tool    *mcp.Tool
	own     func(input json.RawMessage) (string, error) // runs a tool of the agent's own
	decided bool                                        // on tool as it is
	granted *allowance                                  // what that decision has allowed beside the call
	refusal string                                      // why it is not to be run
	edited  bool                                        // the user has changed the arguments
	result  mcp.ToolResultContent
}

const interrupted = "the work was interrupted"

// act runs the calls of a reply and returns their results, one for each and in order. Tools that are read-only run at the same
// time; one that is not runs alone. An error ends the run; calls that have not been run by then have results that say so.
func (r *run) act(calls []*mcp.ToolUse) (results []mcp.Content, err error) {
	r.become(Acting)
	tasks := make([]*task, 0, len(calls))
	for _, use := range calls {
		tasks = append(tasks, r.task(use))
	}
	err = r.refresh() // behind the names of the agent's own tools, which are those that the model knows
	for _, t := range tasks {
		if t.own == nil && t.refusal == "" {
			r.resolve(t)
		}
	}
	for rest := tasks; len(rest) > 0; {
		group := rest[:together(rest)]
		if err == nil {
			err = r.agree(group)
		}
		group = group[:together(group)] // a tool may have become another one meanwhile
		if err == nil {
			err = r.runAll(group)
		} else {
			for _, t := range group {
				r.refuse(t, interrupted)
			}
		}
		rest = rest[len(group):]
	}
	for _, t := range tasks {
		results = append(results, mcp.Content{Type: mcp.ContentToolResult, ToolResult: &t.result})
	}
	return results, err
}

// together is how many of the first tasks may run at the same time.
func together(tasks []*task) int {
	n := 1
	for tasks[0].alike() && n < len(tasks) && tasks[n].alike() {
		n++
	}
	return n
}

// task is what a call comes to before the tools are known: of the agent's own, or one that cannot be made.
func (r *run) task(use *mcp.ToolUse) *task {
	t := &task{use: *use, result: mcp.ToolResultContent{ToolUseID: use.ID}}
	input, ok := arguments(use.Input)
	if !ok {
		t.refusal = fmt.Sprintf("the arguments of %s are not a JSON object; send one, as its schema says", oneLine(use.Name))
		return t
	}
	t.use.Input, t.wanted = input, input
	switch use.Name {
	case r.offer.search: // also where all are offered, in a conversation that began otherwise
		t.tool, t.own = new(searchDefinition(use.Name)), r.search
	case r.results.tool:
		t.tool, t.own = new(r.results.definition()), r.results.read
	}
	return t
}

// resolve finds the tool that a call means.
func (r *run) resolve(t *task) {
	called := t.use.Name
	tool, mended := r.meant(called)
	switch {
	case tool == nil && indexOf(r.known, called) >= 0:
		t.refusal = gone(called)
		return
	case tool == nil:
		t.refusal = r.missing(called)
		return
	case mended:
		r.tell(Noticed{fmt.Sprintf("the model called %s, which is taken for %s", called, tool.Name)})
	}
	t.tool, t.use.Name = tool, tool.Name
	r.offerTool(tool.Name)
}

// alike reports whether the call may run beside others like it.
func (t *task) alike() bool { return t.tool == nil || EffectOf(t.tool) == ReadOnly }

// runAll runs calls at the same time.
func (r *run) runAll(tasks []*task) error {
	box, running := newInbox(), 0
	defer box.close()
	for _, t := range tasks {
		switch {
		case r.ctx.Err() != nil:
			r.refuse(t, interrupted)
		case t.refusal != "":
			r.refuse(t, t.refusal)
		default:
			if r.startCall(t, box) {
				running++
			}
		}
	}
	for running > 0 {
		for _, p := range box.take() {
			if r.take(p); p.ended != nil {
				running--
			}
		}
	}
	if r.ctx.Err() != nil {
		return r.ended()
	}
	return nil
}

// startCall runs a call, and reports whether its end comes through the box.
func (r *run) startCall(t *task, box *inbox) bool {
	r.tell(CallStarted{t.use, *t.tool})
	switch {
	case r.ctx.Err() != nil: // whoever was told has ended the run
		r.refuse(t, interrupted)
	case t.own != nil:
		r.runOwn(t)
	default:
		r.begin(t, box)
		return true
	}
	return false
}

// take takes what has happened.
func (r *run) take(p post) {
	switch {
	case p.progress != nil:
		r.tell(CallProgressed{p.task.use, *p.progress})
	case p.ended != nil:
		p.ended.Result = r.results.keep(p.ended.Result, r.opts.MaxResult, r.opts.MaxMedia)
		if p.task.edited {
			p.ended.Result.Content = slices.Concat([]mcp.Content{mcp.Text(editedTo(p.task.use.Input))}, p.ended.Result.Content)
		}
		p.task.result = p.ended.Result
		r.tell(*p.ended)
	case p.question != nil:
		r.answer(p.question)
	case p.notice != "":
		r.tell(Noticed{p.notice})
	}
}

// editedTo is what the model is told, whose call is in the conversation as it has made it.
func editedTo(input json.RawMessage) string {
	const longest = 2000
	return fmt.Sprintf("The user changed the arguments to %s; this is the result of that.", ends(string(input), longest))
}

// refuse gives a call a result that says why it was not run.
func (r *run) refuse(t *task, why string) {
	t.result = failed(t.use.ID, "This tool was not run: "+why+".")
	r.tell(CallEnded{Call: t.use, Result: t.result, Refusal: why})
}

func failed(id, why string) mcp.ToolResultContent {
	return mcp.ToolResultContent{ToolUseID: id, Content: []mcp.Content{mcp.Text(why)}, IsError: true}
}

// runOwn runs a tool of the agent's own.
func (r *run) runOwn(t *task) {
	began := time.Now()
	text, err := t.own(t.use.Input)
	if err != nil {
		t.result = failed(t.use.ID, err.Error())
	} else {
		t.result.Content = []mcp.Content{mcp.Text(text)}
	}
	r.tell(CallEnded{Call: t.use, Result: t.result, Took: time.Since(began)})
}

// begin runs a tool beside this goroutine. What its server asks meanwhile comes back through the box, as all else does.
func (r *run) begin(t *task, box *inbox) {
	ctx := context.WithValue(r.ctx, askerKey{}, &asker{inbox: box, ctx: r.ctx, server: r.opts.Server(t.use.Name), sampled: &r.sampled})
	r.calls.Go(func() {
		began, result := time.Now(), failed(t.use.ID, "The tool has ended without a result.")
		defer func() { // also where the goroutine ends in the middle: the run waits for this
			if p := recover(); p != nil {
				result = failed(t.use.ID, fmt.Sprintf("The tool has panicked: %v", p))
			}
			box.put(post{task: t, ended: &CallEnded{Call: t.use, Result: result, Took: time.Since(began)}})
		}()
		res, err := r.tools.Call(ctx, t.use, func(p mcp.ProgressParams) { box.put(post{task: t, progress: &p}) })
		switch {
		case err != nil:
			result = failed(t.use.ID, err.Error())
		case res != nil:
			result = resultOf(&t.use, res)
		}
	})
}
