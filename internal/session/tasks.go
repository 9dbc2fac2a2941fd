package session

import (
	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/opentask"
	"github.com/dowel-mcp/dowel/mcp"
)

// OpenTasks returns the tasks of servers that have no end in a conversation. An agent that
// continues it waits for them.
func OpenTasks(messages []agent.Message) []opentask.Task {
	return opentask.Find(func(yield func([]mcp.Content) bool) {
		for i := range messages {
			if !yield(messages[i].Content) {
				return
			}
		}
	})
}
