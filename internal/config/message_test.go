package config

import (
	"strings"
	"testing"
)

// A problem of an entry names the position, the server, the field and a remedy.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		entry  string
		column int // of the entry
		parts  []string
	}{
		{`{"type": "carrier pigeon", "url": "https://h/mcp"}`, 10, []string{`server type "carrier pigeon"`, `"stdio", "http", "sse" or "ws"`}},
		{`{"type": "stdio", "args": ["x"]}`, 10, []string{`type "stdio" must have a command`, "args and env"}},
		{`{"type": "sse", "headers": {}}`, 10, []string{`type "sse" must have a url`, "headers are optional"}},
		{`{"type": "streamable-http"}`, 10, []string{`type "streamable-http" must have a url`, "headers are optional"}},
		{`{"type": "sse", "command": "x"}`, 10, []string{`type "sse" must have a url`}},
		{`{"type": "stdio", "url": "https://h/mcp"}`, 10, []string{`type "stdio" must have a command`}},
		{`{"command": "x", "url": "https://h/mcp"}`, 25, []string{"both a command and a url", "use command, args and env", "use url and headers"}},
		{`{"env": {"A": "b"}}`, 1, []string{"neither a command nor a url", "add the program", "or the URL"}},
		{`{"command": " "}`, 13, []string{"command is empty", "write the program"}},
		{`{"url": "example.com"}`, 9, []string{"url must begin with https:// or http://", "write a URL such as"}},
		{`{"type": "ws", "url": "https://example.com"}`, 23, []string{"url must begin with wss:// or ws://", "write a URL such as wss://"}},
		{`{"type": "websocket"}`, 10, []string{`type "websocket" must have a url`}},
		{`{"type": "http", "url": "ws://example.com"}`, 25, []string{"url must begin with https:// or http://"}},
		{`{"url": "ws:///path"}`, 9, []string{"url has no host"}},
		{`{"command": "x", "args": "a b"}`, 26, []string{"args must be a list, not a string", `write ["a b"]`}},
		{`{"command": "x", "env": {"A": []}}`, 31, []string{"env.A must be a string, not a list"}},
		{`{"url": "https://h/mcp", "headers": "x"}`, 37, []string{"headers must be an object, not a string"}},
		{`{"command": "x", "disabled": "no"}`, 30, []string{"disabled must be a boolean", "write true or false"}},
		{`{"command": "x", "timeout": 60}`, 29, []string{"timeout is a number without a unit", `"60s"`}},
		{`{"command": "x", "timeout": "0s"}`, 29, []string{"timeout cannot be", "above zero"}},
		{`{"command": "x", "alwaysAllow": "*"}`, 33, []string{"alwaysAllow must be a list", `write ["*"]`}},
		{`{"url": "https://h/mcp", "oauth": {"grant": "implicit"}}`, 45, []string{`oauth.grant cannot be "implicit"`, "want interactive or client_credentials"}},
		{`{"url": "https://h/mcp", "oauth": {"params": []}}`, 46, []string{"oauth.params must be an object, not a list"}},
		{`{"command": "x", "disabledTools": {}}`, 35, []string{"tools.hide must be a list"}},
	} {
		const before = `{"mcpServers": {"s": `
		read := fileContents{File: File{Path: "/src/app/dowel.json", Scope: Project}}.parseText([]byte(before+c.entry+`}}`), lookupDialect(Own), Options{GOOS: "linux"})
		if len(read.servers) != 1 || read.servers[0].Valid() {
			t.Errorf("%s is valid", c.entry)
			continue
		}
		s := read.servers[0]
		got := s.Problems[len(s.Problems)-1]
		for _, part := range append(c.parts, `/src/app/dowel.json:1:`, `error: server "s": `) {
			if !strings.Contains(got.String(), part) {
				t.Errorf("%s: %q is not in %s", c.entry, part, got)
			}
		}
		at := len(before) + c.column
		if got.Position == s.At {
			at = len(`{"mcpServers": {`) + 1
		}
		if got.Column != at {
			t.Errorf("%s: it is in column %d, and said to be in column %d", c.entry, at, got.Column)
		}
	}
}

// Every entry tells how its server is reached, whichever tool it was written for. If it does not
// say which HTTP transport, the kind is Auto.
func TestKinds(t *testing.T) {
	for entry, want := range map[string]Kind{
		`{"command": "x"}`:                                 Stdio,
		`{"command": "x", "type": "stdio"}`:                Stdio,
		`{"command": ["x", "y"], "type": "local"}`:         Stdio,
		`{"url": "https://h/mcp"}`:                         Auto,
		`{"url": "https://h/mcp", "type": "remote"}`:       Auto,
		`{"url": "https://h/mcp", "type": "http"}`:         HTTP,
		`{"url": "https://h", "type": "streamable-http"}`:  HTTP,
		`{"url": "https://h", "type": "streamableHttp"}`:   HTTP,
		`{"httpUrl": "https://h/mcp"}`:                     HTTP,
		`{"url": "https://h/sse", "type": "sse"}`:          SSE,
		`{"url": "https://h/sse", "transportType": "sse"}`: SSE,
		`{"serverUrl": "https://h/sse", "headers": {}}`:    Auto,
	} {
		if d := resolveEntry(t, entry); d.Kind != want || len(d.Server.Problems) > 0 {
			t.Errorf("%s is of kind %s, want %s: %v", entry, d.Kind, want, d.Server.Problems)
		}
	}
}
