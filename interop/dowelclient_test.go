package interop

import (
	"strings"
	"testing"
)

// Tests of package client with the peers' servers. They run the checks that the peers' clients run
// with dowel's server.

const (
	// Checks that need a session in the legacy era: without one, a server receives no answers and
	// has no stream.
	notSessionless = "logging,elicitation,sampling,roots,tool list changed,watched resource,session end"
	// Checks that need event streams.
	notInJSON = "progress,cancel a call,cancel reaches the server,logging"
)

func TestDowelClient(t *testing.T) {
	for _, test := range []struct {
		server, carrier, path string
		version, expect       string // the revision to ask for, and the expected one; see checks.Line
		without               []string
	}{
		{"gosdk-server", overStdio, "", "", modernRevision, nil},
		{"gosdk-server", overStdio, "", "2025-11-25", "", nil},
		{"gosdk-server", overHTTP, "/mcp", "", "2025-11-25", nil},
		{"gosdk-server", overHTTP, "/mcp", "2025-06-18", "", nil},
		{"gosdk-server", overHTTP, "/mcp", "2025-03-26", "", []string{"elicitation"}}, // dowel does not declare it in this revision
		{"gosdk-server", overHTTP, "/stateless", "", modernRevision, nil},
		{"gosdk-server", overHTTP, "/stateless", "2025-11-25", "", []string{notSessionless, "cancel reaches the server"}},
		{"gosdk-server", overHTTP, "/json", "", modernRevision, []string{notInJSON}},
		{"gosdk-server", overSSE, "/sse", "", "2025-11-25", nil},
		{"mcpgo-server", overStdio, "", "", modernRevision, nil},
		{"mcpgo-server", overStdio, "", "2025-11-25", "", nil},
		// Over HTTP the SDK sends no updates in the modern era.
		{"mcpgo-server", overHTTP, "/mcp", "", modernRevision, []string{"watched resource"}},
		{"mcpgo-server", overHTTP, "/mcp", "2025-11-25", "", nil},
		{"mcpgo-server", overHTTP, "/mcp", "2025-03-26", "", nil},
		{"mcpgo-server", overHTTP, "/stateless", "", modernRevision, []string{"watched resource"}},
		{"mcpgo-server", overHTTP, "/stateless", "2025-11-25", "",
			[]string{"elicitation,sampling,roots,session end", "cancel reaches the server"}},
		// Over HTTP+SSE the SDK asks its clients no questions, and answers messages after the end
		// with 400, not 404.
		{"mcpgo-server", overSSE, "/sse", "", "2025-11-25", []string{"elicitation,sampling,roots,session end"}},
		{"server-v2", overHTTP, "/mcp", "", modernRevision, nil},
		{"server-v2", overWebSocket, "/ws", "", modernRevision, nil},
		{"server-v2", overWebSocket, "/ws", "2025-11-25", "", []string{"watched resource"}}, // the SDK does not have it in the legacy era
		// The SDK has no sessions in the legacy era.
		{"server-v2", overHTTP, "/mcp", "2025-11-25", "", []string{notSessionless, "cancel reaches the server"}},
	} {
		t.Run(strings.TrimSpace(test.server+" "+test.path+" "+test.version), func(t *testing.T) {
			t.Parallel()
			without := strings.Join(append(test.without, notInPeers), ",")
			runClient(t, binaryPath(t, "dowel-client"), "-carrier", test.carrier, "-version", test.version, "-expect", test.expect,
				"-without", without, peerServer(t, test.server, test.path))
		})
	}
}

// Control test: the same client with dowel's server. If it passes and a test above fails, the peers
// differ from dowel.
func TestDowelClientOfDowel(t *testing.T) {
	for _, test := range []struct{ carrier, path, version, expect string }{
		{overHTTP, "/mcp", "", modernRevision},
		{overHTTP, "/mcp", "2025-11-25", ""},
		{overSSE, "/sse", "", "2025-11-25"},
		{overWebSocket, "/ws", "", modernRevision},
		{overWebSocket, "/ws", "2025-11-25", ""},
	} {
		t.Run(test.carrier+" "+test.version, func(t *testing.T) {
			t.Parallel()
			runClient(t, binaryPath(t, "dowel-client"), "-carrier", test.carrier, "-version", test.version, "-expect", test.expect,
				"-without", notInEverything, target(test.carrier, startService(t, dowelService(t)).urlOf(test.path)))
		})
	}
}
