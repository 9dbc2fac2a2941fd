// Package calling is the calling side of MCP: it sends requests to a server and delivers the
// replies and notifications.
//
// Type caller is an [mcp.Transport]. Each request in flight is an exchange (roundtrip.go), which
// waits for its reply and queues its notifications (queue.go). A reading loop assigns each
// received frame to its exchange; frames without one are counted and logged (unaddressed.go).
// Requests of a legacy server reach the Inbound as questions (question.go). If the transport sends
// each message separately, as over HTTP, a [Carrier] replaces the Conn (carrier.go).
//
// The interface era holds everything in which the eras differ; modernEra and legacyEra implement
// it. Connect finds out which one the server speaks by sending server/discover (connect.go).
package calling
