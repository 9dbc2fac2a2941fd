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
	ctx    context.Context
	cancel context.CancelCauseFunc
	yield  func(Event, error) bool
	left   bool // nobody listens any more
	step   int
	usage  Usage
	calls  sync.WaitGroup

	samples int // that servers were allowed to have

	repeats repeats
	input   []mcp.Content // what the user has said
	inputAt int           // the message that it is in
	opening bool          // it is the first that was ever said
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

func (r *run) become(s State) {
	r.state.Store(s)
	r.tell(StateChanged{s, r.step})
}

// start works until the task is done.
func (r *run) start(input []mcp.Content) {
	reason, err := Reason(""), r.hear(input)
	if err == nil {
		reason, err = r.work()
	}
	r.count(r.sampled.take())
	switch {
	case r.left:
		r.state.Store(Failed)
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

// hear takes what the user says. Calls that have no results yet, since a caller of the agent's has panicked, get them before that.
func (r *run) hear(input []mcp.Content) error {
	r.said.turn(nil)
	last := len(r.said.messages) - 1
	switch {
	case len(input) > 0:
		r.said.say(mcp.RoleUser, input...)
	case last < 0:
		return errors.New("nothing has been said yet: say what is to be done")
	case r.said.messages[last].Role == mcp.RoleAssistant:
		r.said.say(mcp.RoleUser, mcp.Text("Go on."))
	}
	r.input, r.inputAt = input, len(r.said.messages)-1
	r.opening = r.inputAt == 0
	return nil
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
		switch {
		case len(calls) == 0 && reply.Cut:
			return CutOff, nil
		case len(calls) == 0:
			return Answered, nil
		}
		results, err := r.act(calls)
		r.said.say(mcp.RoleUser, results...) // a call without a result is one that providers refuse
		if err != nil {
			return "", err
		}
		if note := r.repeats.notice(reply, results); note != "" {
			r.tell(Noticed{note})
			r.said.say(mcp.RoleUser, mcp.Text(note))
		}
	}
	r.step--
	return BudgetSpent, nil
}

// think has the model reply. Where it replies with nothing, it is asked again, once: that happens, and is often not repeated.
func (r *run) think() (*Message, error) {
	r.become(Thinking)
	r.makeRoom()
	reply, err := r.ask()
	if err == nil && reply.blank() && !reply.Cut {
		r.tell(Noticed{"the model's reply was empty: it is asked again"})
		reply, err = r.ask()
	}
	switch {
	case err != nil:
		return nil, err
	case reply.Cut:
		r.tell(Noticed{"the reply has reached the bound of its length, and was cut off"})
	case reply.blank():
		return nil, errors.New("the model has replied with nothing, twice: say it in another way, or try another model")
	}
	return reply, nil
}

// maxShorter is how often a conversation is made shorter that a provider refuses.
const maxShorter = 3

// ask makes a request. Where the conversation has become too long for the model, it is made shorter.
func (r *run) ask() (*Message, error) {
	reply, err := r.reply()
	for range maxShorter {
		if !errors.Is(err, ErrContextLength) || r.opts.CompactAt < 0 || r.ctx.Err() != nil || !r.compact(r.tooLong()) {
			break
		}
		if last := len(r.said.messages) - 1; r.said.messages[last].Role == mcp.RoleAssistant {
			r.said.say(mcp.RoleUser, mcp.Text("Your reply was cut off, since the conversation was too long. It has been made shorter: go on."))
		}
		reply, err = r.reply()
	}
	return reply, err
}

// reply is one request and what comes of it.
func (r *run) reply() (*Message, error) {
	if r.ctx.Err() != nil {
		return nil, r.ended()
	}
	var said strings.Builder
	estimate := r.estimate()
	c := Conversation{System: r.system(), Messages: slices.Clip(r.said.messages), Tools: slices.Clip(r.definitions())}
	m, err := r.request(c, func(delta Delta) {
		if delta.Reasoning != "" {
			r.tell(Thought{delta.Reasoning})
		}
		if delta.Text != "" {
			said.WriteString(delta.Text)
			r.tell(Said{delta.Text})
		}
	})
	switch {
	case err != nil && said.Len() > 0:
		r.keep(said.String())
		return nil, fmt.Errorf("the reply is not finished: %w", err)
	case err != nil:
		return nil, fmt.Errorf("the model has not replied: %w", err)
	case m == nil:
		r.keep(said.String())
		return nil, errors.New("the model has not replied: its reply has no end")
	}
	r.replied(m, estimate)
	return m, nil
}

// request makes one request, and counts what it takes. heard gets each piece of the reply; the message is nil where it has no end.
func (r *run) request(c Conversation, heard func(Delta)) (*Message, error) {
	for delta, err := range r.model.Reply(r.ctx, c) {
		if delta.Message != nil {
			r.took(delta.Message.Usage)
		}
		if err == nil && r.ctx.Err() != nil {
			err = r.ended()
		}
		if err != nil {
			return nil, err
		}
		if delta.Notice != "" {
			r.tell(Noticed{delta.Notice})
		}
		heard(delta)
		if delta.Message != nil {
			return delta.Message, nil
		}
	}
	return nil, nil
}

// keep adds what the model has said of a reply that was cut off.
func (r *run) keep(said string) {
	if strings.TrimSpace(said) != "" {
		r.said.say(mcp.RoleAssistant, mcp.Text(said))
	}
}

// replied takes a reply. One that holds nothing is no part of the conversation.
func (r *run) replied(m *Message, estimate int) {
	m.Role = mcp.RoleAssistant
	r.measured(estimate, m.Usage)
	if !m.blank() {
		r.said.add(*m)
		r.tell(Replied{*m})
	}
}

// took counts what a reply has taken.
func (r *run) took(u *Usage) {
	if u != nil {
		r.count(*u)
	}
}

func (r *run) count(u Usage) {
	r.usage.add(u)
	r.spent.add(u)
}

// ended is why the run has been ended from outside.
func (r *run) ended() error { return context.Cause(r.ctx) }
