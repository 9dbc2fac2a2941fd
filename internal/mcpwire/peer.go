package mcpwire

import (
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Announcer is an [mcp.Peer] that can often send a change without waiting. TryChange reports
// whether it sent the change; if not, call Change.
type Announcer interface {
	TryChange(c mcp.Notification) bool
}

// Disconnecter is an [mcp.Peer] that can close its connection while the request continues; the
// client reconnects for later messages. Disconnect reports whether it closed the connection.
type Disconnecter interface {
	Disconnect() bool
}

// Identified is an [mcp.Peer] that knows the id of its request on the wire.
type Identified interface {
	RequestID() jsonrpc.ID
}
