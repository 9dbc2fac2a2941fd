package mcpwire

import (
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Announcer is an [mcp.Peer] that can often send a change without waiting. Both methods report
// whether they sent the change; if not, call Change.
type Announcer interface {
	TryChange(c mcp.Notification) bool
	// DeliverChange sends the change only to a client in this process, which joins equal changes.
	DeliverChange(c mcp.Notification) bool
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

// Withdrawer is an [mcp.Peer] that can withdraw its live questions. The questions of the
// input_required result that the handler returns next are withdrawn when done is closed: the
// handler gets the request again, with the request state and without answers. It is for legacy
// clients; modern ones cannot be told.
type Withdrawer interface {
	WithdrawWhen(done <-chan struct{})
}
