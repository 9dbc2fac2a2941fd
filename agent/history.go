package agent

import (
	"slices"

	"github.com/dowel-mcp/dowel/mcp"
)

// history is a conversation with the estimated tokens of each message.
type history struct {
	messages []Message
	sizes    []int
	size     int
}

// appendMessage adds a message.
func (h *history) appendMessage(m Message) {
	n := estimateMessage(&m)
	h.messages, h.sizes, h.size = append(h.messages, m), append(h.sizes, n), h.size+n
}

// appendContent adds content to the last message if that has the same role, and otherwise a new
// message, since providers want the roles to alternate.
func (h *history) appendContent(role mcp.Role, content ...mcp.Content) {
	n := len(h.messages) - 1
	if n < 0 || h.messages[n].Role != role {
		h.appendMessage(Message{Role: role, Content: content})
		return
	}
	h.messages[n].Content = slices.Concat(h.messages[n].Content, content)
	h.updateSize(n)
}

// updateSize estimates a changed message again.
func (h *history) updateSize(i int) {
	n := estimateMessage(&h.messages[i])
	h.size += n - h.sizes[i]
	h.sizes[i] = n
}

// newHistory returns the history of messages.
func newHistory(messages []Message) (h history) {
	h.messages = make([]Message, 0, len(messages))
	for _, m := range messages {
		h.appendMessage(m)
	}
	return h
}

// called reports whether the conversation has a call of a tool with the name.
func (h *history) called(name string) bool {
	for i := range h.messages {
		for _, use := range h.messages[i].Calls() {
			if use.Name == name {
				return true
			}
		}
	}
	return false
}
