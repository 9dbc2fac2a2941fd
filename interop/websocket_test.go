package interop

import (
	"strings"
	"testing"
)

// overWebSocket is the name of the carrier WebSocket on the clients' command lines. Of the peers'
// clients, only the one on the TypeScript SDK v1 has it.
const overWebSocket = "ws"

// target returns the URL for a carrier, given the HTTP URL of the endpoint.
func target(carrier, url string) string {
	if carrier == overWebSocket {
		return "ws" + strings.TrimPrefix(url, "http")
	}
	return url
}

// The TypeScript SDK's client over WebSocket. Node 20 has the class WebSocket behind a flag.
func TestWebSocketClientOfDowel(t *testing.T) {
	t.Parallel()
	url := target(overWebSocket, startService(t, dowelService(t)).urlOf("/ws"))
	runClient(t, "node", "--experimental-websocket", scriptPath(t, "client-v1.mjs"), "--server", "dowel", "--carrier", overWebSocket, url)
}
