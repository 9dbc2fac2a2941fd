package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// callFence begins the block in which a model that cannot call tools itself writes a call.
const callFence = "```tool_call"

const promptRules = `You can use the tools below. To call one, write a block like this, with the tool's name and its arguments as one JSON object:

` + callFence + `
{"name": "the_tool", "arguments": {"an_argument": "its value"}}
` + "```" + `

Write one block for each call, and nothing behind the last one: the results come with the next message. Never write a result yourself. Where no tool is needed, answer without a block.

The tools, each with the JSON Schema of its arguments:
`

// promptDefinitions returns the part of the system prompt that defines the tools; "" without tools.
func promptDefinitions(tools []mcp.Tool) string {
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
		if schema, err := encodeJSON(t.InputSchema); err == nil && len(t.InputSchema) > 0 {
			fmt.Fprintf(&b, "%s\n", schema)
		}
	}
	return b.String()
}

// promptMessages turns a conversation into messages without calls: the assistant's text holds the
// calls, and the user's text the results.
func (m *model) promptMessages(c agent.Conversation) (all []message) {
	system := strings.TrimSpace(c.System + "\n\n" + promptDefinitions(c.Tools))
	if system != "" {
		all = append(all, message{Content: system, Role: "system"})
	}
	names := map[string]string{} // of the called tools, by the ids of the calls
	returnThoughts := m.returnsThoughts(c)
	for _, msg := range betweenUsers(c.Messages) {
		if msg.Role != mcp.RoleAssistant {
			all = append(all, userMessage(m.promptParts(&msg, names)))
			continue
		}
		text := msg.Text()
		for _, use := range msg.Calls() {
			names[use.ID] = use.Name
			text = strings.TrimSpace(strings.TrimSpace(text) + "\n\n" + callBlock(use))
		}
		a := message{Content: cmp.Or(text, emptyText), Role: "assistant"}
		if returnThoughts {
			t := m.thoughtsOf(&msg)
			a.ReasoningContent, a.Reasoning = t.messageMembers()
		}
		all = append(all, a)
	}
	return all
}

// callBlock returns a call in the form in which the model writes it.
func callBlock(use *mcp.ToolUse) string {
	body, err := encodeJSON(struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{use.Name, json.RawMessage(formatArguments(use.Input))})
	if err != nil {
		panic(err) // arguments are JSON
	}
	return callFence + "\n" + string(body) + "\n```"
}

// promptParts returns a message of the user with the results in it as text. names are the names
// of the called tools by the ids of the calls.
func (m *model) promptParts(msg *agent.Message, names map[string]string) (parts []part) {
	for _, block := range msg.Content {
		r := block.ToolResult
		if r == nil {
			if p, _, ok := m.partOf(block); ok {
				parts = append(parts, p)
			}
			continue
		}
		text, media := m.resultText(r)
		parts = append(parts, textPart(fmt.Sprintf("Result of %s:\n%s", names[r.ToolUseID], text)))
		parts = append(parts, media...)
	}
	return parts
}
