package agent

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// Model is a language model that can call tools. Its methods may be called concurrently: servers may ask for samples while a
// tool runs. Where it has a method Name() string, servers that use it (sampling) are told that name; where it has MaxTools() int,
// it is offered no more tools than that (0: no bound), and searches the others.
type Model interface {
	// Reply streams the reply to a conversation: what it says as it comes, and at the end the message whole, after which nothing
	// comes. The message's content holds all text that was yielded, in that order, and its calls: each whole, with a name, an
	// input that is JSON and an ID that is not empty and no other call of the reply has. Where the bound of its length cut the
	// reply off, Cut is set, and a call that is not whole is left out. Reply ends early with an error, which may come behind parts
	// of the message, and does so soon when ctx ends.
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
	// ToolChoice says whether the model may, must or must not call tools: auto, required or none; empty is auto.
	ToolChoice string
	// MaxTokens bounds the reply below the model's own bound; 0: that one.
	MaxTokens int
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
	// Cut says that the reply has reached the bound of its length. A call that was cut off is not in Content.
	Cut bool `json:"cut,omitzero"`
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
	// Notice is something that the user should know of the request or the reply, such as a tool that the provider does not take.
	Notice  string
	Message *Message
}

// ErrContextLength is wrapped by an error of [Model.Reply] where the conversation and its reply do not fit into the model's window:
// the agent knows what to do then.
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

// isBlank reports whether the message holds nothing that providers take: they refuse an empty one, and one of spaces.
func (m *Message) isBlank() bool {
	for i := range m.Content {
		if c := &m.Content[i]; c.Type != mcp.ContentText || strings.TrimSpace(c.Text) != "" {
			return false
		}
	}
	return true
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
