package agent

import (
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// task is a call that is to be run.
type task struct {
	use     mcp.ToolUse
	tool    *mcp.Tool
	refusal string // why it is not to be run
	result  mcp.ToolResultContent
}

// act runs the calls of a reply and returns their results, one for each and in order. Tools that are read-only run at the same
// time; one that is not runs alone. An error ends the run; calls that have not been run by then have results that say so.
func (r *run) act(calls []*mcp.ToolUse) (results []mcp.Content, err error) {
	r.become(Acting)
	var tasks []*task
	for _, use := range calls {
		tasks = append(tasks, r.task(use))
	}
	for first := 0; first < len(tasks); {
		n := 1
		for tasks[first].alike() && first+n < len(tasks) && tasks[first+n].alike() {
			n++
		}
		if err == nil {
			err = r.together(tasks[first : first+n])
		} else {
			for _, t := range tasks[first : first+n] {
				r.refuse(t, "it was not run, since the work was interrupted")
			}
		}
		first += n
	}
	for _, t := range tasks {
		results = append(results, mcp.Content{Type: mcp.ContentToolResult, ToolResult: &t.result})
	}
	return results, err
}

func (r *run) task(use *mcp.ToolUse) *task {
	t := &task{use: *use, result: mcp.ToolResultContent{ToolUseID: use.ID}}
	if r.results.owns(use.Name) {
		return t
	}
	tool, mended := r.find(use.Name)
	switch {
	case tool == nil:
		t.refusal = fmt.Sprintf("there is no tool %s", use.Name)
		return t
	case mended:
		r.tell(Noticed{fmt.Sprintf("the model called %s, which is taken for %s", use.Name, tool.Name)})
	}
	t.tool, t.use.Name = tool, tool.Name
	return t
}

// alike reports whether the call may run beside others like it.
func (t *task) alike() bool { return t.tool == nil || EffectOf(t.tool) == ReadOnly }

// together runs calls at the same time, once they are approved.
func (r *run) together(tasks []*task) (err error) {
	for _, t := range tasks {
		if t.refusal == "" && t.tool != nil && err == nil {
			err = r.approve(t)
		}
	}
	happened, running := make(chan Event), 0
	for _, t := range tasks {
		switch {
		case err != nil:
			r.refuse(t, "it was not run, since the work was interrupted")
		case t.refusal != "":
			r.refuse(t, t.refusal)
		case t.tool == nil:
			t.result = r.results.read(t.use)
		default:
			r.tell(CallStarted{t.use, *t.tool})
			running++
			go r.call(t, happened)
		}
	}
	for running > 0 {
		e := <-happened
		if ended, ok := e.(CallEnded); ok {
			running--
			ended.Result = r.results.keep(ended.Result, r.opts.MaxResult)
			for _, t := range tasks {
				if t.use.ID == ended.ID {
					t.result = ended.Result
				}
			}
			e = ended
		}
		r.tell(e)
	}
	if err == nil && r.ctx.Err() != nil {
		err = r.ended()
	}
	return err
}

func (r *run) approve(t *task) error {
	if r.opts.Mode == ModeAsk && EffectOf(t.tool) != ReadOnly {
		r.become(Waiting)
		defer r.become(Acting)
	}
	refusal, err := r.approved(r.ctx, &t.use, t.tool)
	t.refusal = refusal
	return err
}

// refuse gives a call a result that says why it was not run.
func (r *run) refuse(t *task, why string) {
	t.result = mcp.ToolResultContent{ToolUseID: t.use.ID, Content: []mcp.Content{mcp.Text("This tool was not run: " + why + ".")}, IsError: true}
	r.tell(CallEnded{ID: t.use.ID, Result: t.result, Refusal: why})
}

// call runs a tool, and says what happens; what is said is always taken.
func (r *run) call(t *task, happened chan<- Event) {
	began := time.Now()
	res, err := r.tools.Call(r.ctx, t.use, func(p mcp.ProgressParams) { happened <- CallProgressed{t.use.ID, p} })
	if err != nil {
		res = &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(err.Error())}, IsError: true}
	}
	happened <- CallEnded{ID: t.use.ID, Result: resultOf(t.use.ID, res), Took: time.Since(began)}
}
