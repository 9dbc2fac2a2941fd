// Package websocket carries MCP over WebSocket, with the subprotocol "mcp". Each message of the
// protocol is one text message of the connection. The protocol's specification does not define this
// transport; the official TypeScript and Kotlin SDKs have it. [Handler] serves it to clients of
// every revision, and [URL] is an address for a client to dial:
//
//	endpoint := websocket.Handler(server, nil)
//	http.Handle("/ws", endpoint)
//	defer endpoint.Shutdown(ctx) // http.Server.Shutdown does not wait for these connections
//
//	c, err := client.Dial(ctx, websocket.URL{URL: "wss://example.com/ws"}, nil)
//
// All messages share one connection, so a legacy session lives as long as its connection, and the
// server's questions need no HTTP request of the client. Both sides send pings while the other side
// is silent, and end a connection whose pings are not answered.
package websocket

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// subprotocol is the WebSocket subprotocol of MCP.
const subprotocol = "mcp"

// defaultKeepAlive is the default of Options.KeepAlive.
const defaultKeepAlive = 15 * time.Second

// Options configure a [Server]. The zero value is ready to use.
type Options struct {
	// ServerOptions are the options that all transports share. An open connection counts as a
	// stream of the Quota.
	transport.ServerOptions
	// Guard decides which hosts and web pages may reach the server.
	Guard streamable.Guard
	// Principal returns the verified sender of the HTTP request that opens a connection, as far as
	// a handler or proxy in front has authenticated it. All requests of the connection have this
	// principal. It may be called concurrently. nil means the user whom package auth/resource has
	// verified, and ServerOptions.Principal without it.
	Principal func(*http.Request) mcp.Principal

	// MaxMessage is the largest message to accept from a client, in bytes. 0 means
	// [transport.DefaultMaxMessage]. A larger request is answered with an error.
	MaxMessage int
	// KeepAlive is the time of silence after which a client gets a ping, 15 s if it is 0. A
	// connection ends if its client is silent for 20 s more. A negative value disables both.
	KeepAlive time.Duration
}

// setDefaults replaces zero values.
func (o *Options) setDefaults() {
	if o.KeepAlive == 0 {
		o.KeepAlive = defaultKeepAlive
	}
	o.Quota = quota.Or(o.Quota)
	if o.Principal == nil {
		o.Principal = httpwire.PrincipalOr(o.ServerOptions.Principal)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}
