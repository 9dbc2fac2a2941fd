package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	// emptyText is sent as the content of an empty message, which servers refuse.
	emptyText = "(nothing)"
	// continueText is sent as the user's message if the model has spoken last.
	continueText = "Go on."
)

// chatMessages turns a conversation into chat messages. Each result of a call becomes a message of
// its own, right behind the calls. Other content of the same message follows as the user's.
func (m *model) chatMessages(c agent.Conversation) (all []message) {
	if strings.TrimSpace(c.System) != "" {
		all = append(all, message{Content: c.System, Role: "system"})
	}
	w := messageWriter{model: m, returnThoughts: m.returnsThoughts(c)}
	for _, msg := range betweenUsers(c.Messages) {
		if msg.Role == mcp.RoleAssistant {
			all = append(all, w.assistantMessage(&msg))
			continue
		}
		results, rest := w.userParts(&msg)
		all = append(all, results...)
		if len(rest) > 0 || len(results) == 0 {
			all = append(all, userMessage(rest))
		}
	}
	return all
}

// betweenUsers returns messages such that the first and the last are the user's, which the chat
// templates of open models demand.
func betweenUsers(messages []agent.Message) []agent.Message {
	user := agent.Message{Role: mcp.RoleUser}
	if len(messages) > 0 && messages[0].Role == mcp.RoleAssistant {
		messages = slices.Concat([]agent.Message{user}, messages)
	}
	if n := len(messages); n == 0 || messages[n-1].Role == mcp.RoleAssistant {
		user.Content = []mcp.Content{mcp.Text(continueText)}
		messages = slices.Concat(messages, []agent.Message{user})
	}
	return messages
}

// messageWriter writes the messages of one conversation in their order.
type messageWriter struct {
	*model
	returnThoughts bool
	calls          callIDs
}

func (w *messageWriter) assistantMessage(msg *agent.Message) message {
	a := message{Role: "assistant"}
	var t thoughts
	if w.returnThoughts {
		t = w.thoughtsOf(msg)
	}
	a.ReasoningContent, a.Reasoning = t.messageMembers()
	w.calls.startMessage()
	for _, use := range msg.Calls() {
		a.ToolCalls = append(a.ToolCalls, toolCall{
			ID:           w.calls.addCall(use),
			Function:     calledFunction{Name: acceptedName(use.Name), Arguments: formatArguments(use.Input)},
			Type:         "function",
			ExtraContent: t.Calls[use.ID],
		})
	}
	if text := msg.Text(); text != "" {
		a.Content = text
	} else if len(a.ToolCalls) == 0 {
		a.Content = emptyText
	}
	return a
}

// userParts turns a message of the user into the messages of the results in it, and the parts of
// its other content. The media of results come first.
func (w *messageWriter) userParts(msg *agent.Message) (results []message, parts []part) {
	var other []part
	for _, block := range msg.Content {
		if r := block.ToolResult; r != nil {
			text, media := w.resultText(r)
			id, name := w.calls.takeCall(r.ToolUseID)
			results = append(results, message{Content: text, ToolCallID: id, Role: "tool"})
			if len(media) > 0 {
				parts = append(append(parts, textPart(fmt.Sprintf("From the result of %s:", name))), media...)
			}
			continue
		}
		if p, _, ok := w.partOf(block); ok {
			other = append(other, p)
		}
	}
	return results, append(parts, other...)
}

// userMessage joins parts that are all text into one text, because some servers take nothing else.
func userMessage(parts []part) message {
	var texts []string
	for _, p := range parts {
		if p.Text != nil {
			texts = append(texts, *p.Text)
		}
	}
	switch {
	case len(parts) == 0:
		return message{Content: emptyText, Role: "user"}
	case len(texts) == len(parts):
		return message{Content: strings.Join(texts, "\n\n"), Role: "user"}
	}
	return message{Content: parts, Role: "user"}
}

// parseArguments returns the arguments of a call. Empty text means {}. Text that is not an object
// becomes a JSON string. Tools refuse it, and the tool's error tells the model.
func parseArguments(text string) json.RawMessage {
	trimmed := bytes.TrimSpace([]byte(text))
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}")
	}
	if isObject(trimmed) {
		return trimmed
	}
	var inner string // some models encode twice
	if json.Unmarshal(trimmed, &inner) == nil && isObject([]byte(inner)) {
		return json.RawMessage(inner)
	}
	return quoteJSON(text)
}

// formatArguments returns a call's input as it goes back to the server. It is always an object,
// since some servers refuse the conversation otherwise.
func formatArguments(input json.RawMessage) string {
	switch {
	case len(input) == 0:
		return "{}"
	case isObject(input):
		return string(input)
	}
	return `{"invalid_arguments":` + string(input) + `}`
}

func isObject(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && data[0] == '{' && json.Valid(data)
}

// quoteJSON returns text as a JSON string.
func quoteJSON(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return raw
}

// encodeJSON encodes v without escaping HTML.
func encodeJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
