package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
	sdk "github.com/openai/openai-go/v3"
)

// callFence begins the block in which a model that cannot call tools writes a call.
const callFence = "```tool_call"

const promptRules = `You can use the tools below. To call one, write a block like this, with the tool's name and its arguments as one JSON object:

` + callFence + `
{"name": "the_tool", "arguments": {"an_argument": "its value"}}
` + "```" + `

Write one block for each call, and nothing behind the last one: the results come with the next message. Never write a result yourself. Where no tool is needed, answer without a block.

The tools, each with the JSON Schema of its arguments:
`

// definitions is what the system prompt says of tools; empty where there are none.
func definitions(tools []mcp.Tool) string {
	if len(tools) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(promptRules)
	for i := range tools {
		t := &tools[i]
		fmt.Fprintf(&b, "\n## %s\n", t.Name)
		if t.Description != "" {
			fmt.Fprintf(&b, "%s\n", t.Description)
		}
		if schema, err := encode(t.InputSchema); err == nil && len(t.InputSchema) > 0 {
			fmt.Fprintf(&b, "%s\n", schema)
		}
	}
	return b.String()
}

// promptMessages turns a conversation into one of texts only: calls stand in the text of the assistant, results in that of the
// user.
func (m *Model) promptMessages(c agent.Conversation) (all []message) {
	system := strings.TrimSpace(c.System + "\n\n" + definitions(c.Tools))
	if system != "" {
		all = append(all, sdk.SystemMessage(system))
	}
	names := map[string]string{}
	thoughts := m.wantsThoughts(c)
	for _, msg := range turns(c.Messages) {
		if msg.Role != mcp.RoleAssistant {
			all = append(all, userMessage(m.promptUser(&msg, names)))
			continue
		}
		text := msg.Text()
		for _, use := range msg.Calls() {
			names[use.ID] = use.Name
			text = strings.TrimSpace(strings.TrimSpace(text) + "\n\n" + written(use))
		}
		if text == "" {
			text = nothing
		}
		a := sdk.ChatCompletionAssistantMessageParam{}
		a.Content.OfString = sdk.String(text)
		thought := m.thoughtsOf(&msg)
		if fields := thought.fields(); thoughts && fields != nil {
			a.SetExtraFields(fields)
		}
		all = append(all, message{OfAssistant: &a})
	}
	return all
}

// written is a call as the model writes it.
func written(use *mcp.ToolUse) string {
	body, err := encode(struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{use.Name, json.RawMessage(arguments(use.Input))})
	if err != nil {
		panic(err) // arguments are JSON
	}
	return callFence + "\n" + string(body) + "\n```"
}

func (m *Model) promptUser(msg *agent.Message, names map[string]string) (said []part) {
	for _, block := range msg.Content {
		r := block.ToolResult
		if r == nil {
			if p, _, ok := m.part(block); ok {
				said = append(said, p)
			}
			continue
		}
		text, follow := m.result(r)
		said = append(said, sdk.TextContentPart(fmt.Sprintf("Result of %s:\n%s", names[r.ToolUseID], text)))
		said = append(said, follow...)
	}
	return said
}
