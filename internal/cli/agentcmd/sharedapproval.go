package agentcmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
)

// ConsoleName is how the console is named as the place of a decision.
const ConsoleName = "the console"

// errDecidedElsewhere is the cause of the context of a question that was answered in the console.
var errDecidedElsewhere = errors.New("answered in " + ConsoleName)

// Times of a shared approval: between two attempts to find a running dowel, the limit for telling
// it about an answer, and the time that an earlier answer of the console may take to arrive.
const (
	sharedInterval = 2 * time.Second
	sharedTimeout  = 2 * time.Second
	answerDelay    = time.Second
)

// NewApproval returns a question for the console of a running dowel. session is the ID of a saved
// conversation, or "".
func NewApproval(program, session string, q agent.Question) control.Approval {
	a := control.Approval{Program: program, Session: session, Server: q.Server}
	if p := q.Sampling; p != nil {
		a.Message = describeSampling(p)
		return a
	}
	a.Tool, a.Effect, a.Arguments = toolname.Display(q.Call.Name), string(q.Effect), string(q.Call.Input)
	if q.Before != nil {
		a.Changes = DescribeToolChange(q.Before, &q.Tool)
	}
	return a
}

// describeSampling returns all that the model gets from a server: the system prompt, the messages,
// and the tools that it may call.
func describeSampling(p *mcp.CreateMessageParams) string {
	var b strings.Builder
	if p.SystemPrompt != "" {
		fmt.Fprintf(&b, "system: %s\n", p.SystemPrompt)
	}
	for _, m := range p.Messages {
		for _, block := range m.Content {
			text := block.String()
			if r := block.ToolResult; r != nil {
				for _, part := range r.Content {
					text += "\n" + part.String()
				}
				text += "\n" + string(r.StructuredContent)
			}
			fmt.Fprintf(&b, "%s: %s\n", m.Role, text)
		}
	}
	for _, t := range p.Tools {
		fmt.Fprintf(&b, "tool: %s: %s\n", t.Name, t.Description)
	}
	return b.String()
}

// AskShared asks the user with ask on the terminal and, while a dowel runs, in its console. The
// first answer counts. If it came from the console, isElsewhere is true, and the context of ask has
// ended. Without a running dowel, or when it ends, the terminal alone asks; a dowel that starts
// meanwhile asks, too.
func AskShared(ctx context.Context, running *control.Client, a control.Approval, ask func(context.Context) (agent.Decision, error)) (d agent.Decision, isElsewhere bool, err error) {
	a.Key = rand.Text()
	s := sharedApproval{running, a, make(chan control.AskAnswer, 1)}
	local, stop := context.WithCancelCause(ctx)
	var offering sync.WaitGroup
	offering.Go(func() { s.offer(local, stop) })
	defer offering.Wait()
	defer stop(nil)
	d, err = ask(local)
	if answer, ok := s.findAnswer(d, err); ok {
		return DecisionOf(answer), true, nil
	}
	return d, false, err
}

// sharedApproval is a question on the terminal and in the console.
type sharedApproval struct {
	running *control.Client
	control.Approval
	answer chan control.AskAnswer // of the console
}

// offer asks in the console until ctx ends or an answer is there, which calls stop.
func (s *sharedApproval) offer(ctx context.Context, stop context.CancelCauseFunc) {
	for ctx.Err() == nil {
		answer, err := s.running.AskApproval(ctx, s.Approval)
		if err == nil {
			s.answer <- answer
			stop(errDecidedElsewhere)
			return
		}
		select { // no dowel runs, or it has ended
		case <-time.After(sharedInterval):
		case <-ctx.Done():
		}
	}
}

// findAnswer returns the answer of the console if it came before the answer of the terminal.
// Otherwise it closes the question in the console.
func (s *sharedApproval) findAnswer(d agent.Decision, err error) (answer control.AskAnswer, ok bool) {
	select {
	case answer = <-s.answer:
		return answer, true
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTimeout)
	defer cancel()
	action := mcp.ElicitDecline
	switch {
	case err != nil:
		action = mcp.ElicitCancel
	case d.Allow:
		action = mcp.ElicitAccept
	}
	if wasOpen, err := s.running.CloseApproval(ctx, s.Key, action); err != nil || wasOpen {
		return answer, false // no dowel runs, or this is the first answer
	}
	select {
	case answer = <-s.answer:
		return answer, true
	case <-time.After(answerDelay): // the question was not open there
		return answer, false
	}
}

// DecisionOf returns the decision of an answer in the console.
func DecisionOf(answer control.AskAnswer) agent.Decision {
	d := agent.Decision{Allow: answer.Action == mcp.ElicitAccept, Reason: answer.Reason}
	if d.Allow {
		d.Reason = ""
		switch answer.Scope {
		case control.ScopeTool:
			d.For = agent.ThisTool
		case control.ScopeServer:
			d.For = agent.ThisServer
		}
	}
	return d
}

// DescribeDecision says in words what was decided in the console.
func DescribeDecision(d agent.Decision) string {
	switch {
	case !d.Allow && d.Reason != "":
		return "refused in " + ConsoleName + ": " + d.Reason
	case !d.Allow:
		return "refused in " + ConsoleName
	case d.For == agent.ThisTool:
		return "allowed in " + ConsoleName + ", for the session"
	case d.For == agent.ThisServer:
		return "allowed in " + ConsoleName + ", with all tools of its server for the session"
	}
	return "allowed in " + ConsoleName
}
