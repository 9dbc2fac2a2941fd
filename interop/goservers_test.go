package interop

import (
	"bufio"
	"context"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/interop/peers/contract"
)

// Tests of dowel as the client of servers on the Go SDKs.

const modernRevision = "2026-07-28"

// peerServers maps a server and the path of its endpoint, if any, to the revision that dowel must
// negotiate: the modern one, unless the SDK does not have it there. The servers have the features
// of package contract.
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

// peerServer starts a server over HTTP and returns its URL. Without a path it returns the command
// of a server on stdio.
func peerServer(t *testing.T, name, path string) string {
	t.Helper()
	switch {
	case path == "":
		return binaryPath(t, name)
	case path == "/ws":
		return target(overWebSocket, startService(t, typeScriptService(t)).urlOf(path))
	case name == "server-v2":
		return startService(t, typeScriptService(t)).urlOf(path)
	}
	return startService(t, goService(t, name)).urlOf(path)
}

func TestGoServers(t *testing.T) {
	for title, test := range peerServers {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			name, _, _ := strings.Cut(title, " ")
			server := []string{peerServer(t, name, test.path)}

			discovered := c.runJSON(server, "discover")
			expectMember(t, discovered, "name", name)
			expectMember(t, discovered, "revision", test.revision)
			// The servers' pages hold four entries, and echo is not on the first.
			for _, tool := range []string{contract.SimpleText, contract.Echo, contract.Add, contract.ToolChange} {
				expectMember(t, c.runJSON(server, "tools"), "name", tool)
			}
			expectMember(t, c.runJSON(server, "prompts"), "name", contract.ArgsPrompt)
			expectMember(t, c.runJSON(server, "resources"), "uri", contract.TextURI)

			c.expectSuccess(server, words("call", contract.Echo, "message=grüße"), "grüße")
			expectMember(t, c.runJSON(server, "call", contract.Add, "a=19", "b=23"), "sum", 42.0)
			c.expectSuccess(server, words("call", contract.Progress), "done")
			c.expectSuccess(server, words("read", contract.TextURI), contract.TextContent)
			expectMember(t, c.runJSON(server, "read", contract.BinaryURI), "blob", contract.PNG)
			c.expectSuccess(server, words("read", "test://template/123/data"), "Data for ID: 123")
			c.expectSuccess(server, words("prompt", contract.ArgsPrompt, "arg1=one", "arg2=two"), contract.Greeting("one", "two"))
			c.expectSuccess(server, words("complete", contract.ArgsPrompt, "arg1=al"), "alpha")

			c.expectFailure(server, words("call", contract.Failing), contract.FailingAnswer)
			c.expectFailure(server, words("call", "no_such_tool"), "no_such_tool")
			c.expectFailure(server, words("read", contract.MissingURI), contract.MissingURI)
			// The question cannot be answered without a terminal.
			c.expectFailure(server, words("call", contract.AskUser, "message=Who are you?"))
		})
	}
}

func TestGoSDKEverythingServer(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := []string{binaryPath(t, "everything-server")}

	expectMember(t, c.runJSON(server, "tools"), "name", contract.SimpleText)
	c.expectSuccess(server, words("call", contract.SimpleText), contract.SimpleAnswer)
	expectMember(t, c.runJSON(server, "call", "test_audio_content"), "mimeType", "audio/wav")
	expectMember(t, c.runJSON(server, "call", "test_embedded_resource"), "uri", "test://embedded-resource")
	expectMember(t, c.runJSON(server, "call", "test_multiple_content_types"), "type", "resource")
	c.expectSuccess(server, words("call", contract.Progress))
	c.expectSuccess(server, words("read", contract.TextURI), contract.TextContent)
	c.expectSuccess(server, words("prompt", contract.ArgsPrompt, "arg1=one", "arg2=two"), contract.Greeting("one", "two"))
	c.expectFailure(server, words("call", contract.Failing), "intentionally returns an error")
}

// A watch prints the updates of a resource, and ends with dowel.
func TestWatch(t *testing.T) {
	for title, words := range map[string][]string{
		"gosdk-server":            nil,
		"gosdk-server /mcp":       nil,
		"gosdk-server /stateless": nil,
		"gosdk-server /sse":       nil,
		"mcpgo-server":            nil,
		"mcpgo-server /mcp":       {"--revision", "2025-11-25"}, // over HTTP the SDK sends no updates in the modern era
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
			expectNoneLeft(t, c.mark)
		})
	}
}
