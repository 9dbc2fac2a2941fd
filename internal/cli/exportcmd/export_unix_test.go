//go:build unix

package exportcmd

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/term"
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

// Entries for the gateway's URL are found under every name of the loopback address. Entries that
// lead to all servers are replaced with everything that belonged to the URL.
func TestURLEntries(t *testing.T) {
	o := config.Options{Home: t.TempDir(), GOOS: "linux", Env: func(string) (string, bool) { return "", false }}
	path := filepath.Join(o.Home, ".cursor/mcp.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"mcpServers": {
		"all": {"url": "http://localhost:7800/mcp", "headers": {"Authorization": "Bearer secret"}},
		"one": {"url": "http://127.0.0.1:7800/mcp/kv"},
		"other": {"url": "http://127.0.0.1:7801/mcp"}, "remote": {"url": "https://localhost:7800/mcp"}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse("http://127.0.0.1:7800/mcp")
	if err != nil {
		t.Fatal(err)
	}
	entries := findURLEntries("cursor", o, []*url.URL{at})
	if len(entries) != 2 || entries[0] != (urlEntry{path, "all", true}) || entries[1] != (urlEntry{path, "one", false}) {
		t.Fatalf("%+v", entries)
	}
	if notice := urlNotice("cursor", entries); !strings.Contains(notice, "one in "+path) || strings.Count(notice, "--replace") != 1 {
		t.Error(notice)
	}
	d, err := config.LookupDialect("cursor")
	if err != nil {
		t.Fatal(err)
	}
	f := &factory.Factory{Stdout: term.NewScreen(io.Discard, func() {})}
	n, err := replaceURLEntries(f, d, "/bin/dowel", path, entries, false)
	written, _ := os.ReadFile(path)
	if err != nil || n != 1 || strings.Contains(string(written), "secret") || !strings.Contains(string(written), `"/bin/dowel"`) || !strings.Contains(string(written), "mcp/kv") {
		t.Errorf("%d %v\n%s", n, err, written)
	}
}
