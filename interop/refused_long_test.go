//go:build long

package interop

import (
	"fmt"
	"testing"
)

var largeRefused = []refusedClient{
	{
		name: "claude", folder: "large", words: words("mcp", "list"), config: ".claude.json", shows: true,
		write: func(url, header string) string {
			return fmt.Sprintf(`{"mcpServers": {"gate": {"type": "http", "url": %q%s}}}`, url, headersMember(header))
		},
	},
	{
		name: "codex", folder: "large", words: words("mcp", "list"), config: ".codex/config.toml",
		write: func(url, header string) string {
			text := fmt.Sprintf("[mcp_servers.gate]\nurl = %q\n", url)
			if header != "" {
				text += fmt.Sprintf("http_headers = { Authorization = %q }\n", header)
			}
			return text
		},
	},
	{
		name: "opencode", folder: "large", words: words("mcp", "list"), config: ".config/opencode/opencode.json",
		write: func(url, header string) string {
			return fmt.Sprintf(`{"mcp": {"gate": {"type": "remote", "url": %q, "enabled": true%s}}}`, url, headersMember(header))
		},
	},
}

// The same with the clients that are too large to install for each run.
func TestRefusedLargeClients(t *testing.T) { testRefused(t, "refused-large.txt", largeRefused) }
