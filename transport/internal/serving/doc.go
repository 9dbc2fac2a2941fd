// Package serving is the serving side of MCP: it turns frames into calls of an [mcp.Handler] and
// results into frames.
//
// Requests arrive in one of two ways. [Serve] reads them from a [transport.Conn] that all messages
// share (serve.go, worker.go, drain.go). An [Edge] gets them one by one from an HTTP handler, and
// keeps a [Session] for each legacy client (edge_separate.go). Both create a call, the peer of the
// handler (call.go), and keep it in a table of the calls in flight (calls.go).
//
// The interface era holds everything in which the eras differ. Type modern implements it for
// revision 2026-07-28 and later; type session does for earlier revisions and also keeps the state
// of the client: log level, subscriptions (subscription.go) and open questions.
package serving
