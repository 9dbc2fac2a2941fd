package run

import (
	"context"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// A task is what dowel run carries out: once, or again at each change of a resource.
type task struct {
	*factory.Factory
	runtime  *agentcmd.Runtime
	opts     *Options
	input    taskInput
	budget   *budget
	schema   *answerSchema // nil: any answer will do
	asker    *approver     // nil: the user is not asked
	sessions *sessionWriter
	results  string // folder of long results that are not stored; "" for none
}

// runOnce runs the task and shows its events. A call that needs an approval ends the run unless
// t.asker asks the user. If the answer does not match the schema, the model corrects it once.
func (t *task) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if limit := t.opts.maxTime; limit > 0 {
		timer := time.AfterFunc(limit, func() { cancel(errTime{limit}) })
		defer timer.Stop()
	}
	p := &taskProgress{startTime: time.Now(), mode: t.runtime.Mode, argumentOf: t.runtime.ToolArgument, trustArgument: t.runtime.Trusted, changeOf: t.runtime.Change, references: t.input.references}
	view := t.newViewer(ctx, p)
	err := t.converse(ctx, cancel, p, view, t.input.content)
	if err == nil && t.schema != nil {
		if correction := t.schema.correction(p.answerText()); correction != "" {
			view.showEvent(agent.Delta{Notice: "the answer does not match the schema: the model corrects it"})
			err = t.converse(ctx, cancel, p, view, []mcp.Content{mcp.Text(correction)})
		}
		if err == nil {
			p.value, err = t.schema.value(p.answerText())
		}
	}
	view.showEnd(err)
	return err
}

// converse runs the agent with input until its answer.
func (t *task) converse(ctx context.Context, cancel context.CancelCauseFunc, p *taskProgress, view viewer, input []mcp.Content) (err error) {
	t.sessions.UseServers(sessionlog.Servers{Origin: t.runtime.Toolbox.Origin, Private: t.runtime.HasOwnServers}, t.runtime.Agent.Messages())
	t.sessions.BeginRun(input, t.runtime.Model)
	for e, failed := range t.runtime.Run(ctx, input...) {
		if failed != nil {
			err = failed
			break
		}
		p.recordEvent(e)
		t.sessions.Event(e)
		view.showEvent(e)
		if p.missingApproval != nil {
			cancel(*p.missingApproval) // also stops other calls of the same reply
		}
	}
	t.sessions.EndRun(t.runtime.Agent.Messages())
	t.budget.endRun(p.endRun())
	return p.taskError(ctx, err)
}

// viewer shows a run to a person or a program.
type viewer interface {
	showEvent(e agent.Event)
	showEnd(err error)
}

func (t *task) newViewer(ctx context.Context, p *taskProgress) viewer {
	if t.JSON {
		return newJSONViewer(ctx, t.Factory, t.runtime, p, t.sessions.ID())
	}
	v := newLineViewer(t.Factory, p, t.schema != nil)
	if paths := t.runtime.InstructionPaths(); len(paths) > 0 {
		v.renderer.Note("instructions for the model: %s", term.Line(strings.Join(paths, ", ")))
	}
	if t.asker != nil {
		t.asker.runtime, t.asker.renderer = t.runtime, v.renderer
	}
	return v
}
