package openai

import (
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
)

// Values of [Options].Reasoning.
const (
	reasoningWithTools = "with tools"
	reasoningAlways    = "always"
	reasoningNever     = "never"
)

// thoughts is the form of agent.Message.Reasoning.
type thoughts struct {
	From string `json:"from"` // the base URL
	// The model's thoughts, under the name of the member in which they came. Empty is not nil:
	// DeepSeek wants empty thoughts back, too.
	ReasoningContent *string `json:"reasoning_content,omitzero"`
	Reasoning        *string `json:"reasoning,omitzero"`
	// The extra_content of calls by their ids. Gemini refuses a conversation without it.
	Calls map[string]json.RawMessage `json:"calls,omitzero"`

	growing *strings.Builder // the text of ReasoningContent or Reasoning; nil before the first piece
}

// addDelta appends the thoughts of a delta, and returns them. If a server sends both members, only
// the member that arrived first counts.
func (t *thoughts) addDelta(content, reasoning *string) string {
	switch {
	case content != nil && t.Reasoning == nil:
		return t.appendTo(&t.ReasoningContent, *content)
	case reasoning != nil && t.ReasoningContent == nil:
		return t.appendTo(&t.Reasoning, *reasoning)
	}
	return ""
}

func (t *thoughts) appendTo(member **string, piece string) string {
	if *member == nil {
		*member, t.growing = new(string), new(strings.Builder)
	}
	t.growing.WriteString(piece)
	**member = t.growing.String() // shares the builder's memory
	return piece
}

// encodeFor returns the thoughts as a message stores them; nil if the model has not thought.
func (t *thoughts) encodeFor(from string) json.RawMessage {
	if t.ReasoningContent == nil && t.Reasoning == nil && t.Calls == nil {
		return nil
	}
	t.From = from
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings, and JSON that has been parsed
	}
	return raw
}

// thoughtsOf returns the thoughts stored in a message; zero if they are another server's.
func (m *model) thoughtsOf(msg *agent.Message) (t thoughts) {
	if len(msg.Reasoning) == 0 || json.Unmarshal(msg.Reasoning, &t) != nil || t.From != m.place() {
		return thoughts{}
	}
	return t
}

// messageMembers returns the members of a message that take the thoughts back. At most one is set.
func (t *thoughts) messageMembers() (content, reasoning *string) {
	if t.ReasoningContent != nil {
		return t.ReasoningContent, nil
	}
	return nil, t.Reasoning
}

// returnsThoughts reports whether the server gets thoughts back with a conversation.
func (m *model) returnsThoughts(c agent.Conversation) bool {
	switch m.opts.Reasoning {
	case reasoningAlways:
		return true
	case reasoningNever:
		return false
	}
	if len(c.Tools) > 0 {
		return true
	}
	for i := range c.Messages {
		if len(c.Messages[i].Calls()) > 0 {
			return true
		}
	}
	return false
}
