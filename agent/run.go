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

// run is one call of [Agent.Run]. All of it belongs to the goroutine that iterates over the
// events.
type run struct {
	*Agent
	ctx       context.Context
	cancel    context.CancelCauseFunc
	yield     func(Event, error) bool
	abandoned bool // the caller has left the loop
	step      int
	usage     Usage
	estimated Usage // of replies without usage, for [Options.Budget]
	calls     sync.WaitGroup

	samples int // uses of the model that servers were allowed

	repeats      repeatDetector
	input        []mcp.Content // the user's input of this run
	inputIndex   int           // of the message that holds input
	isFirstInput bool          // the input begins the conversation

	background *inbox        // of open tasks
	waits      int           // for open tasks
	taskEnds   []mcp.Content // that the conversation does not have yet
	lostTask   error         // why an open task is not waited for any more
}

// errAbandoned is the cause of a run that ends because its caller has left the loop.
var errAbandoned = errors.New("nobody listens to the run any more")

// emit yields an event. If the caller leaves, it cancels the run.
func (r *run) emit(e Event) {
	if r.abandoned || r.yield(e, nil) {
		return
	}
	r.abandoned = true
	r.cancel(errAbandoned)
}

func (r *run) setState(s State) {
	r.emit(StateChanged{State: s, Step: r.step})
}

// runTask runs steps until the task is done, and yields the end of the run.
func (r *run) runTask(input []mcp.Content) {
	r.resources.retryList()
	r.skills.retryList()
	reason, err := Reason(""), r.takeInput(input)
	if err == nil {
		r.resumeTasks()
		reason, err = r.runSteps()
		r.keepTaskEnds()
	}
	r.addUsage(r.sampleUsage.takeUsage())
	switch {
	case r.abandoned:
	case err != nil:
		r.setState(Failed)
		if !r.abandoned {
			r.yield(nil, err)
		}
	default:
		r.setState(Finished)
		r.emit(Ended{Reason: reason, Steps: r.step, Usage: r.usage})
	}
}

// takeInput adds the user's input to the conversation. If an earlier run ended in a panic, calls
// without results get them first.
func (r *run) takeInput(input []mcp.Content) error {
	r.history.appendUserTurn(nil)
	last := len(r.history.messages) - 1
	input = withoutTaskMeta(input) // a prompt is of a server
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

// runSteps alternates replies of the model with calls of tools.
func (r *run) runSteps() (Reason, error) {
	for r.step = 1; r.step <= r.opts.Limits.MaxSteps; r.step++ {
		if err := r.checkBudget(); err != nil {
			return "", err
		}
		if err := r.announceChanges(); err != nil {
			return "", err
		}
		r.deliverTaskEnds()
		reply, err := r.replyOnce()
		if err != nil {
			return "", err
		}
		calls := reply.Calls()
		switch {
		case len(calls) == 0 && reply.Cut:
			return CutOff, nil
		case len(calls) == 0:
			if more, err := r.awaitTaskEnd(); err != nil || !more {
				return Answered, err
			}
			continue
		}
		results, err := r.runCalls(calls)
		r.history.appendContent(mcp.RoleUser, results...) // also after an error: providers refuse a call without a result
		if err != nil {
			return "", err
		}
		note, err := r.repeats.checkReply(reply, results)
		if err != nil {
			return "", err
		}
		if note != "" {
			r.emit(Delta{Notice: note})
			r.history.appendContent(mcp.RoleUser, mcp.Text(note))
		}
	}
	r.step--
	return BudgetSpent, nil
}

// checkBudget returns the error of [Options.Budget].
func (r *run) checkBudget() error {
	r.addUsage(r.sampleUsage.takeUsage())
	if r.opts.Budget == nil {
		return nil
	}
	u := r.usage
	u.accumulate(r.estimated)
	return r.opts.Budget(u)
}

// replyOnce returns the model's next reply. An empty reply is asked for a second time, because
// models that send one mostly do better then.
func (r *run) replyOnce() (*Message, error) {
	r.setState(Thinking)
	r.compactIfNeeded()
	reply, err := r.replyWithinWindow()
	if err == nil && reply.isBlank() && !reply.Cut {
		r.emit(Delta{Notice: "the model's reply was empty: it is asked again"})
		reply, err = r.replyWithinWindow()
	}
	switch {
	case err != nil:
		return nil, err
	case reply.Cut:
		r.emit(Delta{Notice: "the reply has reached the bound of its length, and was cut off"})
	case reply.isBlank():
		return nil, errors.New("the model has replied with nothing, twice: say it in another way, or try another model")
	}
	return reply, nil
}

// maxCompactions is how often a conversation is shortened after the provider has refused it.
const maxCompactions = 3

// replyWithinWindow requests a reply. If the conversation is too long for the model, it is
// shortened.
func (r *run) replyWithinWindow() (*Message, error) {
	reply, err := r.requestReply()
	for range maxCompactions {
		if !errors.Is(err, ErrContextLength) || r.opts.Limits.CompactAt < 0 || r.ctx.Err() != nil || !r.compactTo(r.reducedGoal()) {
			break
		}
		if last := len(r.history.messages) - 1; r.history.messages[last].Role == mcp.RoleAssistant {
			r.history.appendContent(mcp.RoleUser, mcp.Text("Your reply was cut off, since the conversation was too long. It has been made shorter: go on."))
		}
		reply, err = r.requestReply()
	}
	return reply, err
}

// requestReply requests a reply to the conversation and adds it.
func (r *run) requestReply() (*Message, error) {
	if r.ctx.Err() != nil {
		return nil, r.endCause()
	}
	var said strings.Builder
	estimate := r.estimateRequest()
	c := Conversation{System: r.systemPrompt(), Messages: slices.Clip(r.history.messages), Tools: slices.Clip(r.offeredTools())}
	m, err := r.streamReply(c, func(delta Delta) {
		if delta.Reasoning != "" {
			r.emit(Delta{Reasoning: delta.Reasoning})
		}
		if delta.Text != "" {
			said.WriteString(delta.Text)
			r.emit(Delta{Text: delta.Text})
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
	if m.Usage == nil {
		r.estimated.accumulate(Usage{Input: estimate, Output: estimateMessage(m)})
	}
	r.addReply(m, estimate)
	return m, nil
}

// streamReply makes one request, counts its tokens, and passes each delta to onDelta. The message
// is nil if the reply did not end.
func (r *run) streamReply(c Conversation, onDelta func(Delta)) (*Message, error) {
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
			r.emit(Delta{Notice: delta.Notice})
		}
		onDelta(delta)
		if delta.Message != nil {
			return delta.Message, nil
		}
	}
	return nil, nil
}

// keepPartial adds the text of a reply that was cut off by an error.
func (r *run) keepPartial(said string) {
	if strings.TrimSpace(said) != "" {
		r.history.appendContent(mcp.RoleAssistant, mcp.Text(said))
	}
}

// addReply adds a reply to the conversation, unless it is blank, and reports it.
func (r *run) addReply(m *Message, estimate int) {
	m.Role = mcp.RoleAssistant
	r.calibrate(estimate, m.Usage)
	if !m.isBlank() {
		r.history.appendMessage(*m)
		r.emit(Delta{Message: new(*m)})
	}
}

// countReply adds the tokens of a reply, if the provider has reported them.
func (r *run) countReply(u *Usage) {
	if u != nil {
		r.addUsage(*u)
	}
}

func (r *run) addUsage(u Usage) {
	r.usage.accumulate(u)
	r.spent.accumulate(u)
}

// endCause returns why ctx has ended.
func (r *run) endCause() error { return context.Cause(r.ctx) }
