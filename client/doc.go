// Package client calls MCP servers, in every revision of the protocol.
//
//	c, err := client.Dial(ctx, []string{"npx", "-y", "@modelcontextprotocol/server-everything"}, nil)
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	sum, err := client.Call[string](ctx, c, "get-sum", map[string]int{"a": 2, "b": 3})
//
// [Dial] returns a [Client] that is ready. It keeps the connection alive: when that is lost, calls in flight fail with
// an error that wraps [mcp.ErrConnection], and the server is dialed again with back-off ([Restart]). Only lists and
// server/discover, which change nothing, are sent once more over the new connection; nothing else is replayed. What could not
// be sent, since an HTTP server did not accept connections, is tried as often as Restart says. Calls made
// meanwhile wait. [Options.OnState] and [Client.State] tell how it goes.
//
// What a server asks (elicitation, sampling, roots) is answered by the functions in [Options], in both eras; only what
// has a function is declared to the server.
//
// Lists are iterators over all pages ([Client.Tools]); results that the server lets clients reuse are cached;
// [Client.Watch] delivers changes and listens again by itself.
//
// Errors name the server, the method and the tool. Look into them with [errors.As]: [*ToolError] for what a tool
// reports to the model, [*mcp.Error] for a protocol error, [*TimeoutError] for a limit of this client; and with
// [errors.Is]: [mcp.ErrConnection], [mcp.ErrClosed].
//
// A Client is safe for concurrent use.
package client
