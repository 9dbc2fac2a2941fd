// Package mcptest tests servers and clients at the level of messages. A tap follows a connection
// and fails the test for each message that the protocol revision in use does not allow. A
// transcript is a text file of the messages of one connection, which [Transcript] plays to a
// server. [Main] fails a package's tests if they leave a goroutine behind.
//
//	func TestMain(m *testing.M) { mcptest.Main(m) }
//
//	func TestForecast(t *testing.T) {
//		s := server.New("weather", "1.0.0", nil)
//		server.Tool(s, "forecast", "The forecast of a city.", forecast)
//		c, err := client.Dial(t.Context(), s, &client.Options{Wire: client.Wire{Tap: mcptest.ClientTap(t)}})
//		if err != nil {
//			t.Fatal(err)
//		}
//		defer c.Close()
//		…
//	}
//
// # Checks
//
// A test whose peer misbehaves on purpose switches off the checks that the peer breaks, by
// name, with [WithoutChecks], or all checks of the messages that the peer sends with [SentOnly]:
//
//	framing       a frame is one JSON value in UTF-8 on one line, without duplicate names
//	schema        a message matches its revision's schema.json
//	direction     only the role for which a method is defined sends it
//	batching      batches are sent in 2025-03-26 only
//	meta          a modern request has its protocol version and client capabilities in _meta
//	lifecycle     a legacy session is initialized once, before anything else
//	request-id    ids and progress tokens in use are not used again
//	response-id   a response has the id of a request
//	after-end     nothing is sent for a request after its response or cancellation
//	cancellation  only requests of the same direction are cancelled, and never initialize
//	progress      a token belongs to a request, and its progress increases
//	log           a modern log message follows a request for its level
//	subscription  a change notification belongs to a subscription that asked for it
//	result-type   a modern result has a known resultType
//	cache         a cacheable modern result has ttlMs and cacheScope
//	legacy        a legacy message has no members of the modern era
//	capability    a client is asked only for capabilities that it declared
//	error-code    reserved error codes are defined in the revision
package mcptest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests, and fails them if a goroutine is left behind. Call it from TestMain:
//
//	func TestMain(m *testing.M) { mcptest.Main(m) }
func Main(m *testing.M) { goleak.VerifyTestMain(m) }
