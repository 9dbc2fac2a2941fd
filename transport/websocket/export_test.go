package websocket

import (
	"testing"
	"time"
)

// SetTimeouts changes pongTimeout, writeTimeout and firstMessageTimeout until the test ends. Call
// it before the first connection, in a test that does not run in parallel to others.
func SetTimeouts(t testing.TB, pong, write, first time.Duration) {
	p, w, f := pongTimeout, writeTimeout, firstMessageTimeout
	pongTimeout, writeTimeout, firstMessageTimeout = pong, write, first
	t.Cleanup(func() { pongTimeout, writeTimeout, firstMessageTimeout = p, w, f })
}
