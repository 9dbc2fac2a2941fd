package agent

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// Model is a language model that can call tools. Its methods may be called concurrently: servers
// may use the model while a tool runs.
//
// A model may have two more methods. Name() string returns the name that servers are told that
// use the model. MaxTools() int limits the tools of a conversation (0: no limit); the agent then
// lets the model search for the others.
type Model interface {
	// Reply streams the reply to a conversation: its text as it comes, and then the complete
	// message, after which nothing comes. The message's content holds all text that was yielded,
	// in that order, and the calls. Each call is complete, and has a name, an input that is JSON,
	// and an ID that is neither empty nor used twice in the reply. If the limit of its length cut
	// the reply off, Cut is set, and an incomplete call is left out. Reply may end early with an
	// error, also after parts of the message, and does so soon after ctx ends.
	Reply(ctx context.Context, c Conversation) iter.Seq2[Delta, error]
	// Window returns the size of the model's context in tokens, for a conversation and its reply
	// together; 0: unknown.
	Window() int
}

// Conversation is the input of a model.
type Conversation struct {
	// System is the text before all messages.
	System   string
	Messages []Message
	// Tools may be called. Their order is stable, since providers cache a conversation by its
	// bytes.
	Tools []mcp.Tool
	// ToolChoice says whether the model may, must or must not call tools: auto, required or none;
	// empty means auto.
	ToolChoice string
	// MaxTokens limits the reply, in tokens, below the model's own limit; 0: the model's own.
	MaxTokens int
}

// Message is one turn. A user's message holds the user's words, and the results of tools in the
// order of their calls. An assistant's message holds the model's text and its calls.
type Message struct {
	Role    mcp.Role      `json:"role"`
	Content []mcp.Content `json:"content"`
	// Reasoning holds the model's thoughts in the provider's form, which go back to the provider.
	Reasoning json.RawMessage `json:"reasoning,omitzero"`
	// Usage counts the tokens of the reply; nil for a user's message, and if the provider does
	// not say.
	Usage *Usage `json:"usage,omitzero"`
	// Cut reports that the reply has reached the limit of its length. A call that was cut off is
	// not in Content.
	Cut bool `json:"cut,omitzero"`
}

// Usage counts the tokens of a reply.
type Usage struct {
	Input  int `json:"input"`           // all that the model read, with Cached
	Cached int `json:"cached,omitzero"` // of Input, from the provider's cache
	Output int `json:"output"`          // all that the model wrote, with its reasoning
}

// Delta is a piece of a reply. It is an [Event], too.
type Delta struct {
	event
	Text, Reasoning string
	// Notice is a message for the user about the request, the reply or the run, such as a tool that
	// the provider does not take.
	Notice string
	// Message is the complete reply. It is set in the last Delta only.
	Message *Message
}

// ErrContextLength is wrapped by an error of [Model.Reply] if the conversation and its reply do
// not fit into the model's window. The agent then compacts the conversation.
var ErrContextLength = errors.New("the conversation is too long for the model")

// Calls returns the message's tool calls, in order.
func (m *Message) Calls() (calls []*mcp.ToolUse) {
	for _, block := range m.Content {
		if block.ToolUse != nil {
			calls = append(calls, block.ToolUse)
		}
	}
	return calls
}

// isBlank reports whether the message holds nothing but spaces. Providers refuse such a message.
func (m *Message) isBlank() bool {
	for i := range m.Content {
		if c := &m.Content[i]; c.Type != mcp.ContentText || strings.TrimSpace(c.Text) != "" {
			return false
		}
	}
	return true
}

// Text returns the message's text without its other content.
func (m *Message) Text() (text string) {
	for _, block := range m.Content {
		if block.Type == mcp.ContentText {
			text += block.Text
		}
	}
	return text
}
