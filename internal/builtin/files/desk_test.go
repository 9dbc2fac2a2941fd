package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

type args map[string]any

// desk is a server of a folder, with a client.
type desk struct {
	*testing.T
	dir    string
	server *Server
	client *client.Client
}

// newDesk returns a desk for a folder with these files.
func newDesk(t *testing.T, files map[string]string) *desk {
	t.Helper()
	return newDeskOf(t, files, Options{}, client.Options{})
}

func newDeskOf(t *testing.T, files map[string]string, o Options, c client.Options) *desk {
	t.Helper()
	d := &desk{T: t, dir: t.TempDir()}
	for name, content := range files {
		d.put(name, content)
	}
	if o.Roots == nil {
		o.Roots = []string{d.dir}
	}
	if o.Poll == 0 {
		o.Poll = 50 * time.Millisecond
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	d.server = s
	t.Cleanup(func() { // after the clients, whose cleanups come later
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	d.client = d.dial(c)
	return d
}

func (d *desk) dial(o client.Options) *client.Client {
	d.Helper()
	o.Wire.Tap = mcptest.ClientTap(d)
	c, err := client.Dial(d.Context(), d.server, &o)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { c.Close() })
	return c
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) put(name, content string) {
	d.Helper()
	d.must(os.MkdirAll(filepath.Dir(d.path(name)), 0o755))
	d.must(os.WriteFile(d.path(name), []byte(content), 0o644))
}

func (d *desk) content(name string) string {
	d.Helper()
	b, err := os.ReadFile(d.path(name))
	d.must(err)
	return string(b)
}

func (d *desk) exists(name string) bool {
	_, err := os.Lstat(d.path(name))
	return err == nil
}

// names lists the folder with what is in it: whatever a tool leaves behind shows.
func (d *desk) names(folder string) string {
	d.Helper()
	entries, err := os.ReadDir(d.path(folder))
	d.must(err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// call calls a tool. The text begins with "error: " where it failed; what it says is structured is decoded into out.
func (d *desk) call(tool string, in args, out ...any) string {
	d.Helper()
	result := d.result(tool, in)
	var parts []string
	for _, c := range result.Content {
		parts = append(parts, c.Text)
	}
	text := strings.Join(parts, "\n")
	if result.IsError {
		return "error: " + text
	}
	if len(out) > 0 {
		d.must(json.Unmarshal(result.StructuredContent, out[0]))
	}
	return text
}

func (d *desk) result(tool string, in args) *mcp.CallToolResult {
	d.Helper()
	return d.resultOf(d.client, tool, in)
}

func (d *desk) resultOf(c *client.Client, tool string, in args) *mcp.CallToolResult {
	d.Helper()
	arguments, err := json.Marshal(in)
	if err != nil {
		d.Error(err)
	}
	result, err := c.CallTool(d.Context(), mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		d.Errorf("%s: %v", tool, err)
		return &mcp.CallToolResult{}
	}
	return result
}

// step is a call with a part of the text that is wanted.
type step struct {
	tool string
	in   args
	want string
}

func (d *desk) steps(all []step) {
	d.Helper()
	for _, s := range all {
		got := d.call(s.tool, s.in)
		if strings.HasPrefix(got, "error: ") != strings.HasPrefix(s.want, "error: ") || !strings.Contains(got, strings.TrimPrefix(s.want, "error: ")) {
			d.Errorf("%s %.200v\n got: %.1000q\nwant: %q", s.tool, s.in, got, s.want)
		}
	}
}

func wantError(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want one with %q", err, want)
	}
}
