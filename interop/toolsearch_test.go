package interop

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/search"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

const (
	realTools = 500 // minimum number of tools that are searched
	amongHits = 5   // the right tool must be among the first five
)

// realServer is a server from npm that can list its tools without a network or an account.
type realServer struct {
	name    string
	program string // in the folder of npm's programs
	args    []string
	env     map[string]string
}

// nowhere is an address without a server: a real server must not receive the made-up tokens.
const nowhere = "http://127.0.0.1:9"

var realServers = []realServer{
	{name: "everything", program: "mcp-server-everything"},
	{name: "filesystem", program: "mcp-server-filesystem", args: []string{"."}},
	{name: "memory", program: "mcp-server-memory"},
	{name: "thinking", program: "mcp-server-sequential-thinking"},
	{name: "github", program: "mcp-server-github"},
	{name: "slack", program: "mcp-server-slack", env: map[string]string{"SLACK_BOT_TOKEN": "none", "SLACK_TEAM_ID": "T0"}},
	{name: "notion", program: "notion-mcp-server", env: map[string]string{"NOTION_TOKEN": "none"}},
	{name: "hubspot", program: "mcp-hubspot", env: map[string]string{"PRIVATE_APP_ACCESS_TOKEN": "none", "BASE_URL_OVERRIDE": nowhere}},
	{name: "playwright", program: "playwright-mcp", args: []string{"--headless", "--caps", "vision,pdf,devtools"}},
	{name: "chrome", program: "chrome-devtools-mcp",
		args: []string{"--headless", "--no-usage-statistics", "--categoryExtensions", "--categoryPwa", "--memoryDebugging"},
		env:  map[string]string{"CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS": "1"}},
	{name: "supabase", program: "mcp-server-supabase", args: []string{"--access-token=sbp_none", "--api-url=" + nowhere,
		"--features=account,branching,database,debugging,development,functions,storage"}}, // the feature docs would use the network
	{name: "gitlab", program: "zereight-mcp-gitlab", env: map[string]string{"GITLAB_PERSONAL_ACCESS_TOKEN": "none",
		"GITLAB_API_URL": nowhere + "/api/v4", "GITLAB_TOOLSETS": "all", "GITLAB_DISABLE_VERSION_CHECK": "true"}},
	{name: "postman", program: "postman-mcp-server", args: []string{"--full"}, env: map[string]string{"POSTMAN_API_KEY": "none",
		"POSTMAN_API_BASE_URL": nowhere, "POSTMAN_MCP_TELEMETRY": "false"}},
}

// For a question in a model's words, the right one of 500 real tools is among the first five
// results.
func TestToolSearch(t *testing.T) {
	t.Parallel()
	tools := listRealTools(t)
	if t.Failed() {
		return
	}
	if len(tools) < realTools {
		t.Errorf("the servers have %d tools, want %d", len(tools), realTools)
	}
	if n := len(toolQuestions) + len(heldOut); n != 50 {
		t.Errorf("%d questions, want 50", n)
	}
	index := search.New(tools)
	for _, q := range slices.Concat(toolQuestions, heldOut) {
		if hits := searchTools(t, index, tools, q); !isAnswered(q, hits) {
			t.Errorf("%q: got %s, want %s", q.ask, strings.Join(hits, ", "), strings.Join(q.right, " or "))
		}
	}
	found := 0
	for _, q := range unseen {
		if hits := searchTools(t, index, tools, q); isAnswered(q, hits) {
			found++
		} else {
			t.Logf("unseen: %q finds %s, not %s", q.ask, strings.Join(hits, ", "), strings.Join(q.right, " or "))
		}
	}
	if found < atLeastUnseen {
		t.Errorf("%d of %d unseen questions are answered, want %d", found, len(unseen), atLeastUnseen)
	}
	t.Logf("%d tools; %d of %d unseen questions", len(tools), found, len(unseen))
}

// searchTools returns the names of the first results.
func searchTools(t *testing.T, index *search.Index, tools []search.Tool, q toolQuestion) (names []string) {
	t.Helper()
	checkRight(t, tools, q)
	for _, hit := range index.Find(q.ask, amongHits) {
		names = append(names, tools[hit.Tool].Name)
	}
	return names
}

func isAnswered(q toolQuestion, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(q.right, name) })
}

// checkRight fails the test if a right answer of q does not exist.
func checkRight(t *testing.T, tools []search.Tool, q toolQuestion) {
	t.Helper()
	if len(q.right) == 0 {
		t.Errorf("%q has no answer", q.ask)
	}
	for _, name := range q.right {
		if !slices.ContainsFunc(tools, func(tool search.Tool) bool { return tool.Name == name }) {
			t.Errorf("%q: there is no tool %s", q.ask, name)
		}
	}
}

// listRealTools lists the tools of all servers. A few servers run at a time.
func listRealTools(t *testing.T) []search.Tool {
	t.Helper()
	var all sync.WaitGroup
	lists := make([][]search.Tool, len(realServers))
	turns := make(chan struct{}, 3)
	mark := newMark(t)
	for i, server := range realServers {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			lists[i] = server.tools(t, mark)
		})
	}
	all.Wait()
	expectNoneLeft(t, mark)
	for i, list := range lists {
		t.Logf("%s: %d tools", realServers[i].name, len(list))
	}
	return slices.Concat(lists...)
}

// tools starts the server, lists its tools and ends it.
func (s *realServer) tools(t *testing.T, mark string) (tools []search.Tool) {
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	raw, err := s.list(ctx, t.TempDir(), mark)
	if err != nil || len(raw) == 0 {
		t.Errorf("%s: %d tools, %v", s.name, len(raw), err)
	}
	for _, definition := range raw {
		var named struct{ Name string }
		if err := json.Unmarshal(definition, &named); err != nil || named.Name == "" {
			t.Errorf("%s: a tool without a name: %s, %v", s.name, shorten(string(definition)), err)
		}
		tools = append(tools, search.FromDefinition(s.name, s.name+"."+named.Name, definition))
	}
	return tools
}

func (s *realServer) list(ctx context.Context, home, mark string) (definitions []json.RawMessage, err error) {
	program, err := filepath.Abs(filepath.Join("node", "node_modules", ".bin", s.program))
	if err != nil {
		return nil, err
	}
	env := map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home}
	maps.Copy(env, s.env)
	env[markName] = strings.TrimPrefix(mark, markName+"=")
	c, err := client.Dial(ctx, stdio.Command{Path: program, Args: s.args, Env: env, Dir: home}, &client.Options{Name: s.name})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var tool json.RawMessage
	for listed, err := range c.Tools(ctx) {
		if err == nil {
			tool, err = mcp.Encode(&listed)
		}
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, slices.Clone(tool))
	}
	return definitions, nil
}
