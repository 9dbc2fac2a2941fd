package interop

import (
	"strings"
	"testing"
)

// overWebSocket is the carrier WebSocket, as the clients' command lines name it. Of the peers' clients only the TypeScript SDK v1
// has it.
const overWebSocket = "ws"

// target returns the URL for a carrier of a server that is at an HTTP URL.
func target(carrier, url string) string {
	if carrier == overWebSocket {
		return "ws" + strings.TrimPrefix(url, "http")
	}
	return url
}

// The TypeScript SDK's client over WebSocket. Node 20 has the class WebSocket behind a flag.
func TestWebSocketClientOfDowel(t *testing.T) {
	t.Parallel()
	url := target(overWebSocket, serve(t, dowelService(t)).at("/ws"))
	runClient(t, "node", "--experimental-websocket", script(t, "client-v1.mjs"), "--server", "dowel", "--carrier", overWebSocket, url)
}
