//go:build long

package interop

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/npxcache"
)

// popularServers are servers from npm that many people use, with what they need to list their
// tools. None of them needs an account for that. The newest versions run, as for a user.
var popularServers = map[string]struct {
	args []string
	env  map[string]string
}{
	"airbnb":     {args: words("@openbnb/mcp-server-airbnb")},
	"brave":      {args: words("@modelcontextprotocol/server-brave-search"), env: map[string]string{"BRAVE_API_KEY": "x"}},
	"chrome":     {args: words("chrome-devtools-mcp")},
	"context7":   {args: words("@upstash/context7-mcp")},
	"eslint":     {args: words("@eslint/mcp")},
	"everything": {args: words("@modelcontextprotocol/server-everything")},
	"exa":        {args: words("exa-mcp-server"), env: map[string]string{"EXA_API_KEY": "x"}},
	"figma":      {args: words("figma-developer-mcp", "--stdio"), env: map[string]string{"FIGMA_API_KEY": "x"}},
	"files":      {args: words("@modelcontextprotocol/server-filesystem", ".")},
	"firecrawl":  {args: words("firecrawl-mcp"), env: map[string]string{"FIRECRAWL_API_KEY": "x"}},
	"github":     {args: words("@modelcontextprotocol/server-github"), env: map[string]string{"GITHUB_PERSONAL_ACCESS_TOKEN": "x"}},
	"kubernetes": {args: words("mcp-server-kubernetes")},
	"memory":     {args: words("@modelcontextprotocol/server-memory")},
	"n8n":        {args: words("n8n-mcp")},
	"notion":     {args: words("@notionhq/notion-mcp-server"), env: map[string]string{"NOTION_TOKEN": "x"}},
	"playwright": {args: words("@playwright/mcp")},
	"puppeteer":  {args: words("@modelcontextprotocol/server-puppeteer")},
	"shadcn":     {args: words("shadcn", "mcp")},
	"tavily":     {args: words("tavily-mcp"), env: map[string]string{"TAVILY_API_KEY": "x"}},
	"thinking":   {args: words("@modelcontextprotocol/server-sequential-thinking")},
}

// coldLimit bounds the installs of all servers.
const coldLimit = 15 * time.Minute

// TestColdServers starts 20 popular servers at once with one dowel up and an empty npm cache. All
// of them list their tools, and no install leaves a broken folder in the cache.
func TestColdServers(t *testing.T) {
	folder := t.TempDir()
	cache := filepath.Join(folder, "npm")
	entries := map[string]any{}
	for name, s := range popularServers {
		entries[name] = map[string]any{"command": "npx", "args": append([]string{"-y"}, s.args...), "env": s.env}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "dowel.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(words ...string) *exec.Cmd {
		cmd := exec.Command(binaryPath(t, "dowel"), words...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "HOME="+folder, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_RUNTIME_DIR="+folder,
			"npm_config_cache="+cache, "npm_config_ignore_scripts=true", "npm_config_update_notifier=false")
		return cmd
	}
	up := run("up", "--config", file, "--http", "0")
	var log strings.Builder
	up.Stderr = &log
	start := time.Now()
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	defer func() {
		_ = up.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("dowel up ended with %v\n%s", err, &log)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), coldLimit)
	defer cancel()
	type server struct {
		Name, Status, Problem string
		Tools                 int
	}
	var servers []server
	seen := map[string]time.Duration{}
	for len(seen) < len(popularServers) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("dowel up ended: %v\n%s", err, &log)
		case <-ctx.Done():
			t.Fatalf("%d of %d servers are ready after %v: %+v", len(seen), len(popularServers), coldLimit, servers)
		case <-time.After(time.Second):
		}
		out, err := run("status", "--json").Output()
		var status struct{ Servers []server }
		if err != nil || json.Unmarshal(out, &status) != nil {
			continue // it is not up yet
		}
		servers = status.Servers
		for _, s := range servers {
			if _, ok := seen[s.Name]; !ok && s.Status == "ready" && s.Tools > 0 {
				seen[s.Name] = time.Since(start)
				t.Logf("%-12s %3d tools after %v", s.Name, s.Tools, seen[s.Name].Round(time.Second))
			}
		}
	}
	folders, err := filepath.Glob(filepath.Join(cache, "_npx", "*"))
	if err != nil || len(folders) < len(popularServers) {
		t.Errorf("the cache has %d folders: %v", len(folders), err)
	}
	if broken := slices.DeleteFunc(folders, npxcache.IsComplete); len(broken) > 0 {
		t.Errorf("installs left broken folders: %q", broken)
	}
}
