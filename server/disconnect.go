package server

import (
	"context"

	"github.com/dowel-mcp/dowel/mcp"
)

// Disconnect ends the connection that carries the messages of the call, while the call goes on: the client comes back for
// what it sends from then on, which spares both sides a connection that is held for long. It reports whether that was done:
// false wherever a client would not come back, as everywhere but on legacy sessions over Streamable HTTP since 2025-11-25.
func Disconnect(ctx context.Context) bool {
	c := callFrom(ctx)
	if c == nil {
		return false
	}
	d, ok := c.req.Peer.(mcp.Disconnecter)
	return ok && d.Disconnect()
}
