package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// The programs start as children of clients of both eras, and serve what they promise.
func TestPrograms(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "unused")
	folder := t.TempDir()
	buildProgram(t, ".", folder, "./cmd/...")
	revisions := mcp.Revisions()
	for _, revision := range []mcp.Revision{revisions[0], revisions[len(revisions)-1]} {
		for name, words := range map[string][]string{
			"dowel-data": {"roots=" + folder}, "dowel-sql": {"url=postgres://reader@localhost/absent"}, "dowel-github": {"read-only=true"},
			"dowel-screen": {"--allow"},
		} {
			c, err := client.Dial(t.Context(), append([]string{filepath.Join(folder, name)}, words...), &client.Options{Wire: client.Wire{Revision: revision}})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var tools []string
			for tool, err := range c.Tools(t.Context()) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				tools = append(tools, tool.Name)
			}
			c.Close()
			want := map[string]string{"dowel-data": "analyze_csv", "dowel-sql": "explain", "dowel-github": "read_issue", "dowel-screen": "screenshot"}[name]
			if !slices.Contains(tools, want) {
				t.Errorf("%s has the tools %q, want %s", name, tools, want)
			}
		}
	}
}

// dowel serve starts the program beside it, and builds the program in its checkout otherwise.
func TestDowelServe(t *testing.T) {
	folder := t.TempDir()
	dowel := filepath.Join(folder, "dowel")
	buildProgram(t, "..", dowel, "./cmd/dowel")
	serve := func() []string { return toolsOf(t, []string{dowel, "serve", "data", "roots=" + folder}) }
	if tools := serve(); !slices.Contains(tools, "analyze_csv") {
		t.Errorf("the program that dowel built has the tools %q", tools)
	}
	// Another program shows that the one beside dowel comes first.
	buildProgram(t, ".", filepath.Join(folder, "dowel-data"), "./cmd/dowel-screen")
	if err := exec.Command(dowel, "serve", "data", "roots=.").Run(); err == nil {
		t.Error("the program beside dowel, which has no option roots=, was not started")
	}
	out, err := exec.Command(dowel, "serve", "sql", "--http", "0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "dowel add sql -- dowel serve sql") {
		t.Errorf("%v\n%s", err, out)
	}
}

// buildProgram builds a package of the module in folder.
func buildProgram(t *testing.T, folder, path, pkg string) {
	build := exec.Command("go", "build", "-o", path, pkg)
	build.Dir, build.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// toolsOf starts a server and returns the names of its tools.
func toolsOf(t *testing.T, command []string) []string {
	c, err := client.Dial(t.Context(), command, nil)
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	defer c.Close()
	var names []string
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatalf("%q: %v", command, err)
		}
		names = append(names, tool.Name)
	}
	return names
}
