// Package layers tests the order of the packages: imports point down, and packages of one layer do
// not import each other.
package layers

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dowel-mcp/dowel/"

// layers lists the packages from the top to the bottom. A name includes the packages below it in
// the tree that are not listed themselves. A package may import packages of lower layers, and the
// exceptions below.
var layers = [][]string{
	{"cmd", "conformance", "examples"},
	{"internal/cli"},
	{
		"internal/cli/call", "internal/cli/chat", "internal/cli/configcmd", "internal/cli/console", "internal/cli/discover", "internal/cli/doctor",
		"internal/cli/down", "internal/cli/exportcmd", "internal/cli/importcmd", "internal/cli/login", "internal/cli/models", "internal/cli/prompts",
		"internal/cli/resources", "internal/cli/run", "internal/cli/search", "internal/cli/serve", "internal/cli/servers", "internal/cli/service", "internal/cli/status", "internal/cli/task",
		"internal/cli/tools", "internal/cli/trust", "internal/cli/up", "internal/cli/watch", "internal/cli/wire",
	},
	{"internal/cli/chathost", "internal/cli/question"},
	{"internal/cli/agentcmd", "internal/cli/agentview", "internal/cli/sessionlog"},
	{"internal/cli/approval", "internal/cli/attach", "internal/cli/modelregistry", "internal/cli/published", "internal/cli/toolname"},
	{"internal/cli/connect", "internal/cli/consent", "internal/cli/editing", "internal/cli/tasklist"},
	{"internal/cli/display", "internal/cli/elicit"},
	{"internal/cli/factory", "internal/cli/toolargs"},
	{"internal/cli/exit"},
	{"console", "internal/daemon"},
	{"internal/agentsfile", "internal/builtin", "internal/configured", "internal/console", "internal/control", "internal/install", "internal/userlogin"},
	{"cluster", "internal/importing", "internal/savedcalls", "internal/session"},
	{"agent", "gateway", "internal/cluster", "internal/config"},
	{"hub"},
	{"internal/catalog"},
	{"internal/journal"},
	{"internal/doctor", "internal/ratelimit", "internal/search", "internal/sharedserver"},
	{"internal/tui/screen"},
	{"internal/tui/composer", "internal/tui/form", "internal/tui/statusline", "internal/tui/toolcard"},
	{"internal/tui/transcript"},
	{"internal/tui/markdown"},
	{"internal/tui/highlight", "internal/tui/picture"},
	{"internal/tui/theme"},
	{"skills"},
	{"internal/skills"},
	{"mcptest"},
	{"server", "client", "auth"},
	{"transport/sse", "transport/websocket"}, // use Guard and HTTPError of transport/streamable
	{"transport/memory", "transport/stdio", "transport/streamable"},
	{"internal/httpwire", "transport/overconn", "transport/streamable/internal/memstore"},
	{"transport/internal/serving", "transport/internal/calling"},
	{"transport/internal/frames", "transport/internal/transporttest"},
	{"transport"},
	{"schema", "taskstore"},
	{"internal/framesink", "internal/mcpwire", "internal/opentask"},
	{"mcp"},
	{"jsonrpc"},
	{"internal"},
}

// exceptions are imports within a layer, each with its reason.
var exceptions = map[string]string{
	"gateway -> server": "a gateway may use server's types",
}

func TestImportsPointDown(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "../.." && (name[0] == '.' || name == "testdata" || name == "node_modules" || name == "attack" || name == "chaos" || name == "browser" || name == "interop" || name == "bench" || path == "../../servers" || name == "tools") {
			return filepath.SkipDir // attack, chaos, browser, interop, bench, servers and tools are modules of their own
		}
		if !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			files++
			checkImports(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Errorf("only %d files were read", files)
	}
}

func checkImports(t *testing.T, path string) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	folder, err := filepath.Rel("../..", filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	from, fromLayer := layerOf(filepath.ToSlash(folder))
	if fromLayer < 0 || from == "internal/cli" && filepath.ToSlash(folder) != from {
		t.Errorf("%s is in no layer: add its package to layers", path)
		return
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.HasPrefix(imported, module) {
			continue
		}
		to, toLayer := layerOf(strings.TrimPrefix(imported, module))
		if to == from || toLayer > fromLayer || exceptions[from+" -> "+to] != "" {
			continue
		}
		t.Errorf("%s imports %s: %s may not import %s", path, imported, from, to)
	}
}

// layerOf returns the listed package that a folder belongs to and its layer, counted from the top.
// The layer is -1 if the folder belongs to none.
func layerOf(folder string) (string, int) {
	best, layer := "", -1
	for i, packages := range layers {
		for _, p := range packages {
			if (folder == p || strings.HasPrefix(folder, p+"/")) && len(p) > len(best) {
				best, layer = p, i
			}
		}
	}
	return best, layer
}
