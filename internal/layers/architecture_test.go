package layers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page of the architecture lists the layers of the table. It names the packages of the commands
// only in general.
func TestArchitectureListsLayers(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(page), "\n## Layers\n")
	if !found {
		t.Fatal("the page has no section Layers")
	}
	var got []string
	for line := range strings.Lines(list) {
		if packages, isCode := strings.CutPrefix(line, "    "); isCode {
			packages, _, _ = strings.Cut(packages, "#")
			got = appendLayer(got, strings.Fields(packages))
		}
	}
	var want []string
	for _, packages := range layers {
		want = appendLayer(want, packages)
	}
	for i := range max(len(got), len(want)) {
		if i == len(got) || i == len(want) || got[i] != want[i] {
			t.Fatalf("docs/architecture.md lists other layers than the table from line %d on:\n got %q\nwant %q", i+1, got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
}

// appendLayer appends a layer as a line, without the packages of commands.
func appendLayer(lines, packages []string) []string {
	var names []string
	for _, p := range packages {
		if !strings.HasPrefix(p, "internal/cli/") {
			names = append(names, strings.TrimSuffix(p, "/…"))
		}
	}
	if len(names) == 0 {
		return lines
	}
	return append(lines, strings.Join(names, "  "))
}
