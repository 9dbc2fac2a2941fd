package agent

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/dowel-mcp/dowel/mcp"
)

// Model is a language model that can call tools. Its methods may be called concurrently: servers may ask for samples while a
// tool runs.
type Model interface {
	// Reply streams the reply to a conversation: what it says as it comes, and at the end the message whole. It ends early with
	// an error, which may come behind parts of the message.
	Reply(ctx context.Context, c Conversation) iter.Seq2[Delta, error]
	// Window is how many tokens a conversation and its reply may have together; 0: not known.
	Window() int
}

// Conversation is what a model replies to.
type Conversation struct {
	// System is said to the model before everything else.
	System   string
	Messages []Message
	// Tools are those that may be called, in an order that does not change without need: providers keep what they have read.
	Tools []mcp.Tool
}

// Message is one turn. That of the user holds what the user says, and the results of tools, in the order of their calls; that
// of the assistant what the model says, and its calls.
type Message struct {
	Role    mcp.Role      `json:"role"`
	Content []mcp.Content `json:"content"`
	// Reasoning is what the model has thought, in a form of the provider's, which wants it back.
	Reasoning json.RawMessage `json:"reasoning,omitzero"`
	// Usage is what the reply took; nil for a user's message, and where the provider does not say.
	Usage *Usage `json:"usage,omitzero"`
}

// Usage is what a reply took, in tokens.
type Usage struct {
	Input  int `json:"input"`           // all that was read, Cached among it
	Cached int `json:"cached,omitzero"` // of Input, what the provider had read before
	Output int `json:"output"`          // all that was written, reasoning among it
}

// Delta is a piece of a reply. Message is set in the last one.
type Delta struct {
	Text, Reasoning string
	Message         *Message
}

// Calls returns the message's tool calls, in order.
func (m *Message) Calls() (calls []*mcp.ToolUse) {
	for _, block := range m.Content {
		if block.ToolUse != nil {
			calls = append(calls, block.ToolUse)
		}
	}
	return calls
}

// Text returns what the message says in words.
func (m *Message) Text() (text string) {
	for _, block := range m.Content {
		if block.Type == mcp.ContentText {
			text += block.Text
		}
	}
	return text
}
