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

// messages turns a conversation into that of chat completions: the results of calls are messages of their own, right behind the
// calls, and what else is in their message follows as one of the user.
func (m *Model) messages(c agent.Conversation) (all []message) {
	if c.System != "" {
		all = append(all, sdk.SystemMessage(c.System))
	}
	thoughts := m.wantsThoughts(c)
	names := map[string]string{}
	for i := range c.Messages {
		msg := &c.Messages[i]
		if msg.Role == mcp.RoleAssistant {
			for _, use := range msg.Calls() {
				names[use.ID] = use.Name
			}
			all = append(all, m.assistant(msg, thoughts))
			continue
		}
		results, said := m.user(msg, names)
		all = append(all, results...)
		if len(said) > 0 || len(results) == 0 {
			all = append(all, userMessage(said))
		}
	}
	return all
}

func (m *Model) assistant(msg *agent.Message, thoughts bool) message {
	a := sdk.ChatCompletionAssistantMessageParam{}
	for _, use := range msg.Calls() {
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
			ID:       use.ID,
			Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: use.Name, Arguments: arguments(use.Input)},
		}})
	}
	text := msg.Text()
	if text == "" && len(a.ToolCalls) == 0 {
		text = nothing
	}
	if text != "" {
		a.Content.OfString = sdk.String(text)
	}
	if fields := m.thoughtsOf(msg); thoughts && fields != nil {
		a.SetExtraFields(fields)
	}
	return message{OfAssistant: &a}
}

// user turns a message of the user into those of the results in it, and the parts of what else is in it: first the media of the
// results.
func (m *Model) user(msg *agent.Message, names map[string]string) (results []message, said []part) {
	var behind []part
	for _, block := range msg.Content {
		if r := block.ToolResult; r != nil {
			text, follow := m.result(r)
			results = append(results, sdk.ToolMessage(text, r.ToolUseID))
			if len(follow) > 0 {
				said = append(append(said, sdk.TextContentPart(fmt.Sprintf("From the result of %s:", names[r.ToolUseID]))), follow...)
			}
			continue
		}
		if p, _, ok := m.part(block); ok {
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
