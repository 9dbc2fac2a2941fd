package agentcmd

import (
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/session"
)

// clientName is the name of an agent at the running dowel. It is a name of the conversation, which
// owns its tasks in every process that continues it. Only a fork with open tasks shares it with its
// original.
type clientName struct{ name atomic.Pointer[string] }

// setConversation names the agent after a conversation. Without a session, the process has the
// name.
func (c *clientName) setConversation(s *session.Session) {
	name := daemon.ProcessName()
	if s != nil {
		name = s.Header().ClientName()
	}
	c.name.Store(&name)
}

// currentName returns the name for the next request.
func (c *clientName) currentName() string { return *c.name.Load() }
