package mcpremote

import (
	"reflect"
	"strings"
	"testing"
)

// The command lines in READMEs of servers and of mcp-remote itself are read.
func TestParse(t *testing.T) {
	t.Parallel()
	const u = "https://mcp.example/sse"
	for line, want := range map[string]Remote{
		"npx -y mcp-remote " + u: {URL: u},
		"npx mcp-remote@latest " + u + " 9696 --debug --host 1.2.3.4": {URL: u},
		"npx -y -p mcp-remote@0.1.2 mcp-remote " + u:                  {URL: u},
		"/usr/local/bin/mcp-remote --transport sse-only " + u:         {URL: u, Transport: "sse"},
		`cmd /c C:\x\mcp-remote.cmd ` + u + " --transport http-only":  {URL: u, Transport: "http"},
		"bunx mcp-remote " + u + " --transport http-first":            {URL: u},
		"npx mcp-remote " + u + " --header Authorization:${AUTH} --header X-A:b --resource https://r.example": {
			URL: u, Headers: map[string]string{"Authorization": "${AUTH}", "X-A": "b"}, Resource: "https://r.example"},
	} {
		words := strings.Fields(line)
		got, found, err := Parse(words[0], words[1:])
		if want.Headers == nil {
			want.Headers = map[string]string{}
		}
		if !found || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, %v", line, got, found, err)
		}
	}
	for _, line := range []string{"npx -y mcp-remote-other " + u, "npx mcp-remote", "npx mcp-remote-client " + u, "npx mcp-remote --help", "curl " + u} {
		words := strings.Fields(line)
		if got, found, err := Parse(words[0], words[1:]); found || err != nil {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
	for _, option := range []string{"--ignore-tool", "--static-oauth-client-info", "--device-code", "--header"} {
		if r, found, err := Parse("npx", []string{"mcp-remote", u, option, "value"}); !found || r.URL != u || err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("%s: %+v, %v, %v", option, r, found, err)
		}
	}
}
