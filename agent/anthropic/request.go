package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/mcp"
)

const (
	// continueText is sent as the user's message if the model has spoken last, because newer models
	// refuse a conversation that ends with their own message.
	continueText = "Go on."
	// emptyText is sent as the user's message if the model has spoken first, which the API refuses.
	emptyText = "(nothing)"
)

// placeholderTool is sent if the conversation holds calls but no tool is offered any more. The API
// refuses calls in a request without tools.
var placeholderTool = &tool{Name: "no_tool", Description: "There are no tools at present. Do not call this.",
	InputSchema: json.RawMessage(`{"type":"object"}`)}

// messagesRequest turns a conversation into a request.
func (m *model) messagesRequest(c agent.Conversation) *messagesRequest {
	r := &messagesRequest{
		Model:     m.opts.Model,
		MaxTokens: m.opts.MaxTokens,
		Messages:  m.turnsOf(c.Messages),
		Tools:     m.toolDefinitions(c.Tools),
		Stream:    true,
	}
	if len(r.Tools) == 0 && slices.ContainsFunc(c.Messages, func(msg agent.Message) bool { return len(msg.Calls()) > 0 }) {
		r.Tools = []*tool{placeholderTool}
	}
	if c.MaxTokens > 0 {
		r.MaxTokens = min(r.MaxTokens, c.MaxTokens)
	}
	switch {
	case len(r.Tools) == 0:
	case c.ToolChoice == "none":
		r.ToolChoice = &toolChoice{Type: "none"}
	case r.Tools[0] == placeholderTool:
	case c.ToolChoice == "required" && m.opts.Thinking == 0: // a model that thinks must not be forced to call
		r.ToolChoice = &toolChoice{Type: "any"}
	}
	if strings.TrimSpace(c.System) != "" {
		r.System = []block{{Text: c.System, CacheControl: ephemeral, Type: "text"}}
	}
	m.setThinking(r)
	markCacheEnds(r.Messages)
	return r
}

// setThinking asks the model to think. The API accepts a thinking budget only if the last message
// with calls begins with its thoughts. They are missing if another model made the calls or if they
// were dropped; then the request has no budget.
func (m *model) setThinking(r *messagesRequest) {
	switch budget := m.opts.Thinking; {
	case budget == 0:
	case budget < 0 || m.adaptive.Load():
		r.Thinking = &thinkingConfig{Type: "adaptive", Display: "summarized"}
	case !lastCallsLackThoughts(r.Messages):
		r.MaxTokens += budget
		r.Thinking = &thinkingConfig{Type: "enabled", BudgetTokens: budget}
	}
}

// lastCallsLackThoughts reports whether the conversation ends with the results of calls, and the
// message with these calls does not begin with a thought.
func lastCallsLackThoughts(turns []turn) bool {
	n := len(turns)
	if n < 2 || turns[n-1].Content[0].Type != "tool_result" {
		return false
	}
	return turns[n-2].Content[0].raw == nil // a thought is a raw block
}

// markCacheEnds marks the ends of the user's last two messages for the prompt cache. The earlier
// one was the end of the previous request. It is marked because the API looks for a cached prefix
// only at a mark and a few blocks before it.
func markCacheEnds(turns []turn) {
	marks := 2
	for i := len(turns) - 1; i >= 0 && marks > 0; i-- {
		if turns[i].Role == roleUser {
			turns[i].Content[len(turns[i].Content)-1].CacheControl = ephemeral
			marks--
		}
	}
}

// turnsOf turns messages into turns: the roles alternate, the user has the first and the last
// turn, and no turn is empty.
func (m *model) turnsOf(messages []agent.Message) []turn {
	w := turnWriter{model: m, sentIDs: map[string]bool{}}
	for _, msg := range messages {
		if msg.Role == mcp.RoleAssistant {
			w.addTurn(roleAssistant, w.assistantBlocks(msg))
		} else {
			w.addTurn(roleUser, w.userBlocks(msg))
		}
	}
	if len(w.turns) > 0 && w.turns[0].Role == roleAssistant {
		w.turns = slices.Insert(w.turns, 0, turn{Content: []block{textBlock(emptyText)}, Role: roleUser})
	}
	if n := len(w.turns); n == 0 || w.turns[n-1].Role == roleAssistant {
		w.addTurn(roleUser, []block{textBlock(continueText)})
	}
	return w.turns
}

// turnWriter writes the turns of a conversation in their order.
type turnWriter struct {
	*model
	turns   []turn
	calls   int             // number of calls so far, for made-up ids
	sentIDs map[string]bool // ids of calls, as they are sent
	open    []sentCallID    // calls of the last message that have no result yet
}

// sentCallID is the id of a call in the conversation, and the id under which it is sent.
type sentCallID struct{ id, sent string }

// addTurn adds blocks to the last turn if it has the same role, and else adds a turn.
func (w *turnWriter) addTurn(role string, blocks []block) {
	if len(blocks) == 0 {
		return
	}
	if n := len(w.turns); n > 0 && w.turns[n-1].Role == role {
		w.turns[n-1].Content = append(w.turns[n-1].Content, blocks...)
		return
	}
	w.turns = append(w.turns, turn{Content: blocks, Role: role})
}

// userBlocks returns the blocks of a message of the user. The API wants results first.
func (w *turnWriter) userBlocks(msg agent.Message) []block {
	var results, others []block
	for _, c := range msg.Content {
		if c.ToolResult != nil {
			results = append(results, w.resultBlock(c.ToolResult))
		} else {
			others = appendBlock(others, w.contentBlock(c))
		}
	}
	return append(results, others...)
}

// assistantBlocks returns the blocks of a message of the model, with its thoughts in their places.
// Thoughts at the end are left out: the API refuses a message that ends with thoughts.
func (w *turnWriter) assistantBlocks(msg agent.Message) (blocks []block) {
	w.open = nil
	end := 0 // after the last block other than a thought
	returned := w.returnedBlocks(msg.Reasoning)
	addReturned := func(before int) {
		for len(returned) > 0 && returned[0].Before <= before {
			blocks = append(blocks, block{raw: returned[0].Block})
			if !returned[0].isThought() {
				end = len(blocks)
			}
			returned = returned[1:]
		}
	}
	for i, c := range msg.Content {
		addReturned(i)
		n := len(blocks)
		if c.ToolUse != nil {
			blocks = append(blocks, block{ID: w.addCallID(c.ToolUse.ID), Input: inputObject(c.ToolUse.Input), Name: acceptedName(c.ToolUse.Name), Type: "tool_use"})
		} else {
			blocks = appendBlock(blocks, textBlock(c.String()))
		}
		if len(blocks) > n {
			end = len(blocks)
		}
	}
	addReturned(len(msg.Content))
	return blocks[:end]
}

var (
	idPattern   = lazyregexp.New(`^[a-zA-Z0-9_-]+$`)
	namePattern = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)
)

// addCallID returns the id under which a call is sent: its own, unless the API would refuse it or
// an earlier call has it. Servers exist that count calls from 0 in each reply.
func (w *turnWriter) addCallID(id string) string {
	sent := id
	for w.calls++; !idPattern().MatchString(sent) || w.sentIDs[sent]; {
		sent = fmt.Sprintf("call_%d", w.calls)
		if w.sentIDs[sent] {
			w.calls++
		}
	}
	w.sentIDs[sent] = true
	w.open = append(w.open, sentCallID{id, sent})
	return sent
}

// takeCallID returns the id under which the call of a result was sent. Of calls with the same id
// the first one without a result counts.
func (w *turnWriter) takeCallID(id string) string {
	i := slices.IndexFunc(w.open, func(c sentCallID) bool { return c.id == id })
	if i < 0 {
		return id
	}
	sent := w.open[i].sent
	w.open = slices.Delete(w.open, i, i+1)
	return sent
}

// acceptedName returns the name of a called tool as the API accepts it. Models of other providers
// make up names that it refuses.
func acceptedName(name string) string {
	if namePattern().MatchString(name) {
		return name
	}
	accepted := strings.Map(func(r rune) rune {
		if idPattern().MatchString(string(r)) {
			return r
		}
		return '_'
	}, name)
	return accepted[:min(len(accepted), 128)] + strings.Repeat("_", max(0, 1-len(accepted)))
}

// inputObject returns the input of a call as an object, which the API demands. Other input becomes
// its member not_json.
func inputObject(input json.RawMessage) json.RawMessage {
	switch trimmed := bytes.TrimSpace(input); {
	case len(trimmed) == 0, string(trimmed) == "null":
		return json.RawMessage(`{}`)
	case trimmed[0] == '{' && json.Valid(trimmed):
		return input
	case trimmed[0] == '"' && json.Valid(trimmed):
		return json.RawMessage(`{"not_json":` + string(trimmed) + `}`)
	}
	return json.RawMessage(`{"not_json":` + string(encodeJSON(string(input))) + `}`)
}
