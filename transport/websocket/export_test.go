package websocket

import (
	"testing"
	"time"
)

// SetTimeouts changes how long a peer may be silent after a ping, leave a message unread, and send
// no first message, until the test ends. Call it before anything that uses them, in a test that
// does not run in parallel to others.
func SetTimeouts(t testing.TB, pong, write, first time.Duration) {
	p, w, f := pongTimeout, writeTimeout, firstMessage
	pongTimeout, writeTimeout, firstMessage = pong, write, first
	t.Cleanup(func() { pongTimeout, writeTimeout, firstMessage = p, w, f })
}
