package openai

import (
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
)

// Reasoning says when a server gets back what its model has thought. It goes back to the server that has sent it only, and under
// the name under which it came.
type Reasoning string

const (
	// ReasoningWithTools: where tools are offered or have been called. DeepSeek refuses a conversation with calls whose thoughts
	// are missing, GLM and Qwen work better with them, and servers that have no use for them leave them out of the prompt.
	ReasoningWithTools Reasoning = "with tools"
	ReasoningAlways    Reasoning = "always"
	ReasoningNever     Reasoning = "never" // for servers that refuse fields which they do not know
)

// thoughts is the form of agent.Message.Reasoning.
type thoughts struct {
	From string `json:"from"` // the base URL
	// What the model has thought, by the name of the field: the first is that of DeepSeek and Qwen, the second that of vLLM,
	// Ollama and OpenRouter. Empty is not the same as nil: DeepSeek wants empty ones back, too.
	ReasoningContent *string `json:"reasoning_content,omitzero"`
	Reasoning        *string `json:"reasoning,omitzero"`
	// What came with calls beside what they say, by id: Gemini refuses a conversation without it.
	Calls map[string]json.RawMessage `json:"calls,omitzero"`

	coming *strings.Builder // what ReasoningContent or Reasoning is going to be, while its pieces come; nil before the first
}

// add takes a piece from the fields of a delta, and returns it. Of a server that sends both, the first counts.
func (t *thoughts) add(content, reasoning *string) string {
	switch {
	case content != nil && t.Reasoning == nil:
		return t.grow(&t.ReasoningContent, *content)
	case reasoning != nil && t.ReasoningContent == nil:
		return t.grow(&t.Reasoning, *reasoning)
	}
	return ""
}

func (t *thoughts) grow(field **string, piece string) string {
	if *field == nil {
		*field, t.coming = new(string), new(strings.Builder)
	}
	t.coming.WriteString(piece)
	**field = t.coming.String() // shares its memory
	return piece
}

// raw is the form in which a message keeps it; nil where the model has not thought.
func (t *thoughts) raw(from string) json.RawMessage {
	if t.ReasoningContent == nil && t.Reasoning == nil && t.Calls == nil {
		return nil
	}
	t.From = from
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings, and JSON that was read
	}
	return raw
}

// thoughtsOf returns what a message of the assistant brings back; nothing where it is another provider's.
func (m *Model) thoughtsOf(msg *agent.Message) (t thoughts) {
	if len(msg.Reasoning) == 0 || json.Unmarshal(msg.Reasoning, &t) != nil || t.From != m.place() {
		return thoughts{}
	}
	return t
}

// fields are those of the message; nil for none.
func (t *thoughts) fields() map[string]any {
	switch {
	case t.ReasoningContent != nil:
		return map[string]any{"reasoning_content": *t.ReasoningContent}
	case t.Reasoning != nil:
		return map[string]any{"reasoning": *t.Reasoning}
	}
	return nil
}

// wantsThoughts reports whether the server is to get thoughts back with a conversation.
func (m *Model) wantsThoughts(c agent.Conversation) bool {
	switch m.opts.Reasoning {
	case ReasoningAlways:
		return true
	case ReasoningNever:
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
