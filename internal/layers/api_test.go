package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// maxExported bounds the identifiers that the module promises to its users. A change that needs
// more removes others, or says in its commit why the bound must rise.
const maxExported = 1593

// TestExportedIdentifiers counts what users of the public packages can name: constants, variables,
// functions, types, and the methods and fields of exported types.
func TestExportedIdentifiers(t *testing.T) {
	counts, total := map[string]int{}, 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "../.." && (d.Name()[0] == '.' || !isPublicFolder(d.Name())) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		n := countExported(file)
		counts[filepath.Dir(path)[len("../.."):]] += n
		total += n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if counts["/mcp"] == 0 {
		t.Fatal("package mcp was not found")
	}
	t.Logf("%d exported identifiers: %v", total, counts)
	if total > maxExported {
		t.Errorf("the public packages export %d identifiers, want at most %d: %v", total, maxExported, counts)
	}
}

// isPublicFolder reports whether other modules may import packages below a folder of the module.
func isPublicFolder(name string) bool {
	switch name {
	case "internal", "testdata", "node_modules", "cmd", "conformance", "examples", "bin", "dist":
		return false
	case "attack", "chaos", "bench", "browser", "interop", "servers", "tools": // modules of their own
		return false
	}
	return true
}

// countExported counts the exported identifiers of a file.
func countExported(file *ast.File) (n int) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || hasExportedType(d.Recv.List[0].Type)) {
				n++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				n += countSpec(spec)
			}
		}
	}
	return n
}

func countSpec(spec ast.Spec) (n int) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		return countNames(s.Names)
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return 0
		}
		n = 1
		switch of := s.Type.(type) {
		case *ast.StructType:
			n += countFields(of.Fields)
		case *ast.InterfaceType:
			n += countFields(of.Methods)
		}
	}
	return n
}

func countFields(fields *ast.FieldList) (n int) {
	for _, field := range fields.List {
		n += countNames(field.Names)
	}
	return n
}

func countNames(names []*ast.Ident) (n int) {
	for _, name := range names {
		if name.IsExported() {
			n++
		}
	}
	return n
}

// hasExportedType reports whether the type of a receiver is exported.
func hasExportedType(receiver ast.Expr) bool {
	switch r := receiver.(type) {
	case *ast.StarExpr:
		return hasExportedType(r.X)
	case *ast.IndexExpr:
		return hasExportedType(r.X)
	case *ast.IndexListExpr:
		return hasExportedType(r.X)
	case *ast.Ident:
		return r.IsExported()
	default:
		panic(fmt.Sprintf("the receiver is a %T", receiver))
	}
}
