package interop

import (
	"strings"
	"testing"
)

// dowel's package client does on the peers' servers what the peers' clients do on dowel's.

const (
	// What a server without sessions cannot do in the legacy era: it hears no answers, and has no stream of its own.
	notSessionless = "logging,elicitation,sampling,roots,tool list changed,watched resource,session end"
	// What cannot be seen without event streams.
	notInJSON = "progress,cancel a call,cancel reaches the server,logging"
)

func TestDowelClient(t *testing.T) {
	for _, test := range []struct {
		server, carrier, path string
		version, expect       string // the revision to ask for, and the one that must come of it
		without               []string
	}{
		{"gosdk-server", overStdio, "", "", modernRevision, nil},
		{"gosdk-server", overStdio, "", "2025-11-25", "", nil},
		{"gosdk-server", overHTTP, "/mcp", "", "2025-11-25", nil},
		{"gosdk-server", overHTTP, "/mcp", "2025-06-18", "", nil},
		{"gosdk-server", overHTTP, "/mcp", "2025-03-26", "", []string{"elicitation"}}, // which dowel does not declare there
		{"gosdk-server", overHTTP, "/stateless", "", modernRevision, nil},
		{"gosdk-server", overHTTP, "/stateless", "2025-11-25", "", []string{notSessionless, "cancel reaches the server"}},
		{"gosdk-server", overHTTP, "/json", "", modernRevision, []string{notInJSON}},
		{"gosdk-server", overSSE, "/sse", "", "2025-11-25", nil},
		{"mcpgo-server", overStdio, "", "", modernRevision, nil},
		{"mcpgo-server", overStdio, "", "2025-11-25", "", nil},
		// Over HTTP the SDK tells of no updates in the modern era.
		{"mcpgo-server", overHTTP, "/mcp", "", modernRevision, []string{"watched resource"}},
		{"mcpgo-server", overHTTP, "/mcp", "2025-11-25", "", nil},
		{"mcpgo-server", overHTTP, "/mcp", "2025-03-26", "", nil},
		{"mcpgo-server", overHTTP, "/stateless", "", modernRevision, []string{"watched resource"}},
		{"mcpgo-server", overHTTP, "/stateless", "2025-11-25", "",
			[]string{"elicitation,sampling,roots,session end", "cancel reaches the server"}},
		// Over HTTP+SSE the SDK asks nothing of its clients, and answers messages after the end with 400.
		{"mcpgo-server", overSSE, "/sse", "", "2025-11-25", []string{"elicitation,sampling,roots,session end"}},
		{"server-v2", overHTTP, "/mcp", "", modernRevision, nil},
		{"server-v2", overWebSocket, "/ws", "", modernRevision, nil},
		{"server-v2", overWebSocket, "/ws", "2025-11-25", "", []string{"watched resource"}}, // which its legacy era does not offer
		// Its legacy era has no sessions.
		{"server-v2", overHTTP, "/mcp", "2025-11-25", "", []string{notSessionless, "cancel reaches the server"}},
	} {
		t.Run(strings.TrimSpace(test.server+" "+test.path+" "+test.version), func(t *testing.T) {
			t.Parallel()
			without := strings.Join(append(test.without, notInPeers), ",")
			runClient(t, built(t, "dowel-client"), "-carrier", test.carrier, "-version", test.version, "-expect", test.expect,
				"-without", without, peerServer(t, test.server, test.path))
		})
	}
}

// The same on dowel's own server, so that what fails above can be told from what fails here.
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
			runClient(t, built(t, "dowel-client"), "-carrier", test.carrier, "-version", test.version, "-expect", test.expect,
				"-without", notInEverything, target(test.carrier, serve(t, dowelService(t)).at(test.path)))
		})
	}
}
