package openai

import (
	"bytes"
	"context"
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

// reply puts a message together from the chunks of a stream.
type reply struct {
	model    *model
	text     strings.Builder
	thoughts thoughts
	calls    callAssembler
	prompt   *promptReader // finds calls in the text; nil if the server sends calls itself
	usage    *agent.Usage
	finish   string // the reason for the end; "" before it
}

func (m *model) newReply(tools []mcp.Tool) *reply {
	r := &reply{model: m}
	for i := range tools {
		r.calls.tools = append(r.calls.tools, tools[i].Name)
	}
	if m.opts.ToolsInPrompt {
		r.prompt = newPromptReader(tools)
	}
	return r
}

// errListenerLeft ends a reply after the caller has left its loop.
var errListenerLeft = errors.New("the listener has left")

// readStream reads the stream to its end and yields the deltas. It returns errListenerLeft if yield
// returned false.
func (r *reply) readStream(ctx context.Context, s *modelhttp.Stream, yield func(agent.Delta, error) bool) error {
	hasChoices := false
	for {
		c, err := readChunk(s)
		if errors.Is(err, io.EOF) && !hasChoices {
			err = s.EmptyError()
		}
		if errors.Is(err, io.EOF) {
			return yieldAll(r.endText(), yield)
		}
		if err != nil {
			return r.model.explain(ctx, r.textLength(), err)
		}
		hasChoices = hasChoices || len(c.Choices) > 0
		if err := yieldAll(r.addChunk(c), yield); err != nil {
			return err
		}
	}
}

// readChunk returns io.EOF at the end of the reply, and the server's error if the stream has one.
func readChunk(s *modelhttp.Stream) (c chunk, err error) {
	event, err := s.Next()
	if err != nil {
		return c, err
	}
	if bytes.HasPrefix(event.Data, []byte("[DONE]")) {
		return c, io.EOF
	}
	if err := s.Decode(event.Data, &c); err != nil {
		return c, err
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return c, s.ReadError(event.Data)
	}
	return c, nil
}

func yieldAll(deltas []agent.Delta, yield func(agent.Delta, error) bool) error {
	for _, d := range deltas {
		if !yield(d, nil) {
			return errListenerLeft
		}
	}
	return nil
}

// addChunk adds a chunk to the reply, and returns the deltas to show.
func (r *reply) addChunk(c chunk) (deltas []agent.Delta) {
	if c.Usage != nil {
		r.usage = c.Usage.toUsage()
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.FinishReason != "" {
			r.finish = choice.FinishReason
		}
		d := choice.Delta
		if thought := r.thoughts.addDelta(d.ReasoningContent, d.Reasoning); thought != "" {
			deltas = append(deltas, agent.Delta{Reasoning: thought})
		}
		deltas = r.addText(deltas, d.Content+d.Refusal)
		for _, f := range d.ToolCalls {
			r.calls.addFragment(f)
		}
	}
	return deltas
}

func (r *reply) addText(deltas []agent.Delta, text string) []agent.Delta {
	if r.prompt != nil {
		text = r.prompt.readPiece(text)
	}
	r.text.WriteString(text)
	if text == "" {
		return deltas
	}
	return append(deltas, agent.Delta{Text: text})
}

// endText returns the text that was held back until the end of the stream.
func (r *reply) endText() (deltas []agent.Delta) {
	if r.prompt == nil {
		return nil
	}
	text := r.prompt.readRest()
	if text == "" {
		return nil
	}
	r.text.WriteString(text)
	return []agent.Delta{{Text: text}}
}

func (u *usage) toUsage() *agent.Usage {
	count := &agent.Usage{Input: u.PromptTokens, Output: u.CompletionTokens}
	for _, cached := range []int{u.PromptTokensDetails.CachedTokens, u.PromptCacheHitTokens, u.CachedTokens} {
		if count.Cached == 0 {
			count.Cached = cached
		}
	}
	return count
}

// lengthReasons are the reasons for an end at the limit of the length. The second is Mistral's, for
// the end of the window.
var lengthReasons = []string{"length", "model_length"}

// isCut reports whether the reply has reached the limit of its length.
func (r *reply) isCut() bool { return slices.Contains(lengthReasons, r.finish) }

func (r *reply) textLength() int { return utf8.RuneCountInString(r.text.String()) }

// finalMessage returns the complete message once the stream has ended.
func (r *reply) finalMessage() (*agent.Message, error) {
	uses := r.calls.toolUses(r.isCut())
	if r.prompt != nil {
		uses = append(uses, r.prompt.toolUses(r.isCut())...)
	}
	switch {
	case r.finish == "":
		return nil, r.model.client.BrokenOff(io.ErrUnexpectedEOF, r.textLength())
	case r.finish == "content_filter" && r.text.Len() == 0 && len(uses) == 0:
		return nil, fmt.Errorf("the filter of %s held the reply back: say it in another way", r.model.place())
	}
	r.thoughts.Calls = r.calls.extraContent(uses)
	msg := &agent.Message{Role: mcp.RoleAssistant, Reasoning: r.thoughts.encodeFor(r.model.place()), Usage: r.usage, Cut: r.isCut()}
	if r.text.Len() > 0 {
		msg.Content = append(msg.Content, mcp.Text(r.text.String()))
	}
	for i := range uses {
		msg.Content = append(msg.Content, mcp.Content{Type: mcp.ContentToolUse, ToolUse: &uses[i]})
	}
	return msg, nil
}

// filterNotice returns what the user should know of the reply beyond its message; "" for nothing.
func (r *reply) filterNotice() string {
	if r.finish == "content_filter" {
		return "the reply was cut off by the server's filter"
	}
	return ""
}
