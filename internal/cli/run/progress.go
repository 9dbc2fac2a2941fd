package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/control"
)

// taskProgress collects the state of a run from its events.
type taskProgress struct {
	startTime       time.Time
	mode            agent.Mode
	step            int
	partialReply    strings.Builder // text of the current reply so far
	answer          string          // the last reply
	ended           *agent.Ended
	usage           agent.Usage     // of the agent's runs that have ended
	current         agent.Usage     // of the run that has not
	value           json.RawMessage // the answer, if it must match a schema
	missingApproval *errApproval

	references    []agentcmd.Reference     // resources in the task
	trustArgument func(tool string) string // see [agentcmd.Runtime.Trusted]
	argumentOf    func(tool string) string // see [agentcmd.Runtime.ToolArgument]
	changeOf      func(tool string) (change *control.Changed, wasAllowed bool)
}

func (p *taskProgress) recordEvent(e agent.Event) {
	switch e := e.(type) {
	case agent.StateChanged:
		if p.step = e.Step; e.State == agent.Thinking {
			p.partialReply.Reset()
		}
	case agent.Delta:
		p.partialReply.WriteString(e.Text)
		if e.Message != nil {
			p.recordReply(e.Message)
		}
	case agent.Approval:
		if !e.Allowed && e.Call.Name != "" && p.missingApproval == nil && p.mode != agent.ModeAsk {
			p.missingApproval = &errApproval{tool: e.Call.Name, server: e.Server, effect: e.Effect, mode: p.mode, trust: p.trustArgument(e.Call.Name), argument: p.argumentOf(e.Call.Name)}
			if change, wasAllowed := p.changeOf(e.Call.Name); wasAllowed && p.mode != agent.ModeNone {
				p.missingApproval.change = change
			}
		}
	case agent.Ended:
		p.ended = &e
		p.current = e.Usage
	}
}

// endRun prepares for another run of the agent. It returns the tokens of this one.
func (p *taskProgress) endRun() (ended agent.Usage) {
	ended = p.current
	p.usage, p.current = addUsage(p.usage, ended), agent.Usage{}
	return ended
}

func (p *taskProgress) recordReply(m *agent.Message) {
	p.partialReply.Reset()
	p.answer = m.Text()
	if u := m.Usage; u != nil {
		p.current = addUsage(p.current, *u)
	}
}

// answerText returns the answer. If the run ended in the middle of a reply, it returns that part.
func (p *taskProgress) answerText() string {
	return cmp.Or(strings.TrimSpace(p.partialReply.String()), p.answer)
}

// taskError returns the error of the task, which decides the exit code. err is the run's error.
func (p *taskProgress) taskError(ctx context.Context, err error) error {
	var interrupted *exit.Interruption
	var timeout errTime
	switch {
	case p.missingApproval != nil:
		return *p.missingApproval
	case err != nil && errors.As(context.Cause(ctx), &timeout):
		return timeout
	case errors.As(err, &interrupted), errors.As(context.Cause(ctx), &interrupted) && err != nil:
		return fmt.Errorf("the task was interrupted: %w", interrupted)
	case err != nil && errors.Is(context.Cause(ctx), exit.ErrReaderGone):
		return exit.ErrReaderGone
	case errors.As(err, new(errSpent)):
		return err
	case err != nil:
		return errTask{err}
	case p.ended != nil && p.ended.Reason == agent.BudgetSpent:
		return errBudget{p.ended.Steps}
	case p.ended != nil && p.ended.Reason == agent.CutOff:
		return errCut{}
	}
	return nil
}
