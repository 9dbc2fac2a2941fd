package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
	sdk "github.com/openai/openai-go/v3"
)

type message = sdk.ChatCompletionMessageParamUnion

// nothing stands for a message without content, which servers refuse.
const nothing = "(nothing)"

// goOn is what the user says where the model has had the last word.
const goOn = "Go on."

// messages turns a conversation into that of chat completions: the results of calls are messages of their own, right behind the
// calls, and what else is in their message follows as one of the user.
func (m *Model) messages(c agent.Conversation) (all []message) {
	if strings.TrimSpace(c.System) != "" {
		all = append(all, sdk.SystemMessage(c.System))
	}
	h := history{Model: m, thoughts: m.wantsThoughts(c)}
	for _, msg := range turns(c.Messages) {
		if msg.Role == mcp.RoleAssistant {
			all = append(all, h.assistant(&msg))
			continue
		}
		results, said := h.user(&msg)
		all = append(all, results...)
		if len(said) > 0 || len(results) == 0 {
			all = append(all, userMessage(said))
		}
	}
	return all
}

// turns are the messages between a first and a last one of the user's, which templates of open models demand.
func turns(messages []agent.Message) []agent.Message {
	user := agent.Message{Role: mcp.RoleUser}
	if len(messages) > 0 && messages[0].Role == mcp.RoleAssistant {
		messages = slices.Concat([]agent.Message{user}, messages)
	}
	if n := len(messages); n == 0 || messages[n-1].Role == mcp.RoleAssistant {
		user.Content = []mcp.Content{mcp.Text(goOn)}
		messages = slices.Concat(messages, []agent.Message{user})
	}
	return messages
}

// history is a conversation on its way into chat completions.
type history struct {
	*Model
	thoughts bool
	calls    sentCalls
}

func (h *history) assistant(msg *agent.Message) message {
	a := sdk.ChatCompletionAssistantMessageParam{}
	var thought thoughts
	if h.thoughts {
		thought = h.thoughtsOf(msg)
	}
	h.calls.begin()
	for _, use := range msg.Calls() {
		call := &sdk.ChatCompletionMessageFunctionToolCallParam{
			ID:       h.calls.add(use),
			Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: nameOf(use.Name), Arguments: arguments(use.Input)},
		}
		if extra := thought.Calls[use.ID]; extra != nil {
			call.SetExtraFields(map[string]any{"extra_content": extra})
		}
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
	}
	text := msg.Text()
	if text == "" && len(a.ToolCalls) == 0 {
		text = nothing
	}
	if text != "" {
		a.Content.OfString = sdk.String(text)
	}
	if fields := thought.fields(); fields != nil {
		a.SetExtraFields(fields)
	}
	return message{OfAssistant: &a}
}

// user turns a message of the user into those of the results in it, and the parts of what else is in it: first the media of the
// results.
func (h *history) user(msg *agent.Message) (results []message, said []part) {
	var behind []part
	for _, block := range msg.Content {
		if r := block.ToolResult; r != nil {
			text, follow := h.result(r)
			id, name := h.calls.answered(r.ToolUseID)
			results = append(results, sdk.ToolMessage(text, id))
			if len(follow) > 0 {
				said = append(append(said, sdk.TextContentPart(fmt.Sprintf("From the result of %s:", name))), follow...)
			}
			continue
		}
		if p, _, ok := h.part(block); ok {
			behind = append(behind, p)
		}
	}
	return results, append(said, behind...)
}

// userMessage is one text where there is only text: some servers take nothing else.
func userMessage(parts []part) message {
	var texts []string
	for _, p := range parts {
		if text := p.GetText(); text != nil {
			texts = append(texts, *text)
		}
	}
	switch {
	case len(parts) == 0:
		return sdk.UserMessage(nothing)
	case len(texts) == len(parts):
		return sdk.UserMessage(strings.Join(texts, "\n\n"))
	}
	return sdk.UserMessage(slices.Clip(parts))
}

// input returns the arguments of a call as an object. Arguments that are none become a JSON string of their text.
func input(text string) json.RawMessage {
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
	return quoted(text)
}

// arguments is how a call's input goes back: always an object, since some servers refuse the whole conversation otherwise.
func arguments(input json.RawMessage) string {
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

func quoted(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	return raw
}
