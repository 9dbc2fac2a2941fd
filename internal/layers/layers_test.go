// Package layers holds the rule of the house: imports point down, and siblings do not import each other.
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

// layers lists the rooms from the top of the house to its ground. A room may import those of lower layers, and the
// exceptions below.
var layers = [][]string{
	{"cmd", "conformance", "examples"},
	{"internal/cli"},
	{
		"internal/cli/call", "internal/cli/chat", "internal/cli/configcmd", "internal/cli/discover", "internal/cli/doctor",
		"internal/cli/exportcmd", "internal/cli/importcmd", "internal/cli/models", "internal/cli/prompts",
		"internal/cli/resources", "internal/cli/run", "internal/cli/serve", "internal/cli/servers", "internal/cli/status",
		"internal/cli/tools", "internal/cli/trust", "internal/cli/up", "internal/cli/watch",
	},
	{"internal/cli/agentcmd", "internal/cli/agentview"},
	{"internal/cli/approval", "internal/cli/attach", "internal/cli/modelregistry", "internal/cli/toolname"},
	{"internal/cli/connect", "internal/cli/consent", "internal/cli/editing"},
	{"internal/cli/display", "internal/cli/elicit"},
	{"internal/cli/factory", "internal/cli/toolargs"},
	{"internal/cli/exit"},
	{"internal/daemon"},
	{"internal/builtin", "internal/configured", "internal/control", "internal/session"},
	{"agent", "console", "gateway", "cluster"},
	{"hub"},
	{"internal/config", "internal/doctor", "internal/search"},
	{"mcptest"},
	{"server", "client", "auth"},
	{"transport/memory", "transport/stdio", "transport/streamable", "transport/sse"},
	{"transport/overhttp"},
	{"transport"},
	{"schema"},
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
		if d.IsDir() && path != "../.." && (name[0] == '.' || name == "testdata" || name == "node_modules" || name == "interop" || name == "bench") {
			return filepath.SkipDir // interop and bench are modules of their own
		}
		if !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			files++
			check(t, path)
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

func check(t *testing.T, path string) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	folder, err := filepath.Rel("../..", filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	from, fromLayer := room(filepath.ToSlash(folder))
	if fromLayer < 0 || from == "internal/cli" && filepath.ToSlash(folder) != from {
		t.Errorf("%s is in no room: add it to the layers", path)
		return
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.HasPrefix(imported, module) {
			continue
		}
		to, toLayer := room(strings.TrimPrefix(imported, module))
		if to == from || toLayer > fromLayer || exceptions[from+" -> "+to] != "" {
			continue
		}
		t.Errorf("%s imports %s: %s may not import %s", path, imported, from, to)
	}
}

// room returns the room that a folder belongs to, and its layer counted from the top.
func room(folder string) (string, int) {
	best, layer := "", -1
	for i, rooms := range layers {
		for _, r := range rooms {
			if (folder == r || strings.HasPrefix(folder, r+"/")) && len(r) > len(best) {
				best, layer = r, i
			}
		}
	}
	return best, layer
}
