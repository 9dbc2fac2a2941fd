package anthropic

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxPauses bounds how often a reply that the API has paused is taken up again.
const maxPauses = 10

// reply is one reply on its way.
type reply struct {
	*Model
	ctx   context.Context
	yield func(agent.Delta, error) bool
	began bool // something has been said
	left  bool // nobody listens any more
	said  int  // characters
	watch *modelhttp.Watch

	content []mcp.Content
	kept    []kept
	usage   agent.Usage
	cut     bool // it has reached the bound of its length
}

func (r *reply) run(c agent.Conversation) {
	err := r.ask(c)
	for r.mend(err, c) {
		err = r.ask(c)
	}
	r.notice()
	switch {
	case r.left:
	case err != nil:
		r.yield(agent.Delta{}, err)
	default:
		r.yield(agent.Delta{Message: r.message()}, nil)
	}
}

// notice tells what is to be noticed of the request.
func (r *reply) notice() {
	for _, text := range r.untold() {
		if r.left = r.left || !r.yield(agent.Delta{Notice: text}, nil); r.left {
			return
		}
	}
}

func (r *reply) message() *agent.Message {
	return &agent.Message{Role: mcp.RoleAssistant, Content: r.content, Reasoning: r.reasoning(r.kept), Usage: &r.usage, Cut: r.cut}
}

// mend reports whether the request can be made again, since what the API had against it has been changed.
func (r *reply) mend(err error, c agent.Conversation) bool {
	if err == nil || r.began || r.left {
		return false
	}
	switch why := refusal(err); {
	case strings.Contains(why, "thinking.type") && r.opts.Thinking > 0 && r.adaptive.CompareAndSwap(false, true):
		r.warn(r.opts.Model + " takes no budget for its thoughts, and is left to decide how much it thinks")
		return true
	case strings.Contains(why, "thinking` block") || strings.Contains(why, "thinking.signature") || strings.Contains(why, "`redacted_thinking` blocks"):
		if r.forget(c.Messages) {
			r.warn("what the model has thought so far is not accepted any more, and left out: " + why)
			return true
		}
	}
	return false
}

// ask makes the request, and goes on with the reply as long as the API pauses it.
func (r *reply) ask(c agent.Conversation) error {
	request := r.request(c)
	said := request.Messages
	for range maxPauses {
		stop, err := r.stream(request)
		if err != nil || r.left {
			return err
		}
		if stop.StopReason != sdk.StopReasonPauseTurn {
			return r.stopped(stop)
		}
		so := turns{Model: r.Model, seen: map[string]bool{}}
		so.add(sdk.MessageParamRoleAssistant, so.assistant(*r.message()))
		request.Messages = append(said[:len(said):len(said)], so.all...)
	}
	return errors.New("the model has paused its reply too often: ask for less at a time")
}

// stream reads one answer.
func (r *reply) stream(request sdk.MessageNewParams) (msg sdk.Message, err error) {
	s := r.messages.NewStreaming(r.ctx, request, option.WithMiddleware(r.watch.Do))
	defer s.Close()
	began, ended, notJSON := false, false, map[int64]json.RawMessage{}
	for !ended && s.Next() {
		event := s.Current()
		began = began || event.Type == "message_start"
		if i := event.Index; event.Type == "content_block_stop" && i >= 0 && i < int64(len(msg.Content)) {
			if input := msg.Content[i].Input; len(input) > 0 && !json.Valid(input) {
				notJSON[i] = input
			}
		}
		if err := msg.Accumulate(event); err != nil {
			return msg, &failure{fmt.Sprintf("the answer of %s is not as the Messages API has it: %s", r.place(), advice), err}
		}
		if !r.tell(event) {
			return msg, nil
		}
		if event.Type == "content_block_start" {
			begin(&msg)
		}
		ended = event.Type == "message_stop"
	}
	switch {
	case r.ctx.Err() != nil && !ended:
		return msg, context.Cause(r.ctx)
	case s.Err() != nil && !ended:
		return msg, r.explain(s.Err())
	case !ended && !began:
		return msg, r.explain(r.watch.Empty())
	case !ended:
		return msg, r.explain(io.ErrUnexpectedEOF)
	}
	r.take(msg, notJSON)
	return msg, nil
}

// tell passes on what is said.
func (r *reply) tell(event sdk.MessageStreamEventUnion) bool {
	d := agent.Delta{}
	switch event.Type + " " + event.Delta.Type {
	case "content_block_delta text_delta":
		d.Text = event.Delta.Text
	case "content_block_delta thinking_delta":
		d.Reasoning = event.Delta.Thinking
	case "content_block_start ":
		d.Text, d.Reasoning = event.ContentBlock.Text, event.ContentBlock.Thinking // empty, but for servers that send a block at once
	}
	if d.Text == "" && d.Reasoning == "" {
		return true
	}
	r.began = true
	r.said += utf8.RuneCountInString(d.Text)
	r.left = !r.yield(d, nil)
	return !r.left
}

// id is that of a call, or one that is made where there is none, or another call of the reply has it.
func (r *reply) id(own string) string {
	if own == "" || slices.ContainsFunc(r.content, func(c mcp.Content) bool { return c.ToolUse != nil && c.ToolUse.ID == own }) {
		return "call_" + rand.Text()
	}
	return own
}

// begin makes the last block of a message ready for its pieces: what stands in the place of an empty input, as servers exist that
// send null or an empty string, would come before them.
func begin(msg *sdk.Message) {
	block := &msg.Content[len(msg.Content)-1]
	if input := string(block.Input); block.Type == "tool_use" && (input == "null" || input == `""`) {
		block.Input = json.RawMessage("{}")
	}
}

// take adds an answer to the reply. A call that ends one that was cut off is left out, as its input may not be whole: what is
// missing of it does not always show.
func (r *reply) take(msg sdk.Message, notJSON map[int64]json.RawMessage) {
	r.cut = msg.StopReason == sdk.StopReasonMaxTokens
	for i, block := range msg.Content {
		switch block.Type {
		case "text":
			if block.Text != "" {
				r.content = append(r.content, mcp.Text(block.Text))
			}
		case "tool_use":
			if r.cut && i == len(msg.Content)-1 {
				continue
			}
			input := object(block.Input)
			if bad := notJSON[int64(i)]; bad != nil {
				input, _ = json.Marshal(string(bad)) // a string always can be
			}
			r.content = append(r.content, mcp.UseTool(r.id(block.ID), cmp.Or(block.Name, "unknown"), input))
		default:
			r.kept = append(r.kept, kept{len(r.content), json.RawMessage(block.RawJSON())})
		}
	}
	u := msg.Usage
	r.usage.Input += int(u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens)
	r.usage.Cached += int(u.CacheReadInputTokens)
	r.usage.Output += int(u.OutputTokens)
}
