//go:build unix

package exportcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
)

// After an export, dowel names the tool's other servers that dowel offers too.
func TestDuplicateNotice(t *testing.T) {
	o := config.Options{Home: t.TempDir(), GOOS: "linux", Env: func(string) (string, bool) { return "", false }}
	path := filepath.Join(o.Home, ".cursor/mcp.json")
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "dowel": {"command": "dowel"}, "other": {"command": "x"}}}`)
	if got := duplicateNotice(path, "cursor", "dowel", o); got != "" {
		t.Error(got)
	}
	write(filepath.Join(o.Dir(), "dowel.json"), `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "dowel": {"command": "z"}}}`)
	if got := duplicateNotice(path, "cursor", "dowel", o); !strings.Contains(got, ": a, b. ") || !strings.Contains(got, path) {
		t.Error(got)
	}
}
