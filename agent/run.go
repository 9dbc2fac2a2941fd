package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
)

// run is one task. All of it belongs to the goroutine that iterates.
type run struct {
	*Agent
	ctx       context.Context
	cancel    context.CancelCauseFunc
	yield     func(Event, error) bool
	abandoned bool // nobody listens any more
	step      int
	usage     Usage
	calls     sync.WaitGroup

	samples int // that servers were allowed to have

	repeats      repeatDetector
	input        []mcp.Content // what the user has said
	inputIndex   int           // the message that it is in
	isFirstInput bool          // it is the first that was ever said
}

// errAbandoned is the cause of a run whose events nobody wants any more.
var errAbandoned = errors.New("nobody listens to the run any more")

func (r *run) emit(e Event) {
	if r.abandoned || r.yield(e, nil) {
		return
	}
	r.abandoned = true
	r.cancel(errAbandoned)
}

func (r *run) setState(s State) {
	r.state.Store(s)
	r.emit(StateChanged{s, r.step})
}

// runTask works until the task is done.
func (r *run) runTask(input []mcp.Content) {
	reason, err := Reason(""), r.takeInput(input)
	if err == nil {
		reason, err = r.runSteps()
	}
	r.addUsage(r.sampleUsage.takeUsage())
	switch {
	case r.abandoned:
		r.state.Store(Failed)
	case err != nil:
		r.setState(Failed)
		if !r.abandoned {
			r.yield(nil, err)
		}
	default:
		r.setState(Finished)
		r.emit(Ended{reason, r.step, r.usage})
	}
}

// takeInput takes what the user says. Calls that have no results yet, since a caller of the agent's has panicked, get them before that.
func (r *run) takeInput(input []mcp.Content) error {
	r.history.appendUserTurn(nil)
	last := len(r.history.messages) - 1
	switch {
	case len(input) > 0:
		r.history.appendContent(mcp.RoleUser, input...)
	case last < 0:
		return errors.New("nothing has been said yet: say what is to be done")
	case r.history.messages[last].Role == mcp.RoleAssistant:
		r.history.appendContent(mcp.RoleUser, mcp.Text("Go on."))
	}
	r.input, r.inputIndex = input, len(r.history.messages)-1
	r.isFirstInput = r.inputIndex == 0
	return nil
}

func (r *run) runSteps() (Reason, error) {
	for r.step = 1; r.step <= r.opts.MaxSteps; r.step++ {
		if err := r.announceTools(); err != nil {
			return "", err
		}
		reply, err := r.replyOnce()
		if err != nil {
			return "", err
		}
		calls := reply.Calls()
		switch {
		case len(calls) == 0 && reply.Cut:
			return CutOff, nil
		case len(calls) == 0:
			return Answered, nil
		}
		results, err := r.runCalls(calls)
		r.history.appendContent(mcp.RoleUser, results...) // a call without a result is one that providers refuse
		if err != nil {
			return "", err
		}
		if note := r.repeats.checkReply(reply, results); note != "" {
			r.emit(Noticed{note})
			r.history.appendContent(mcp.RoleUser, mcp.Text(note))
		}
	}
	r.step--
	return BudgetSpent, nil
}

// replyOnce has the model reply. Where it replies with nothing, it is asked again, once: that happens, and is often not repeated.
func (r *run) replyOnce() (*Message, error) {
	r.setState(Thinking)
	r.compactIfNeeded()
	reply, err := r.replyWithinWindow()
	if err == nil && reply.isBlank() && !reply.Cut {
		r.emit(Noticed{"the model's reply was empty: it is asked again"})
		reply, err = r.replyWithinWindow()
	}
	switch {
	case err != nil:
		return nil, err
	case reply.Cut:
		r.emit(Noticed{"the reply has reached the bound of its length, and was cut off"})
	case reply.isBlank():
		return nil, errors.New("the model has replied with nothing, twice: say it in another way, or try another model")
	}
	return reply, nil
}

// maxCompactions is how often a conversation is made shorter that a provider refuses.
const maxCompactions = 3

// replyWithinWindow makes a request. Where the conversation has become too long for the model, it is made shorter.
func (r *run) replyWithinWindow() (*Message, error) {
	reply, err := r.requestReply()
	for range maxCompactions {
		if !errors.Is(err, ErrContextLength) || r.opts.CompactAt < 0 || r.ctx.Err() != nil || !r.compactTo(r.reducedGoal()) {
			break
		}
		if last := len(r.history.messages) - 1; r.history.messages[last].Role == mcp.RoleAssistant {
			r.history.appendContent(mcp.RoleUser, mcp.Text("Your reply was cut off, since the conversation was too long. It has been made shorter: go on."))
		}
		reply, err = r.requestReply()
	}
	return reply, err
}

// requestReply is one request and what comes of it.
func (r *run) requestReply() (*Message, error) {
	if r.ctx.Err() != nil {
		return nil, r.endCause()
	}
	var said strings.Builder
	estimate := r.estimateRequest()
	c := Conversation{System: r.systemPrompt(), Messages: slices.Clip(r.history.messages), Tools: slices.Clip(r.offeredTools())}
	m, err := r.streamReply(c, func(delta Delta) {
		if delta.Reasoning != "" {
			r.emit(Thought{delta.Reasoning})
		}
		if delta.Text != "" {
			said.WriteString(delta.Text)
			r.emit(Said{delta.Text})
		}
	})
	switch {
	case err != nil && said.Len() > 0:
		r.keepPartial(said.String())
		return nil, fmt.Errorf("the reply is not finished: %w", err)
	case err != nil:
		return nil, fmt.Errorf("the model has not replied: %w", err)
	case m == nil:
		r.keepPartial(said.String())
		return nil, errors.New("the model has not replied: its reply has no end")
	}
	r.addReply(m, estimate)
	return m, nil
}

// streamReply makes one request, and counts what it takes. heard gets each piece of the reply; the message is nil where it has no end.
func (r *run) streamReply(c Conversation, heard func(Delta)) (*Message, error) {
	for delta, err := range r.model.Reply(r.ctx, c) {
		if delta.Message != nil {
			r.countReply(delta.Message.Usage)
		}
		if err == nil && r.ctx.Err() != nil {
			err = r.endCause()
		}
		if err != nil {
			return nil, err
		}
		if delta.Notice != "" {
			r.emit(Noticed{delta.Notice})
		}
		heard(delta)
		if delta.Message != nil {
			return delta.Message, nil
		}
	}
	return nil, nil
}

// keepPartial adds what the model has said of a reply that was cut off.
func (r *run) keepPartial(said string) {
	if strings.TrimSpace(said) != "" {
		r.history.appendContent(mcp.RoleAssistant, mcp.Text(said))
	}
}

// addReply takes a reply. One that holds nothing is no part of the conversation.
func (r *run) addReply(m *Message, estimate int) {
	m.Role = mcp.RoleAssistant
	r.calibrate(estimate, m.Usage)
	if !m.isBlank() {
		r.history.appendMessage(*m)
		r.emit(Replied{*m})
	}
}

// countReply counts what a reply has taken.
func (r *run) countReply(u *Usage) {
	if u != nil {
		r.addUsage(*u)
	}
}

func (r *run) addUsage(u Usage) {
	r.usage.accumulate(u)
	r.spent.accumulate(u)
}

// endCause is why the run has been ended from outside.
func (r *run) endCause() error { return context.Cause(r.ctx) }
