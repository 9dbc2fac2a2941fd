// Package transport holds the contracts between MCP and the wire. A [Conn] is a channel that
// carries all messages of a connection; a [Dialer] opens connections to one server. [ServerOptions]
// and [ClientOptions] configure the two sides, and a [Tap] sees every frame.
//
// The packages below it carry the messages:
//
//   - stdio starts servers as child processes and serves on standard streams
//   - streamable is Streamable HTTP, sse is HTTP+SSE of revision 2024-11-05
//   - websocket is WebSocket with the subprotocol mcp
//   - memory connects a client and a server in one process
//   - overconn makes a transport of your own Conn
package transport
