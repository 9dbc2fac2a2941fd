// Package server builds MCP servers. A [Server] is an [mcp.Handler]: give it to a transport, to a middleware, to a gateway
// or to a test.
//
//	s := server.New("weather", "1.0.0", nil)
//	server.Tool(s, "get_alerts", "Active weather alerts for a US state.",
//		func(ctx context.Context, in AlertsIn) ([]Alert, error) { return fetch(ctx, in.State) })
//	stdio.Serve(ctx, s)
//
// # Handlers
//
// [Tool], [Resource] and [Prompt] take a plain function and infer the rest from its types; each panics on a mistake, since
// that is one of the program's. [NewTool], [NewResource] and [NewPrompt] return the mistake instead, and [Server.Add] adds
// what they made, also while serving. Everything else that a handler may want comes from its context: [RequestFrom],
// [Progress], [Log], [Ask] and its kin, [Once].
//
// What a handler returns as an error reaches the peer like this:
//
//	an *[mcp.Error], also wrapped        a protocol error with its code
//	an *[mcp.CapabilityError], wrapped   the client lacks something: in the form that its era has
//	[fs.ErrNotExist] of a resource       resource not found
//	any other error of a tool            a tool error, whose text the model reads
//	any other error elsewhere            an internal error without text; the text goes to the log
//	a panic                              an internal error; the stack goes to the log
//
// # Asking
//
// [Ask], [AskAll], [AskURL], [AskRaw], [Sample] and [Roots] return [ErrInputRequired] where the answer is not there yet. The
// handler passes it up like any error; the question goes out, and with the answer the handler runs again from the top. What
// it does before a question is therefore done once per round: wrap what must not be repeated in [Once]. [AskURL] alone waits
// within a round, up to ten seconds.
//
// # Limits
//
// A page of a list holds 1,000 items, a request state 16 KiB and 15 minutes (in a legacy session as long as the call), a
// completion 100 values, one request sends 100 log messages and 50 progress notifications a second after a burst. A
// subscription holds 4,096 resource URIs and queues 1,024 changes. [Options] names those that can be changed.
//
// All functions and methods of this package are safe for concurrent use unless they say otherwise.
package server
