package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// folderWith creates files, by path, below a new folder.
func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		if err := writeFile(filepath.Join(root, path), text); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPlaces(t *testing.T) {
	env := func(set string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for pair := range strings.FieldsSeq(set) {
				if key, value, _ := strings.Cut(pair, "="); key == name {
					return value, true
				}
			}
			return "", false
		}
	}
	for _, c := range []struct{ dialect, goos, env, want string }{
		{"dowel", "linux", "", "~/.config/dowel/dowel.json"},
		{"dowel", "linux", "XDG_CONFIG_HOME=/xdg", "/xdg/dowel/dowel.json"},
		{"dowel", "linux", "XDG_CONFIG_HOME=relative", "~/.config/dowel/dowel.json"},
		{"dowel", "darwin", "XDG_CONFIG_HOME=/xdg", "~/Library/Application Support/dowel/dowel.json"},
		{"dowel", "windows", `APPDATA=C:\Roaming`, `C:\Roaming\dowel\dowel.json`},
		{"dowel", "windows", "", `~\AppData\Roaming\dowel\dowel.json`},
		{"claude-desktop", "linux", "", "~/.config/Claude/claude_desktop_config.json ~/.config/claude/claude_desktop_config.json"},
		{"claude-desktop", "darwin", "", "~/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-code", "linux", "", "~/.claude.json /etc/claude-code/managed-mcp.json"},
		{"claude-code", "darwin", "CLAUDE_CONFIG_DIR=/c", "/c/.claude.json /Library/Application Support/ClaudeCode/managed-mcp.json"},
		{"claude-code", "windows", "", `~\.claude.json C:\Program Files\ClaudeCode\managed-mcp.json`},
		{"vscode", "windows", `APPDATA=C:\R`, `C:\R\Code\User\mcp.json C:\R\Code - Insiders\User\mcp.json ~\.vscode-server\data\User\mcp.json C:\R\Code\User\settings.json C:\R\Code - Insiders\User\settings.json`},
		{"codex", "linux", "CODEX_HOME=/codex", "/codex/config.toml"},
		{"codex", "linux", "", "~/.codex/config.toml"},
		{"copilot", "linux", "COPILOT_HOME=/cop", "/cop/mcp-config.json"},
		{"copilot", "linux", "COPILOT_HOME=", "~/.copilot/mcp-config.json"},
		{"goose", "darwin", "XDG_CONFIG_HOME=/xdg", "~/.config/goose/config.yaml"},
		{"goose", "windows", `APPDATA=C:\R`, `C:\R\Block\goose\config\config.yaml`},
		{"opencode", "linux", "XDG_CONFIG_HOME=/xdg", "/xdg/opencode/opencode.json /xdg/opencode/opencode.jsonc"},
		{"cline", "linux", "CLINE_MCP_SETTINGS_PATH=/cline.json", "/cline.json ~/.config/Code/User/globalStorage"},
		{"cline", "linux", "", "~/.config/Code/User/globalStorage"},
	} {
		d, err := LookupDialect(c.dialect)
		if err != nil {
			t.Fatal(err)
		}
		home := "/home/ada"
		if c.goos == "windows" {
			home = `C:\Users\ada`
		}
		var got []string
		for _, p := range d.Places(Options{Home: home, GOOS: c.goos, Env: env(c.env)}) {
			got = append(got, strings.Replace(p.Path, home, "~", 1))
		}
		if text := strings.Join(got, " "); !strings.HasPrefix(text, c.want) || c.dialect != "cline" && c.dialect != "dowel" && text != c.want {
			t.Errorf("%s on %s with %q: got %s, want %s", c.dialect, c.goos, c.env, text, c.want)
		}
	}
	if got := (Options{Home: "/home/ada", GOOS: "linux", Env: noEnv}).Dir(); got != "/home/ada/.config/dowel" {
		t.Errorf("Dir is %s", got)
	}
	d, _ := LookupDialect("cursor")
	want := []Place{{Path: `C:\Users\ada\.cursor\mcp.json`, Scope: User}, {Path: `C:\src\app\.cursor\mcp.json`, Scope: Project}}
	if got := d.Places(Options{Home: `C:\Users\ada`, Project: `C:\src\app`, GOOS: "windows", Env: noEnv}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNoDialectOfThatName(t *testing.T) {
	_, err := LookupDialect("curser")
	if err == nil || !strings.Contains(err.Error(), `no tool is called "curser": did you mean "cursor"?`) {
		t.Error(err)
	}
	if d, err := LookupDialect(""); err == nil || !strings.Contains(err.Error(), "write one of dowel, claude-code") {
		t.Error(d, err)
	}
	if found := Discover(Options{Home: t.TempDir(), GOOS: "linux", Env: noEnv}, "no such tool"); found != nil {
		t.Error(found)
	}
}

func TestPrecedence(t *testing.T) {
	server := func(where string) string {
		return `{"mcpServers": {"all": {"command": "` + where + `"}, "` + where + `": {"command": "x"}}}`
	}
	files := []string{"project/dowel.json", "project/dowel.jsonc", "project/.mcp.json", "home/.config/dowel/dowel.json", "home/.config/dowel/dowel.jsonc"}
	for i := range files { // take away one after the other: the next one wins
		all := map[string]string{"home/x": ""}
		for _, path := range files[i:] {
			all[path] = server(path)
		}
		set := Load(testOptions(folderWith(t, all)))
		if got := set.Server("all").Command; got != files[i] {
			t.Errorf("%s wins over %s", got, files[i])
		}
		if len(set.Shadowed) != len(files)-i-1 || len(set.Servers) != len(files)-i+1 || set.Servers[0].Name != "all" {
			t.Errorf("%d servers, %d shadowed", len(set.Servers), len(set.Shadowed))
		}
		for _, s := range set.Shadowed {
			if s.Name != "all" || s.By != set.Server("all") {
				t.Errorf("%s is shadowed by %s", s.Path, s.By.Path)
			}
		}
	}
}

func TestAnInvalidEntryStillShadows(t *testing.T) {
	root := folderWith(t, map[string]string{
		"project/dowel.json":            `{"mcpServers": {"a": {"command": ""}}}`,
		"home/.config/dowel/dowel.yaml": "mcpServers: {a: {command: x}, b: {command: y}}",
		"home/.config/dowel/dowel.toml": "mcpServers = 7\n[gateway\n",
	})
	set := Load(testOptions(root))
	if s := set.Server("a"); s.Valid() || s.Scope != Project || len(set.Shadowed) != 1 || !set.Server("b").Valid() {
		t.Errorf("%+v", set)
	}
	broken := 0
	for _, f := range set.Files {
		if f.Broken {
			broken++
			if filepath.Base(f.Path) != "dowel.toml" || f.Hash == "" {
				t.Errorf("%+v", f)
			}
		}
	}
	if broken != 1 || len(set.Problems) != 2 {
		t.Errorf("%d broken files, %v", broken, set.Problems)
	}
	if d, problems := set.Server("a").Resolve(set.Variables); d != nil || !hasErrors(problems) {
		t.Errorf("an invalid server has a definition: %v", problems)
	}
}

func TestOneFolderIsTheUsers(t *testing.T) {
	root := folderWith(t, map[string]string{"home/.config/dowel/dowel.json": `{"mcpServers": {"a": {"command": "x"}}, "gateway": {"address": "127.0.0.1:1"}}`})
	o := testOptions(root)
	o.Project = root + "/home/.config/dowel"
	if set := Load(o); len(set.Servers) != 1 || set.Servers[0].Scope != User || set.Gateway.Address == "" {
		t.Errorf("%+v", set)
	}
}

func TestUnreadableFile(t *testing.T) {
	root := folderWith(t, map[string]string{"project/dowel.json/x": "", "home/.config/dowel": "a file where a folder would be"})
	set := Load(testOptions(root))
	if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Error(), "dowel.json: error: the file cannot be read: is a directory") || !set.Files[0].Broken {
		t.Errorf("%v", set.Problems)
	}
	if last := set.Files[len(set.Files)-1]; !last.Missing {
		t.Errorf("%+v", last)
	}
}

func TestExplicitFiles(t *testing.T) {
	entry := `{"command": "x", "timeout": 90}`
	files := []struct{ path, text, dialect, total string }{
		{"x/.cursor/mcp.json", `{"mcpServers": {"NAME": ` + entry + `}}`, "cursor", "0s"},
		{"x/.roo/mcp.json", `{"mcpServers": {"NAME": ` + entry + `}}`, "roo", "1m30s"},
		{"Code/User/mcp.json", `{"servers": {"NAME": ` + entry + `}}`, "vscode", "0s"},
		{"x/.codex/config.toml", "[mcp_servers.NAME]\ncommand='x'\ntimeout=90\n", "codex", "1m30s"},
		{".continue/mcpServers/a.yaml", "mcpServers: [{name: NAME, command: x}]", "continue", "0s"},
		{"zed.json", `{"context_servers": {"NAME": ` + entry + `}}`, "zed", "0s"},
		{"amp.json", `{"amp.mcpServers": {"NAME": ` + entry + `}}`, "amp", "0s"},
		{"codex.toml", "[mcp_servers.NAME]\ncommand='x'\ntimeout=90\n", "codex", "1m30s"},
		{"vibe.toml", "[[mcp_servers]]\nname='NAME'\ncommand='x'\n", "vibe", "0s"},
		{"code.json", `{"servers": {"NAME": ` + entry + `}}`, "vscode", "0s"},
		{"goose.yaml", "extensions: {NAME: {cmd: x, timeout: 90}}", "goose", "1m30s"},
		{"oc.json", `{"mcp": {"NAME": {"command": ["x"]}}}`, "opencode", "0s"},
		{"mine.json", `{"mcpServers": {"NAME": {"command": "x", "timeout": "90s"}}}`, "dowel", "1m30s"},
		{"last.json", `{"mcpServers": {"s0": {"command": "shadowed"}}}`, "dowel", ""},
	}
	all := map[string]string{"project/dowel.json": `{"mcpServers": {"not": {"command": "read"}}}`}
	o := Options{GOOS: "linux", Env: noEnv}
	for i, f := range files {
		all[f.path] = strings.ReplaceAll(f.text, "NAME", fmt.Sprintf("s%d", i))
	}
	root := folderWith(t, all)
	o.Home, o.Project = root+"/home", root+"/project"
	for _, f := range files {
		o.Files = append(o.Files, filepath.Join(root, f.path))
	}
	set := Load(o)
	if len(set.Servers) != len(files)-1 || len(set.Shadowed) != 1 {
		t.Fatalf("%d servers: %v", len(set.Servers), set.Problems)
	}
	for i, s := range set.Servers {
		if f := files[i]; s.Dialect != f.dialect || s.Total.String() != f.total || s.Scope != User || !s.Valid() {
			t.Errorf("%s: %s, timeout %v, %s", f.path, s.Dialect, s.Total, s.Scope)
		}
	}
}

func TestTooManyServers(t *testing.T) {
	var text strings.Builder
	text.WriteString("{\"mcpServers\": {\"s\": {}")
	for i := range maxServers + 10 {
		fmt.Fprintf(&text, ",\n\"s%d\": {\"command\": \"x\"}", i)
	}
	c := fileContents{File: File{Path: "dowel.json"}}.parseText([]byte(text.String()+"}}"), nil, Options{})
	if len(c.servers) != maxServers || len(c.problems) != 2 || !strings.Contains(c.problems[0].Message, "5000 servers") {
		t.Errorf("%d servers, %.200v", len(c.servers), c.problems)
	}
}

func TestManyUnknownKeys(t *testing.T) {
	text := `{"mcpServers": {"a": {"command": "x"`
	for i := range 100 {
		text += fmt.Sprintf(`, "k%d": 1`, i)
	}
	if s := loadOnlyServer(t, text+"}}}"); len(s.Unknown) != 100 || len(s.Problems) != maxUnknown {
		t.Errorf("%d unknown keys, %d problems", len(s.Unknown), len(s.Problems))
	}
}

func TestDefaultOptions(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	if set := Load(Options{}); len(set.Servers) != 0 || len(set.Files) != 5 || len(set.Problems) != 0 {
		t.Errorf("%+v", set)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("here"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, missing := (Variables{}).Expand("${file:" + path + "}${NOT_SET_ANYWHERE:-!}"); got != "here!" || missing != nil {
		t.Errorf("%q, %q", got, missing)
	}
}
