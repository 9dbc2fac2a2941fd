package draft

import (
	"strings"
	"testing"
)

// The text of a file that is shown has no secret, whatever tool it belongs to.
func TestMaskSecrets(t *testing.T) {
	t.Parallel()
	for path, text := range map[string]string{
		"/x/.cursor/mcp.json":     `{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "hidden-1"}, "args": ["--token", "hidden-2"]}, "keep": {"command": "visible"}}}`,
		"/x/zed/settings.json":    "{\"assistant\": {\"api_key\": \"hidden-3\"},\n\"context_servers\": {\"keep\": {\"command\": \"visible\"}}}",
		"/x/.codex/config.toml":   "openai_api_key = \"hidden-4\"\n[mcp_servers.keep]\ncommand = \"visible\"\nhttp_headers = {Authorization = \"Bearer hidden-5\"}\n",
		"/x/goose/config.yaml":    "SOME_TOKEN: hidden-6\nextensions:\n  keep:\n    cmd: visible\n    envs:\n      A_SECRET: 'hidden-7'\n",
		"/x/.claude.json":         `{"projects": {"/p": {"mcpServers": {"a": {"command": "visible", "env": {"GITHUB_TOKEN": "hidden-8"}}}}}}`,
		"/x/.config/settings.txt": `password=hidden-9 name=visible`,
	} {
		got := MaskText(path, []byte(text))
		if strings.Contains(got, "hidden") || !strings.Contains(got, "visible") {
			t.Errorf("%s: %s", path, got)
		}
	}
	text := `{"mcpServers": {"a": {"env": {"API_KEY": "${API_KEY}", "B_TOKEN": "${env:B}"}, "headers": {"Authorization": "Bearer ${input:key}"}}}}`
	if got := MaskText("/x/.cursor/mcp.json", []byte(text)); got != text {
		t.Errorf("variables are hidden: %s", got)
	}
}
