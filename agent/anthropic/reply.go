package anthropic

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/modelhttp"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxPauses bounds how often a reply that the API has paused is continued.
const maxPauses = 10

// reply is one reply in progress. It takes more than one request if the API pauses it, or if the
// first request is changed after an error.
type reply struct {
	*model
	ctx        context.Context
	yield      func(agent.Delta, error) bool
	started    bool // text or thoughts have been yielded
	left       bool // the listener has left: yield must not be called again
	notified   bool // the user knows that a request is sent again
	characters int  // of the text so far

	content  []mcp.Content
	returned []returnedBlock
	usage    agent.Usage
	cut      bool // the reply has reached the limit of its length
}

func (r *reply) streamReply(c agent.Conversation) {
	err := r.requestReply(c)
	for r.adaptTo(err, c) {
		err = r.requestReply(c)
	}
	r.yieldNotices()
	switch {
	case r.left:
	case err != nil:
		r.yield(agent.Delta{}, err)
	default:
		r.yield(agent.Delta{Message: r.currentMessage()}, nil)
	}
}

// yieldDelta yields d and reports whether the listener is still there.
func (r *reply) yieldDelta(d agent.Delta) bool {
	r.left = r.left || !r.yield(d, nil)
	return !r.left
}

// yieldNotices yields the notices of [model.warnOnce].
func (r *reply) yieldNotices() {
	for _, text := range r.takeNotices() {
		if !r.yieldDelta(agent.Delta{Notice: text}) {
			return
		}
	}
}

// tellRetry tells the user, once a reply, that a request is sent again. It reports whether the
// listener is still there.
func (r *reply) tellRetry(text string) bool {
	if r.notified {
		return true
	}
	r.notified = true
	if r.opts.Warn != nil {
		r.opts.Warn(text)
		return true
	}
	return r.yieldDelta(agent.Delta{Notice: text})
}

func (r *reply) currentMessage() *agent.Message {
	return &agent.Message{Role: mcp.RoleAssistant, Content: r.content, Reasoning: r.encodeReasoning(r.returned), Usage: &r.usage, Cut: r.cut}
}

// adaptTo reports whether the request should be made again, because the cause of err has been
// removed: a thinking budget that the model does not take, or thoughts that it does not accept.
func (r *reply) adaptTo(err error, c agent.Conversation) bool {
	var refused *Error
	if r.started || r.left || !errors.As(err, &refused) {
		return false
	}
	switch why := refused.Message; {
	case strings.Contains(why, "thinking.type") && r.opts.Thinking > 0 && r.adaptive.CompareAndSwap(false, true):
		r.warnOnce(r.opts.Model + " takes no budget for its thoughts, and is left to decide how much it thinks")
		return true
	case strings.Contains(why, "thinking` block") || strings.Contains(why, "thinking.signature") || strings.Contains(why, "`redacted_thinking` blocks"):
		if r.forgetThoughts(c.Messages) {
			r.warnOnce("what the model has thought so far is not accepted any more, and left out: " + why)
			return true
		}
	}
	return false
}

// requestReply asks for the reply, and continues it as long as the API pauses it.
func (r *reply) requestReply(c agent.Conversation) error {
	request := r.messagesRequest(c)
	turns := request.Messages
	for range maxPauses {
		msg, err := r.streamAnswer(request)
		if err != nil || r.left {
			return err
		}
		if msg.stopReason != "pause_turn" {
			return explainStop(msg.stopReason, msg.explanation)
		}
		w := turnWriter{model: r.model, sentIDs: map[string]bool{}}
		w.addTurn(roleAssistant, w.assistantBlocks(*r.currentMessage()))
		request.Messages = append(turns[:len(turns):len(turns)], w.turns...)
	}
	return errors.New("the model has paused its reply too often: ask for less at a time")
}

// streamAnswer sends one request, yields the deltas of its answer, and adds the answer to the
// reply.
func (r *reply) streamAnswer(request *messagesRequest) (msg streamedMessage, err error) {
	s, err := r.client.Post(r.ctx, encodeJSON(request), r.tellRetry)
	if errors.Is(err, modelhttp.ErrStopped) {
		return msg, nil
	}
	if err != nil {
		return msg, r.explain(r.ctx, r.characters, err)
	}
	defer s.Close()
	for started := false; ; {
		e, err := nextEvent(s)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // a reply ends with message_stop
			if !started {
				err = s.EmptyError()
			}
		}
		if err != nil {
			return msg, r.explain(r.ctx, r.characters, err)
		}
		started = started || e.Type == "message_start"
		if err := msg.addEvent(e); err != nil {
			return msg, fmt.Errorf("the answer of %s is not as the Messages API has it: %s: %w", r.place(), advice, err)
		}
		if !r.yieldEvent(e, &msg) {
			return msg, nil
		}
		if e.Type == "message_stop" {
			r.addMessage(&msg)
			return msg, nil
		}
	}
}

// nextEvent returns the next event of a reply. It skips events without a name, which other APIs
// send. If the server sends an error as an event, nextEvent returns that error.
func nextEvent(s *modelhttp.Stream) (*streamEvent, error) {
	for {
		event, err := s.Next()
		if err != nil {
			return nil, err
		}
		switch event.Name {
		case "", "ping":
			continue
		case "error":
			return nil, s.ReadError(event.Data)
		}
		e := new(streamEvent)
		return e, s.Decode(event.Data, e)
	}
}

// yieldEvent yields the text and the thoughts of an event. It reports whether the caller continues
// to read.
func (r *reply) yieldEvent(e *streamEvent, msg *streamedMessage) bool {
	var d agent.Delta
	switch e.Type {
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			d.Text = e.Delta.Text
		case "thinking_delta":
			d.Reasoning = e.Delta.Thinking
		}
	case "content_block_start": // its block is empty, except from servers that send a block at once
		b := msg.blocks[len(msg.blocks)-1]
		d.Text, d.Reasoning = b.text.String(), b.thinking.String()
	}
	if d.Text == "" && d.Reasoning == "" {
		return true
	}
	r.started = true
	r.characters += utf8.RuneCountInString(d.Text)
	return r.yieldDelta(d)
}

// addMessage adds an answer to the reply. If the answer was cut off, a call at its end is left out:
// its input may be incomplete even if it is an object.
func (r *reply) addMessage(msg *streamedMessage) {
	r.cut = msg.stopReason == "max_tokens"
	for i, b := range msg.blocks {
		switch b.kind {
		case "text":
			if b.text.Len() > 0 {
				r.content = append(r.content, mcp.Text(b.text.String()))
			}
		case "tool_use":
			if r.cut && i == len(msg.blocks)-1 {
				continue
			}
			r.content = append(r.content, mcp.UseTool(r.uniqueCallID(b.id), cmp.Or(b.name, "unknown"), b.callInput()))
		default:
			r.returned = append(r.returned, returnedBlock{len(r.content), b.encodeBlock()})
		}
	}
	u := msg.usage
	r.usage.Input += u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens
	r.usage.Cached += u.CacheReadInputTokens
	r.usage.Output += u.OutputTokens
}

// uniqueCallID returns id, or a new one if it is empty or another call of the reply has it.
func (r *reply) uniqueCallID(id string) string {
	if id == "" || slices.ContainsFunc(r.content, func(c mcp.Content) bool { return c.ToolUse != nil && c.ToolUse.ID == id }) {
		return "call_" + rand.Text()
	}
	return id
}
