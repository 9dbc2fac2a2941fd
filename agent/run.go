package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/mcp"
)

// run is one task. All of it belongs to the goroutine that iterates.
type run struct {
	*Agent
	ctx    context.Context
	cancel context.CancelCauseFunc
	yield  func(Event, error) bool
	left   bool // nobody listens any more
	step   int
	usage  Usage
}

// errLeft is the cause of a run whose events nobody wants any more.
var errLeft = errors.New("nobody listens to the run any more")

func (r *run) tell(e Event) {
	if r.left || r.yield(e, nil) {
		return
	}
	r.left = true
	r.cancel(errLeft)
}

func (r *run) become(s State) { r.tell(StateChanged{s, r.step}) }

// start works until the task is done.
func (r *run) start(input []mcp.Content) {
	if len(input) > 0 {
		r.say(mcp.RoleUser, input...)
	}
	reason, err := r.work()
	switch {
	case r.left:
	case err != nil:
		r.become(Failed)
		if !r.left {
			r.yield(nil, err)
		}
	default:
		r.become(Finished)
		r.tell(Ended{reason, r.step, r.usage})
	}
}

// say adds to the conversation: to its last message, where that is of the same role.
func (r *run) say(role mcp.Role, content ...mcp.Content) {
	if n := len(r.messages); n > 0 && r.messages[n-1].Role == role {
		last := &r.messages[n-1]
		last.Content = slices.Concat(last.Content, content)
		return
	}
	r.messages = append(r.messages, Message{Role: role, Content: content})
}

func (r *run) work() (Reason, error) {
	for r.step = 1; r.step <= r.opts.MaxSteps; r.step++ {
		if err := r.list(); err != nil {
			return "", err
		}
		reply, err := r.think()
		if err != nil {
			return "", err
		}
		calls := reply.Calls()
		if len(calls) == 0 {
			return Answered, nil
		}
		results, err := r.act(calls)
		r.say(mcp.RoleUser, results...) // a call without a result is one that providers refuse
		if err != nil {
			return "", err
		}
		if note := r.repeats.notice(reply); note != "" {
			r.tell(Noticed{note})
			r.say(mcp.RoleUser, mcp.Text(note))
		}
	}
	r.step--
	return BudgetSpent, nil
}

// think has the model reply.
func (r *run) think() (*Message, error) {
	r.become(Thinking)
	var said string
	tools := append(slices.Clip(r.listed), r.results.tools()...)
	for delta, err := range r.model.Reply(r.ctx, Conversation{r.opts.System, slices.Clip(r.messages), tools}) {
		if err == nil && r.ctx.Err() != nil {
			err = r.ended()
		}
		if err != nil {
			r.keep(said)
			return nil, fmt.Errorf("the model has not replied: %w", err)
		}
		if delta.Reasoning != "" {
			r.tell(Thought{delta.Reasoning})
		}
		if delta.Text != "" {
			said += delta.Text
			r.tell(Said{delta.Text})
		}
		if delta.Message != nil {
			r.replied(delta.Message)
			return delta.Message, nil
		}
	}
	r.keep(said)
	return nil, errors.New("the model has not replied: its reply has no end")
}

// keep adds what the model has said of a reply that was cut off.
func (r *run) keep(said string) {
	if said != "" {
		r.say(mcp.RoleAssistant, mcp.Text(said))
	}
}

func (r *run) replied(m *Message) {
	m.Role = mcp.RoleAssistant
	r.messages = append(r.messages, *m)
	if u := m.Usage; u != nil {
		r.usage.Input += u.Input
		r.usage.Cached += u.Cached
		r.usage.Output += u.Output
	}
	r.tell(Replied{*m})
}

// ended is why the run has been ended from outside.
func (r *run) ended() error { return context.Cause(r.ctx) }
