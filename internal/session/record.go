package session

import (
	"encoding/json"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// version is that of the files. One with a higher version is not read.
const version = 1

// Header says what a session is.
type Header struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Began   time.Time `json:"began"`
	// Folder is where the user worked, and Model what the model was called at first.
	Folder string `json:"folder,omitzero"`
	Model  string `json:"model,omitzero"`
}

// record is a line: one of its fields beside At is set.
type record struct {
	Session *Header         `json:"session,omitzero"`
	At      *time.Time      `json:"at,omitzero"`
	Message *agent.Message  `json:"message,omitzero"`
	Result  *mcp.Content    `json:"result,omitzero"`
	Keep    *int            `json:"keep,omitzero"`
	Event   string          `json:"event,omitzero"`
	Data    json.RawMessage `json:"data,omitzero"`
}

// conversation is what the records of a file come to.
type conversation []agent.Message

// take applies a record.
func (c *conversation) take(r *record) {
	switch {
	case r.Message != nil:
		c.say(r.Message)
	case r.Result != nil:
		c.say(&agent.Message{Role: mcp.RoleUser, Content: []mcp.Content{*r.Result}})
		c.order()
	case r.Keep != nil && *r.Keep >= 0 && *r.Keep < len(*c):
		*c = (*c)[:*r.Keep]
	}
}

// say adds to the conversation: to its last message, where that is of the same role.
func (c *conversation) say(m *agent.Message) {
	if n := len(*c); n > 0 && (*c)[n-1].Role == m.Role {
		last := &(*c)[n-1]
		last.Content = append(last.Content[:len(last.Content):len(last.Content)], m.Content...)
		return
	}
	*c = append(*c, *m)
}

// order puts the results in the last message into the order of their calls.
func (c *conversation) order() {
	n := len(*c)
	if n < 2 {
		return
	}
	last, place := &(*c)[n-1], map[string]int{}
	for i, use := range (*c)[n-2].Calls() {
		place[use.ID] = i + 1
	}
	content := last.Content
	for i := len(content) - 1; i > 0; i-- { // the last one is new, all before it are in order
		before, result := content[i-1].ToolResult, content[i].ToolResult
		if before == nil || result == nil || place[before.ToolUseID] <= place[result.ToolUseID] {
			return
		}
		content[i-1], content[i] = content[i], content[i-1]
	}
}
