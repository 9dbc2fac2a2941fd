package docs

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dowel-mcp/dowel/"

// commonPackages are the packages that blocks may use without importing them, by name.
var commonPackages = byName("context", "encoding/json", "errors", "fmt", "io/fs", "log", "log/slog", "net", "net/http", "os", "strings", "sync",
	"testing", "time",
	module+"auth", module+"auth/desktop", module+"auth/resource", module+"client", module+"cluster", module+"mcp", module+"mcptest", module+"schema", module+"server", module+"skills", module+"transport",
	module+"transport/memory", module+"transport/sse", module+"transport/stdio", module+"transport/streamable", module+"transport/websocket")

func byName(paths ...string) map[string]string {
	all := map[string]string{}
	for _, p := range paths {
		all[path.Base(p)] = p
	}
	return all
}

// A block of statements becomes the body of a function. Its parameters are the variables that
// blocks may use without declaring them. Extra braces let a block declare the same names again.
const (
	before = "package p; func _(ctx context.Context, s *server.Server, c *client.Client, t *testing.T) error { {\n"
	after  = "\n}; return nil }\n"
)

func TestGoCompiles(t *testing.T) {
	guides, err := filepath.Glob(filepath.Join(root, "docs", "*-*.md")) // guides and migration pages
	if err != nil || len(guides) < 5 {
		t.Fatalf("the guides are missing: %v, %v", guides, err)
	}
	fset, packages := token.NewFileSet(), map[string][]*ast.File{}
	for _, name := range append([]string{"README.md"}, relative(t, guides)...) {
		maps.Copy(packages, parseBlocks(t, fset, name))
	}
	exports := exportFiles(t, packages)
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("%s is missing", path)
		}
		return os.Open(exports[path])
	})
	for name, files := range packages {
		conf := types.Config{Importer: imports, Error: func(err error) { t.Error(err) }}
		_, _ = conf.Check(name, fset, files, nil) // the error was reported by conf.Error
	}
}

func relative(t *testing.T, files []string) (all []string) {
	for _, f := range files {
		name, err := filepath.Rel(root, f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, filepath.ToSlash(name))
	}
	return all
}

// parseBlocks parses a page's Go blocks. Each program is a package of its own. All other blocks
// form one package, so that a block can use the types of another.
func parseBlocks(t *testing.T, fset *token.FileSet, name string) map[string][]*ast.File {
	t.Helper()
	packages := map[string][]*ast.File{}
	for i, b := range blocks(t, name, "go") {
		file, err := parse(fset, b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		id := name
		if strings.HasPrefix(b.text, "package ") {
			id += fmt.Sprint("#", i)
		}
		packages[id] = append(packages[id], file)
	}
	if programOnly := []string{"docs/guide-program.md", "docs/guide-chat.md"}; len(packages) == 0 && !slices.Contains(programOnly, name) {
		t.Errorf("%s holds no Go", name)
	}
	return packages
}

// parse parses a block as a program, as declarations or as statements. Positions refer to the page.
func parse(fset *token.FileSet, b block) (*ast.File, error) {
	line := fmt.Sprintf("//line %s:%d\n", b.page, b.line)
	var file *ast.File
	var err error
	switch {
	case strings.HasPrefix(b.text, "package "):
		return parser.ParseFile(fset, "", line+b.text, parser.SkipObjectResolution)
	case declares(b.text):
		file, err = parser.ParseFile(fset, "", "package p\n"+line+b.text, 0)
	default:
		file, err = parser.ParseFile(fset, "", before+line+b.text+after, 0)
	}
	if err == nil {
		importUsual(file)
	}
	return file, err
}

func declares(text string) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, parser.SkipObjectResolution)
	return err == nil
}

// importUsual imports the common packages that a file uses.
func importUsual(file *ast.File) {
	used := map[string]bool{}
	for _, id := range file.Unresolved {
		if p := commonPackages[id.Name]; p != "" {
			used[p] = true
		}
	}
	decl := &ast.GenDecl{Tok: token.IMPORT, Lparen: 1, Rparen: 1}
	for p := range used {
		spec := &ast.ImportSpec{Path: &ast.BasicLit{Kind: token.STRING, Value: `"` + p + `"`}}
		decl.Specs = append(decl.Specs, spec)
		file.Imports = append(file.Imports, spec)
	}
	if decl.Specs != nil {
		file.Decls = append([]ast.Decl{decl}, file.Decls...)
	}
}

// exportFiles returns the compiler's export data of all packages that the files import, by path.
// The go command compiles packages that are not in its cache.
func exportFiles(t *testing.T, packages map[string][]*ast.File) map[string]string {
	t.Helper()
	imports := map[string]bool{}
	for _, files := range packages {
		for _, f := range files {
			for _, spec := range f.Imports {
				imports[strings.Trim(spec.Path.Value, `"`)] = true
			}
		}
	}
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, slices.Sorted(maps.Keys(imports))...)...)
	list.Dir = root
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, cmp.Or(stderr.String(), string(out)))
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		all[name] = file
	}
	return all
}
