package agentcmd

import (
	"strings"
	"testing"
)

func TestNamesOfServers(t *testing.T) {
	for command, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-everything": "everything",
		"npx -y @acme/mcp-server-github@1.2.3":           "github",
		"uvx mcp-server-git --repository .":              "git",
		"node build/index.js":                            "index",
		"python3 -m weather_mcp.py":                      "weather-mcp",
		"/opt/bin/My Server.exe":                         "My-Server",
		"docker run -i --rm mcp/puppeteer":               "puppeteer",
		"env A=b ./files-mcp":                            "files",
		"dowel serve kv":                                 "kv",
	} {
		words := strings.Fields(command)
		if command == "/opt/bin/My Server.exe" {
			words = []string{command}
		}
		if got := nameFromCommand(words); got != want {
			t.Errorf("%s is called %s, want %s", command, got, want)
		}
	}
	for url, want := range map[string]string{
		"https://mcp.linear.app/sse": "linear", "http://localhost:8080/mcp": "localhost", "https://api.githubcopilot.com/mcp/": "githubcopilot",
		"http://127.0.0.1:1/mcp": "server", "https://example.com": "example",
	} {
		if got := nameFromURL(url); got != want {
			t.Errorf("%s is called %s, want %s", url, got, want)
		}
	}
}
