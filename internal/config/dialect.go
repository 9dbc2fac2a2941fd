package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Names of the dialects that [Load] reads.
const (
	Own        = "dowel"
	ClaudeCode = "claude-code"
)

// Dialect describes the configuration files of one tool.
type Dialect struct {
	// Name identifies the tool in dowel, such as cursor. Title is the tool's own name.
	Name, Title string
	// Key is the path to the servers: an object by name, or a list of objects with names.
	Key []string
	// timeout is the unit of a timeout that is a number. 0 means that the tool's documentation does
	// not say.
	timeout time.Duration
	// startTimeout means that timeout limits the start of the server, not a call.
	startTimeout bool
	// bareURL is the kind of a server with a url and no type. Empty means [Auto].
	bareURL Kind
	// bareVariables means that $VAR is a variable too, and %VAR% on Windows.
	bareVariables bool
	// user and project are path templates; see [Options.expandTemplate].
	user, project []string
	// nested are the paths to the servers in files with another structure, by file name.
	nested map[string][]string
}

var (
	mcpServers     = []string{"mcpServers"}
	ownFiles       = []string{"dowel.json", "dowel.jsonc", "dowel.yaml", "dowel.yml", "dowel.toml"}
	clineFile      = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
	devcontainer   = []string{"customizations", "vscode", "mcp", "servers"}
	managedClaude  = []string{"linux: /etc/claude-code/managed-mcp.json", "darwin: /Library/Application Support/ClaudeCode/managed-mcp.json", "windows: C:/Program Files/ClaudeCode/managed-mcp.json"}
	userFilesOfOwn = []string{"{config}/dowel/dowel.json", "{config}/dowel/dowel.jsonc", "{config}/dowel/dowel.yaml", "{config}/dowel/dowel.yml", "{config}/dowel/dowel.toml"}
)

var dialects = []*Dialect{
	{Name: Own, Title: "dowel", Key: mcpServers, user: userFilesOfOwn, project: ownFiles},
	{Name: ClaudeCode, Title: "Claude Code", Key: mcpServers, timeout: time.Millisecond,
		user: append([]string{"{CLAUDE_CONFIG_DIR|~}/.claude.json"}, managedClaude...), project: []string{".mcp.json"}},
	{Name: "claude-desktop", Title: "Claude Desktop", Key: mcpServers, user: []string{
		"{config}/Claude/claude_desktop_config.json", "linux: {config}/claude/claude_desktop_config.json"}},
	{Name: "cursor", Title: "Cursor", Key: mcpServers, user: []string{"~/.cursor/mcp.json"}, project: []string{".cursor/mcp.json"}},
	{Name: "vscode", Title: "VS Code", Key: []string{"servers"}, user: []string{
		"{config}/Code/User/mcp.json", "{config}/Code - Insiders/User/mcp.json", "~/.vscode-server/data/User/mcp.json",
		"{config}/Code/User/settings.json", "{config}/Code - Insiders/User/settings.json"}, // until version 1.102
		project: []string{".vscode/mcp.json", ".devcontainer/devcontainer.json", ".devcontainer.json", ".vscode/settings.json"},
		nested:  map[string][]string{"devcontainer.json": devcontainer, ".devcontainer.json": devcontainer, "settings.json": {"mcp", "servers"}}},
	{Name: "copilot", Title: "Copilot CLI", Key: mcpServers, timeout: time.Millisecond, user: []string{"{COPILOT_HOME|~/.copilot}/mcp-config.json"}, bareVariables: true},
	{Name: "cline", Title: "Cline", Key: mcpServers, timeout: time.Second, user: []string{
		"{CLINE_MCP_SETTINGS_PATH}", "{config}/Code/User/" + clineFile, "{config}/Cursor/User/" + clineFile, "~/.cline/data/settings/cline_mcp_settings.json"}},
	{Name: "roo", Title: "Roo Code", Key: mcpServers, timeout: time.Second, project: []string{".roo/mcp.json"},
		user: []string{"{config}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"}},
	{Name: "kilo", Title: "Kilo Code", Key: mcpServers, timeout: time.Second, // derived from Roo Code
		user: []string{"~/.kilocode/cli/global/settings/mcp_settings.json"}, project: []string{".kilocode/mcp.json"}},
	{Name: "windsurf", Title: "Windsurf", Key: mcpServers, user: []string{"~/.codeium/windsurf/mcp_config.json", "~/.codeium/mcp_config.json"}},
	{Name: "gemini", Title: "Gemini CLI", Key: mcpServers, timeout: time.Millisecond, bareURL: SSE, bareVariables: true,
		user: []string{"~/.gemini/settings.json"}, project: []string{".gemini/settings.json"}},
	{Name: "codex", Title: "Codex", Key: []string{"mcp_servers"}, timeout: time.Second,
		user: []string{"{CODEX_HOME|~/.codex}/config.toml"}, project: []string{".codex/config.toml"}},
	{Name: "goose", Title: "goose", Key: []string{"extensions"}, timeout: time.Second, bareVariables: true, user: []string{
		"linux: {XDG_CONFIG_HOME|~/.config}/goose/config.yaml", "darwin: ~/.config/goose/config.yaml", "windows: {config}/Block/goose/config/config.yaml"}},
	{Name: "lm-studio", Title: "LM Studio", Key: mcpServers, user: []string{"~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"}},
	{Name: "zed", Title: "Zed", Key: []string{"context_servers"}, project: []string{".zed/settings.json"}, user: []string{
		"linux: {XDG_CONFIG_HOME|~/.config}/zed/settings.json", "darwin: ~/.config/zed/settings.json", "windows: {config}/Zed/settings.json"}},
	{Name: "continue", Title: "Continue", Key: mcpServers, user: []string{"~/.continue/config.yaml"}, project: []string{".continue/mcpServers/*.yaml"}},
	{Name: "opencode", Title: "OpenCode", Key: []string{"mcp"}, timeout: time.Millisecond, startTimeout: true, user: []string{
		"{XDG_CONFIG_HOME|~/.config}/opencode/opencode.json", "{XDG_CONFIG_HOME|~/.config}/opencode/opencode.jsonc"},
		project: []string{"opencode.json", "opencode.jsonc"}},
	{Name: "amp", Title: "Amp", Key: []string{"amp.mcpServers"}, user: []string{"{XDG_CONFIG_HOME|~/.config}/amp/settings.json"}},
	{Name: "kiro", Title: "Kiro", Key: mcpServers, user: []string{"~/.kiro/settings/mcp.json"}, project: []string{".kiro/settings/mcp.json"}},
	{Name: "amazon-q", Title: "Amazon Q", Key: mcpServers, user: []string{"~/.aws/amazonq/mcp.json"}, project: []string{".amazonq/mcp.json"}},
	{Name: "antigravity", Title: "Antigravity", Key: mcpServers, user: []string{"~/.gemini/antigravity/mcp_config.json"}},
	{Name: "crush", Title: "Crush", Key: []string{"mcp"}, bareVariables: true, user: []string{"{XDG_CONFIG_HOME|~/.config}/crush/crush.json"}, project: []string{".crush.json", "crush.json"}},
	{Name: "factory", Title: "Factory", Key: mcpServers, user: []string{"~/.factory/mcp.json"}},
	{Name: "kimi", Title: "Kimi", Key: mcpServers, user: []string{"~/.kimi/mcp.json"}},
	{Name: "qoder", Title: "Qoder", Key: mcpServers, user: []string{"~/.qoder/mcp.json", "{config}/Qoder/User/mcp.json"}},
	{Name: "trae", Title: "Trae", Key: mcpServers, user: []string{"{config}/Trae/User/mcp.json"}},
	{Name: "vibe", Title: "Mistral Vibe", Key: []string{"mcp_servers"}, user: []string{"~/.vibe/config.toml"}},
	{Name: "sema4", Title: "Sema4", Key: mcpServers, user: []string{"~/.sema4ai/sema4ai-studio/mcp_servers.json"}},
	{Name: "inspector", Title: "MCP Inspector", Key: mcpServers, timeout: time.Millisecond, user: []string{"~/.mcp-inspector/mcp.json"}},
	{Name: "mcphost", Title: "mcphost", Key: mcpServers, user: []string{"~/.mcphost.yml", "~/.mcphost.json", "~/.mcp.json"}},
	{Name: "kit", Title: "kit", Key: mcpServers, user: []string{"~/.kit.yml"}, project: []string{".kit.yml"}},
	{Name: "openmanus", Title: "OpenManus", Key: mcpServers, project: []string{"config/mcp.json"}},
}

// Dialects returns all known dialects, dowel's own first.
func Dialects() []Dialect {
	all := make([]Dialect, len(dialects))
	for i, d := range dialects {
		all[i] = *d
	}
	return all
}

// LookupDialect returns the dialect with a name. The error suggests a similar name.
func LookupDialect(name string) (Dialect, error) {
	if d := lookupDialect(name); d != nil {
		return *d, nil
	}
	var names []string
	for _, d := range dialects {
		names = append(names, d.Name)
	}
	return Dialect{}, fmt.Errorf("no tool is called %q: %s", name, suggestOrList(name, names))
}

// lookupDialect returns the dialect with a name, or nil.
func lookupDialect(name string) *Dialect {
	if i := slices.IndexFunc(dialects, func(d *Dialect) bool { return d.Name == name }); i >= 0 {
		return dialects[i]
	}
	return nil
}

// serversKey returns the path to the servers in a file with this base name.
func (d *Dialect) serversKey(base string) []string {
	if keys := d.nested[base]; keys != nil {
		return keys
	}
	return d.Key
}

// isOwn reports whether d is dowel's own dialect, which takes durations only as strings.
func (d *Dialect) isOwn() bool { return d.Name == Own }

// detectDialect determines the dialect of a file from its path, otherwise from its keys.
func detectDialect(file string, root *node) *Dialect {
	file = strings.ReplaceAll(file, `\`, "/")
	var best *Dialect
	longest := 0
	for _, d := range dialects {
		for _, template := range append(append([]string{}, d.user...), d.project...) {
			if tail := templateTail(template); len(tail) > longest && matchesTail(file, tail) {
				best, longest = d, len(tail)
			}
		}
	}
	if best != nil {
		return best
	}
	for _, d := range []string{"zed", "amp", "codex", "vscode", "goose", "opencode"} {
		if known := lookupDialect(d); root.path(known.Key...) != nil && root.member("mcpServers") == nil {
			if d == "codex" && root.path(known.Key...).is(arrayNode) {
				return lookupDialect("vibe")
			}
			return known
		}
	}
	return lookupDialect(Own)
}

// templateTail returns the fixed end of a path template.
func templateTail(template string) string {
	if _, rest, ok := strings.Cut(template, ": "); ok {
		template = rest
	}
	tail := templateVariable().ReplaceAllString(template, "$2")
	if _, rest, ok := strings.Cut(tail, ":/"); ok { // a drive
		tail = rest
	}
	return strings.TrimLeft(tail, "~/")
}

// matchesTail reports whether the last elements of file match tail. The last element of tail may be
// a pattern.
func matchesTail(file, tail string) bool {
	files, tails := strings.Split(file, "/"), strings.Split(tail, "/")
	if tail == "" || len(files) < len(tails) {
		return false
	}
	files = files[len(files)-len(tails):]
	for i, part := range tails {
		if ok, _ := path.Match(part, files[i]); !ok {
			return false
		}
	}
	return true
}
