package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMigrationPagesCompile type-checks the other SDKs' programs in docs/migrate-from-*.md. The
// tests in internal/docs check dowel's programs on the same pages.
func TestMigrationPagesCompile(t *testing.T) {
	for page, kind := range map[string]string{"migrate-from-go-sdk.md": "go go-sdk", "migrate-from-mcp-go.md": "go mcp-go"} {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "docs", page))
			if err != nil {
				t.Fatal(err)
			}
			programs := fencedBlocks(string(text), kind)
			if len(programs) < 3 {
				t.Fatalf("the page has %d programs of kind %q, want at least 3", len(programs), kind)
			}
			// The folder is part of this module, so that its go.mod has the SDKs.
			folder, err := os.MkdirTemp(".", "testdata-migration-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(folder) })
			for i, program := range programs {
				name := filepath.Join(folder, fmt.Sprint("program", i))
				if err := os.Mkdir(name, 0o755); err != nil {
					t.Fatal(err)
				}
				// A program without a main function is compiled as a library.
				if !strings.Contains(program, "func main()") {
					program = strings.Replace(program, "package main", "package library", 1)
				}
				if err := os.WriteFile(filepath.Join(name, "program.go"), []byte(program), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			vet := exec.CommandContext(t.Context(), "go", "vet", "./"+folder+"/...")
			if out, err := vet.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// fencedBlocks returns the text of each block of a page that opens with ```kind.
func fencedBlocks(page, kind string) (blocks []string) {
	var lines []string
	inside := false
	for line := range strings.Lines(page) {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "```"+kind:
			inside, lines = true, nil
		case inside && trimmed == "```":
			inside = false
			blocks = append(blocks, strings.Join(lines, ""))
		case inside:
			lines = append(lines, line)
		}
	}
	return blocks
}
