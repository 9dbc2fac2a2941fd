// Package stdio speaks MCP over standard input and output, the way in which most hosts run their
// servers: one JSON-RPC message a line, in both directions.
//
// [Serve] makes the running program a server:
//
//	s := server.New("hello", "1.0", nil)
//	// … add tools
//	err := stdio.Serve(ctx, s) // returns nil when the client has closed standard input
//
// From then on, os.Stdout is standard error, so that a forgotten fmt.Println cannot corrupt the
// protocol; on Unix this covers child processes and C code too.
//
// A [Command] is a server to start as a child process. It is a [transport.Dialer]:
//
//	c, err := client.Dial(ctx, stdio.Command{Path: "npx", Args: []string{"-y", "some-server"}}, nil)
//	defer c.Close() // ends the process and everything that it has started
//
// Three problems of such servers are solved here. A program that the user has in a terminal is
// found even if a desktop application with a shorter PATH starts it (see [Command]). No process
// outlives its client, not even after SIGKILL (see [Child] for the exceptions). And an error
// contains the exit status and the last lines of stderr (see [ExitError]).
//
// The same wire format works on any stream of bytes, such as a socket: [ServeStream] serves on it,
// client.Dial takes it as a target, and [Conn] is the [transport.Conn] underneath.
package stdio
