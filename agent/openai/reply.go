package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
)

// reply puts a message together from the pieces of a stream.
type reply struct {
	model    *Model
	text     strings.Builder
	thoughts thoughts
	calls    calls
	prompt   *promptReader // where calls stand in the text
	usage    *agent.Usage
	finish   string
}

// stops by length: the second is Mistral's, for the window.
var lengths = []string{"length", "model_length"}

// cut reports whether the reply has reached the bound of its length.
func (r *reply) cut() bool { return slices.Contains(lengths, r.finish) }

func (m *Model) reply(tools []mcp.Tool) *reply {
	r := &reply{model: m}
	for i := range tools {
		r.calls.tools = append(r.calls.tools, tools[i].Name)
	}
	if m.opts.ToolsInPrompt {
		r.prompt = newPromptReader(tools)
	}
	return r
}

// take reads a piece, and returns what of it is to be shown.
func (r *reply) take(chunk sdk.ChatCompletionChunk) (deltas []agent.Delta) {
	if chunk.JSON.Usage.Valid() {
		r.usage = usage(chunk.Usage)
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.FinishReason != "" {
			r.finish = choice.FinishReason
		}
		d := choice.Delta
		if thought := r.thoughts.add(extra(d.JSON.ExtraFields, "reasoning_content"), extra(d.JSON.ExtraFields, "reasoning")); thought != "" {
			deltas = append(deltas, agent.Delta{Reasoning: thought})
		}
		deltas = r.say(deltas, d.Content+d.Refusal)
		for _, call := range d.ToolCalls {
			r.calls.add(call)
		}
	}
	return deltas
}

func (r *reply) say(deltas []agent.Delta, text string) []agent.Delta {
	if r.prompt != nil {
		text = r.prompt.take(text)
	}
	r.text.WriteString(text)
	if text == "" {
		return deltas
	}
	return append(deltas, agent.Delta{Text: text})
}

// rest returns what is to be shown once the stream has ended.
func (r *reply) rest() (deltas []agent.Delta) {
	if r.prompt == nil {
		return nil
	}
	text := r.prompt.end()
	if text == "" {
		return nil
	}
	r.text.WriteString(text)
	return []agent.Delta{{Text: text}}
}

// extra returns a field that is a string and not the SDK's; nil where there is none.
func extra(fields map[string]respjson.Field, name string) (text *string) {
	if f, ok := fields[name]; ok {
		_ = json.Unmarshal([]byte(f.Raw()), &text) // what is not a string is not it
	}
	return text
}

func usage(u sdk.CompletionUsage) *agent.Usage {
	all := &agent.Usage{Input: int(u.PromptTokens), Cached: int(u.PromptTokensDetails.CachedTokens), Output: int(u.CompletionTokens)}
	for _, name := range []string{"prompt_cache_hit_tokens", "cached_tokens"} { // DeepSeek, Moonshot
		if f, ok := u.JSON.ExtraFields[name]; ok && all.Cached == 0 {
			_ = json.Unmarshal([]byte(f.Raw()), &all.Cached) // what is not a number is not it
		}
	}
	return all
}

// message returns the whole once the stream has ended.
func (r *reply) message() (*agent.Message, error) {
	uses := r.calls.uses(r.cut())
	if r.prompt != nil {
		uses = append(uses, r.prompt.uses(r.cut())...)
	}
	if err := r.check(len(uses)); err != nil {
		return nil, err
	}
	r.thoughts.Calls = r.calls.extras(uses)
	msg := &agent.Message{Role: mcp.RoleAssistant, Reasoning: r.thoughts.raw(r.model.place()), Usage: r.usage, Cut: r.cut()}
	if r.text.Len() > 0 {
		msg.Content = append(msg.Content, mcp.Text(r.text.String()))
	}
	for i := range uses {
		msg.Content = append(msg.Content, mcp.Content{Type: mcp.ContentToolUse, ToolUse: &uses[i]})
	}
	return msg, nil
}

// check returns why a reply is none.
func (r *reply) check(calls int) error {
	switch {
	case r.finish == "":
		return r.model.brokenOff(r.text.String(), io.ErrUnexpectedEOF)
	case r.finish == "content_filter" && r.text.Len() == 0 && calls == 0:
		return fmt.Errorf("the filter of %s held the reply back: say it in another way", r.model.place())
	}
	return nil
}

// notice is what the user should know of the reply beside what its message says; empty for nothing.
func (r *reply) notice() string {
	if r.finish == "content_filter" {
		return "the reply was cut off by the server's filter"
	}
	return ""
}
