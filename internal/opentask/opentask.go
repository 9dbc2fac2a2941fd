// Package opentask finds the tasks of servers that have no end in a conversation yet. The
// conversation holds them in the _meta of its blocks.
package opentask

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/dowel-mcp/dowel/mcp"
)

// Keys of the _meta of blocks.
const (
	MetaBegun = "dowel/task"       // a task has begun; the value is a Task
	MetaEnded = "dowel/task-ended" // a task has ended; the value is its ID
	MetaOpen  = "dowel/tasks"      // the tasks that were open when this summary was written
)

// Task is a task that has no end in the conversation.
type Task struct {
	ID   string `json:"id"`   // as the server of the tools has given it to the agent
	Call string `json:"call"` // the ID of the call that the server continues as the task
	Tool string `json:"tool"` // as the model calls it
}

// MetaValue returns the task for a _meta in the form that JSON is decoded to.
func (t Task) MetaValue() any { return map[string]any{"id": t.ID, "call": t.Call, "tool": t.Tool} }

// Find returns the tasks that have no end in a conversation, the oldest first. all are the contents
// of its messages.
func Find(all iter.Seq[[]mcp.Content]) (open []Task) {
	for content := range all {
		for i := range content {
			if open = follow(open, content[i].Meta); content[i].ToolResult == nil {
				continue
			}
			for j := range content[i].ToolResult.Content {
				open = follow(open, content[i].ToolResult.Content[j].Meta)
			}
		}
	}
	return open
}

// follow returns the open tasks after a block.
func follow(open []Task, m mcp.Meta) []Task {
	var found []Task
	if v, ok := m[MetaBegun]; ok {
		found = append(found, decode([]any{v})...)
	}
	if v, ok := m[MetaOpen]; ok {
		found = append(found, decode(v)...)
	}
	for _, t := range found {
		if t.ID != "" && !slices.ContainsFunc(open, func(other Task) bool { return other.ID == t.ID }) {
			open = append(open, t)
		}
	}
	return slices.DeleteFunc(open, func(t Task) bool { return m[MetaEnded] == t.ID })
}

// decode decodes a list of tasks. Another form gives none.
func decode(v any) (all []Task) {
	raw, err := json.Marshal(v)
	if err != nil || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}
