package interop

import (
	"strings"
	"testing"
)

// overWebSocket is a carrier that only the TypeScript SDK v1 has, as the client's command line names it.
const overWebSocket = "ws"

// The TypeScript SDK's client over WebSocket. Node 20 has the class WebSocket behind a flag.
func TestWebSocketClientOfDowel(t *testing.T) {
	t.Parallel()
	url := serve(t, dowelService(t)).at("/ws")
	runClient(t, "node", "--experimental-websocket", script(t, "client-v1.mjs"), "--server", "dowel", "--carrier", overWebSocket,
		"ws"+strings.TrimPrefix(url, "http"))
}
