package session

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// version is the version of the file format. Files with a higher version are refused.
const version = 1

// Header describes a session.
type Header struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Began   time.Time `json:"began"`
	// Folder is the folder in which the user worked, and Model the first model's name.
	Folder string `json:"folder,omitzero"`
	Model  string `json:"model,omitzero"`
	// Client is the name under which the running dowel knows the agent, if it differs from "agent "
	// with the ID: a copy of a conversation with open tasks has the name of its original, because
	// the tasks belong to that name.
	Client string `json:"client,omitzero"`
	// Program is "dowel run" for its sessions, of which only the newest are kept; "" in others.
	Program string `json:"program,omitzero"`
	// Scripted: the program wrote to no terminal when it began the session.
	Scripted bool `json:"scripted,omitzero"`
}

// ClientName returns the name under which the running dowel knows the agent of the conversation. It
// owns the agent's tasks, in each process that continues the conversation.
func (h Header) ClientName() string { return cmp.Or(h.Client, "agent "+h.ID) }

// record is a line of a file. One of its fields beside At is set.
type record struct {
	Session *Header         `json:"session,omitzero"`
	At      *time.Time      `json:"at,omitzero"`
	Message *agent.Message  `json:"message,omitzero"`
	Again   bool            `json:"again,omitzero"` // Message replaces one that keep has dropped
	Result  *mcp.Content    `json:"result,omitzero"`
	Keep    *int            `json:"keep,omitzero"`
	Prompt  *promptRecord   `json:"prompt,omitzero"`
	Event   string          `json:"event,omitzero"`
	Data    json.RawMessage `json:"data,omitzero"`
}

// conversation is the conversation that a file's records make.
type conversation []agent.Message

// applyRecord changes the conversation as a record says.
func (c *conversation) applyRecord(r *record) {
	switch {
	case r.Message != nil:
		c.appendMessage(r.Message)
	case r.Result != nil:
		c.appendMessage(&agent.Message{Role: mcp.RoleUser, Content: []mcp.Content{*r.Result}})
		c.sortResults()
	case r.Keep != nil && *r.Keep >= 0 && *r.Keep < len(*c):
		*c = (*c)[:*r.Keep]
	}
}

// appendMessage adds a message, or adds its content to the last message of the same role.
func (c *conversation) appendMessage(m *agent.Message) {
	if n := len(*c); n > 0 && (*c)[n-1].Role == m.Role {
		last := &(*c)[n-1]
		last.Content = append(last.Content[:len(last.Content):len(last.Content)], m.Content...)
		return
	}
	*c = append(*c, *m)
}

// sortResults moves the last result of the last message to its place in the order of the calls.
func (c *conversation) sortResults() {
	n := len(*c)
	if n < 2 {
		return
	}
	last, place := &(*c)[n-1], map[string]int{}
	for i, use := range (*c)[n-2].Calls() {
		place[use.ID] = i + 1
	}
	content := last.Content
	for i := len(content) - 1; i > 0; i-- { // the last one is new, the others are sorted
		before, result := content[i-1].ToolResult, content[i].ToolResult
		if before == nil || result == nil || place[before.ToolUseID] <= place[result.ToolUseID] {
			return
		}
		content[i-1], content[i] = content[i], content[i-1]
	}
}
