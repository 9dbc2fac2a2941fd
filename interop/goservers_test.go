package interop

import (
	"bufio"
	"context"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/interop/peers/contract"
)

// dowel as the client of servers on the Go SDKs.

const modernRevision = "2026-07-28"

// peerServers are the ways to the servers that offer package contract, with the revision that dowel must find: the modern
// one, unless the SDK does not offer that there.
var peerServers = map[string]struct{ path, revision string }{
	"gosdk-server":            {"", modernRevision},
	"gosdk-server /mcp":       {"/mcp", "2025-11-25"},
	"gosdk-server /stateless": {"/stateless", modernRevision},
	"gosdk-server /json":      {"/json", modernRevision},
	"gosdk-server /sse":       {"/sse", "2025-11-25"},
	"mcpgo-server":            {"", modernRevision},
	"mcpgo-server /mcp":       {"/mcp", modernRevision},
	"mcpgo-server /stateless": {"/stateless", modernRevision},
	"mcpgo-server /sse":       {"/sse", "2025-11-25"},
	"server-v2 /mcp":          {"/mcp", modernRevision},
	"server-v2 /ws":           {"/ws", modernRevision},
}

// peerServer starts a server that serves over HTTP and returns its URL, or returns the command of one on stdio.
func peerServer(t *testing.T, name, path string) string {
	t.Helper()
	switch {
	case path == "":
		return built(t, name)
	case path == "/ws":
		return target(overWebSocket, serve(t, typeScriptService(t)).at(path))
	case name == "server-v2":
		return serve(t, typeScriptService(t)).at(path)
	}
	return serve(t, goService(t, name)).at(path)
}

func TestGoServers(t *testing.T) {
	for title, test := range peerServers {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			name, _, _ := strings.Cut(title, " ")
			server := []string{peerServer(t, name, test.path)}

			discovered := c.json(server, "discover")
			has(t, discovered, "name", name)
			has(t, discovered, "revision", test.revision)
			// The servers' pages hold four entries, and echo is not on the first.
			for _, tool := range []string{contract.SimpleText, contract.Echo, contract.Add, contract.ToolChange} {
				has(t, c.json(server, "tools"), "name", tool)
			}
			has(t, c.json(server, "prompts"), "name", contract.ArgsPrompt)
			has(t, c.json(server, "resources"), "uri", contract.TextURI)

			c.ok(server, words("call", contract.Echo, "message=grüße"), "grüße")
			has(t, c.json(server, "call", contract.Add, "a=19", "b=23"), "sum", 42.0)
			c.ok(server, words("call", contract.Progress), "done")
			c.ok(server, words("read", contract.TextURI), contract.TextContent)
			has(t, c.json(server, "read", contract.BinaryURI), "blob", contract.PNG)
			c.ok(server, words("read", "test://template/123/data"), "Data for ID: 123")
			c.ok(server, words("prompt", contract.ArgsPrompt, "arg1=one", "arg2=two"), contract.Greeting("one", "two"))
			c.ok(server, words("complete", contract.ArgsPrompt, "arg1=al"), "alpha")

			c.fails(server, words("call", contract.Failing), contract.FailingAnswer)
			c.fails(server, words("call", "no_such_tool"), "no_such_tool")
			c.fails(server, words("read", contract.MissingURI), contract.MissingURI)
			// Nobody can answer here: there is no terminal.
			c.fails(server, words("call", contract.AskUser, "message=Who are you?"))
		})
	}
}

func TestGoSDKEverythingServer(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := []string{built(t, "everything-server")}

	has(t, c.json(server, "tools"), "name", contract.SimpleText)
	c.ok(server, words("call", contract.SimpleText), contract.SimpleAnswer)
	has(t, c.json(server, "call", "test_audio_content"), "mimeType", "audio/wav")
	has(t, c.json(server, "call", "test_embedded_resource"), "uri", "test://embedded-resource")
	has(t, c.json(server, "call", "test_multiple_content_types"), "type", "resource")
	c.ok(server, words("call", contract.Progress))
	c.ok(server, words("read", contract.TextURI), contract.TextContent)
	c.ok(server, words("prompt", contract.ArgsPrompt, "arg1=one", "arg2=two"), contract.Greeting("one", "two"))
	c.fails(server, words("call", contract.Failing), "intentionally returns an error")
}

// A watch prints what changes, and ends with dowel.
func TestWatch(t *testing.T) {
	for title, words := range map[string][]string{
		"gosdk-server":            nil,
		"gosdk-server /mcp":       nil,
		"gosdk-server /stateless": nil,
		"gosdk-server /sse":       nil,
		"mcpgo-server":            nil,
		"mcpgo-server /mcp":       {"--revision", "2025-11-25"}, // over HTTP its modern era tells of no updates
		"mcpgo-server /sse":       nil,
		"server-v2 /mcp":          nil,
		"server-v2 /ws":           nil,
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			name, path, _ := strings.Cut(title, " ")
			server := []string{peerServer(t, name, path)}
			ctx, cancel := context.WithTimeout(context.Background(), runLimit)
			defer cancel()
			cmd := c.command(ctx, server, append([]string{"watch", contract.WatchedURI, "--json"}, words...)...)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			updates := 0
			for lines := bufio.NewScanner(stdout); updates < 2 && lines.Scan(); {
				if strings.Contains(lines.Text(), contract.WatchedURI) {
					updates++
				}
			}
			if updates < 2 {
				t.Errorf("%d updates of %s, want two", updates, contract.WatchedURI)
			}
			cancel()
			_ = cmd.Wait() // it was killed
			noneLeft(t, c.mark)
		})
	}
}
