package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoPatternAtStart checks that neither dowel nor a server on standard streams compiles a
// regular expression when it begins: clients start such a process for each conversation, and a
// pattern takes 10 to 50 µs.
func TestNoPatternAtStart(t *testing.T) {
	checked := 0
	for _, p := range goLines(t, repository, "list", "-deps", "./cmd/dowel", "./server", "./transport/stdio", "./transport/memory") {
		if !strings.HasPrefix(p, module) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(repository, strings.TrimPrefix(p, module), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				checked++
				checkPatterns(t, file)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d files were read", checked)
	}
}

// checkPatterns reports the patterns that a file compiles for variables of its package.
func checkPatterns(t *testing.T, path string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range file.Decls {
		variables, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		ast.Inspect(variables, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				if name, ok := selector.X.(*ast.Ident); ok && name.Name == "regexp" && strings.HasPrefix(selector.Sel.Name, "MustCompile") {
					t.Errorf("%s compiles a pattern when the program begins: use internal/lazyregexp", set.Position(n.Pos()))
				}
			}
			_, isFunction := n.(*ast.FuncLit) // runs later
			return !isFunction
		})
	}
}
