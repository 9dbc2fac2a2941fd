package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// The programs start as children of clients of both eras, and serve what they promise.
func TestPrograms(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "unused")
	folder := t.TempDir()
	build := exec.Command("go", "build", "-o", folder, "./cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
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
