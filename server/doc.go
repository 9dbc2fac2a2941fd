// Package server builds MCP servers. A [Server] is an [mcp.Handler]: give it to a transport, a
// middleware, a gateway or a test.
//
//	s := server.New("weather", "1.0.0", nil)
//	server.Tool(s, "get_alerts", "Active weather alerts for a US state.",
//		func(ctx context.Context, in AlertsIn) ([]Alert, error) { return fetch(ctx, in.State) })
//	stdio.Serve(ctx, s)
//
// # Handlers
//
// [Tool], [Resource] and [Prompt] take a plain function and infer names, schemas and encodings from
// its types. They panic on mistakes, which are mistakes of the program. [NewTool], [NewResource]
// and [NewPrompt] return an error instead, and [Server.Add] adds their items, also while the server
// is running. A handler reaches everything else through its context: [RequestFrom], [Progress],
// [Log], [Ask], [Once].
//
// The error of a handler reaches the client in this form:
//
//	an *[mcp.Error], also wrapped        a protocol error with its code
//	an *[mcp.CapabilityError], wrapped   the error of a missing client capability
//	[fs.ErrNotExist] of a resource       resource not found
//	any other error of a tool            a tool error, whose text the model reads
//	any other error elsewhere            an internal error without text; the text is logged
//	a panic                              an internal error; the stack is logged
//
// # Asking
//
// [Ask], [AskAll], [AskURL], [AskRaw], [Sample] and [Roots] return [ErrInputRequired] until the
// client has answered. The handler returns that error like any other. The server then sends the
// question, and when the answer arrives it runs the handler again from the top, where the same call
// of Ask returns the answer. Code before a question therefore runs once per round: wrap steps that
// must not be repeated in [Once]. [AskURL] alone waits within a round, up to ten seconds.
//
// # Limits
//
// A page of a list holds 1,000 items, a request state 16 KiB for 15 minutes (in a legacy session
// for as long as the call), a completion 100 values. One request sends 100 log messages and 50
// progress notifications a second after a burst. A subscription holds 4,096 resource URIs and
// queues 1,024 changes. [Options] has the limits that can be changed.
//
// All functions and methods of this package may be called concurrently unless their comment says
// otherwise.
package server
