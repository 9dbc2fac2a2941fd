// Package client calls MCP servers of every revision of the protocol.
//
//	c, err := client.Dial(ctx, []string{"npx", "-y", "@modelcontextprotocol/server-everything"}, nil)
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	sum, err := client.Call[string](ctx, c, "get-sum", map[string]int{"a": 2, "b": 3})
//
// [Dial] takes a URL, a command, or a server of this process, and returns a [Client] that is ready.
// [Call] calls a tool and decodes its result; [Client.Tools], [Client.Resources] and
// [Client.Prompts] iterate over lists of any length; [Client.Watch] delivers changes.
//
// # Questions of the server
//
// A server may ask while it handles a call: for input of the user, a message of a model, or the
// folders it may work on. Set the functions that answer in [Options].Answers. The client declares
// only the functions that are set, and calls them in the same way for servers of all revisions.
//
// # Lost connections
//
// The client keeps the connection alive. When it is lost, running calls fail with an error that
// wraps [mcp.ErrConnection], and the client dials again with back-off ([Restart]). Later calls wait
// for the new connection. Only lists and server/discover, which change nothing, are sent again; a
// request that never left the client, because an HTTP server refused the connection, is retried
// too. [Options].OnState and [Client.State] report the state.
//
// # Limits, caching and errors
//
// Calls have no time limit of their own unless [Limits] sets one; the context's deadline always
// counts. Results are cached as long as the server allows.
//
// Errors name the server, the method and the tool. Use [errors.As] to find a [*ToolError] (the tool
// reported a failure), an [*mcp.Error] (the server answered with a protocol error) or a
// [*TimeoutError] (a limit was exceeded), and [errors.Is] to find [mcp.ErrConnection] or
// [mcp.ErrClosed].
//
// All functions and methods of this package may be called concurrently.
package client
