package sessionlog

import (
	"slices"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/tasklist"
	"github.com/dowel-mcp/dowel/internal/opentask"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// Servers says where the tools of an agent come from.
type Servers struct {
	// Origin returns the server of a tool and the tool's name there ([agent.Toolbox.Origin]).
	Origin func(tool string) (server, name string, ok bool)
	// Private: this process has started the servers for the conversation.
	Private bool
}

// UseServers says where the tools of the next runs come from, and which conversation they continue.
// Before its first call, dowel task list does not get the tasks of the conversation.
func (l *Log) UseServers(s Servers, messages []agent.Message) {
	l.servers, l.open = s, session.OpenTasks(messages)
}

// addTask lists the task that continues a call, if one does.
func (l *Log) addTask(result mcp.ToolResultContent) {
	open := session.OpenTasks([]agent.Message{{Content: []mcp.Content{{ToolResult: &result}}}})
	if len(open) > 0 {
		l.listTasks(append(slices.Clip(l.open), open...))
	}
}

// listTasks makes dowel task list show the open tasks of the conversation. A list that cannot be
// written is a warning.
func (l *Log) listTasks(open []opentask.Task) {
	l.open = open
	if l.Session == nil || l.servers.Origin == nil {
		return
	}
	entries := []tasklist.Entry{}
	for _, o := range open {
		e := tasklist.Entry{ID: o.ID, Tool: o.Tool, Client: l.Session.Header().ClientName(), Private: l.servers.Private}
		if server, tool, ok := l.servers.Origin(o.Tool); ok {
			e.Server, e.Tool = server, tool
		}
		entries = append(entries, e)
	}
	list, err := tasklist.Open(factory.StateDir())
	if err == nil {
		err = list.SetOpen(l.ID(), entries)
	}
	if err != nil {
		l.Warn("dowel task list does not show the tasks of this conversation: %v", err)
	}
}

// ReleaseTasks keeps open tasks in the list that the conversation drops without their ends.
func (l *Log) ReleaseTasks(dropped []opentask.Task) error {
	if l.Session == nil || len(dropped) == 0 {
		return nil
	}
	list, err := tasklist.Open(factory.StateDir())
	if err != nil {
		return err
	}
	var ids []string
	for _, o := range dropped {
		ids = append(ids, o.ID)
	}
	return list.Release(l.ID(), ids...)
}
