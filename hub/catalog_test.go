package hub_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// with returns a server with tools. Each tool returns the server's name.
func with(name string, tools ...string) hub.Definition {
	s := server.New(name, "1", &server.Options{Logger: quiet})
	for _, tool := range tools {
		server.Tool(s, tool, "", func(context.Context, struct{}) (string, error) { return name + " " + tool, nil })
	}
	return hub.Definition{Name: name, Target: s, Fingerprint: "1"}
}

// Models misspell names: an exact name wins, then a name with one usual mistake; an ambiguous name
// finds no tool.
func TestFind(t *testing.T) {
	h := start(t, hub.Options{}, with("git-hub", "create-issue", "only_here", "both"), with("files", "both", "a-b", "a_b"))
	settled(t, h)
	c := h.Catalog()
	for name, want := range map[string]string{
		"git-hub__create-issue": "git-hub.create-issue",
		"git_hub__create_issue": "git-hub.create-issue",
		"GIT-HUB__Create_Issue": "git-hub.create-issue",
		"git-hub.create-issue":  "git-hub.create-issue",
		"create_issue":          "git-hub.create-issue",
		"only-here":             "git-hub.only_here",
		"files__both":           "files.both",
		"both":                  "",
		"files__a-b":            "files.a-b",
		"files__a_b":            "files.a_b",
		"files__A_B":            "",
		"a_b":                   "",
		"files__":               "",
		"":                      "",
	} {
		got := ""
		if item := c.Find(catalog.Tool, name); item != nil {
			got = item.QualifiedName
		}
		if got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
		if item := c.Find(catalog.Prompt, name); item != nil {
			t.Errorf("%q is a prompt: %+v", name, item)
		}
	}
}

// Names that look the same on the wire, or are too long for it, map back to their own servers and
// tools.
func TestNamesLeadBack(t *testing.T) {
	long := strings.Repeat("long_", 20)
	servers := []string{"my server", "my_server", "my.server", "a", "a__b", strings.Repeat("s", 70), strings.Repeat("s", 71)}
	tools := []string{"x", "b__x", "do.it", "do_it", long + "1", long + "2"}
	var definitions []hub.Definition
	for _, name := range servers {
		definitions = append(definitions, with(name, tools...))
	}
	h := start(t, hub.Options{Logger: quiet}, definitions...)
	settled(t, h)
	seen := map[string]bool{}
	for _, item := range h.Catalog().Items(catalog.Tool) {
		if seen[item.WireName] || len(item.WireName) > 64 {
			t.Errorf("%s of %s is %s", item.Name, item.Upstream.Name(), item.WireName)
		}
		seen[item.WireName] = true
		found := h.Catalog().Find(catalog.Tool, item.WireName)
		if found == nil || found.Upstream != item.Upstream || found.Name != item.Name {
			t.Errorf("%s is %+v, not %s of %s", item.WireName, found, item.Name, item.Upstream.Name())
		}
	}
	if len(seen) != len(servers)*len(tools) {
		t.Errorf("there are %d tools", len(seen))
	}
}

// Rules select and rename tools, and take effect on a running server.
func TestRules(t *testing.T) {
	tools := []string{"read", "read_all", "write", "stat"}
	h := start(t, hub.Options{}, with("s", tools...))
	settled(t, h)
	since := h.Upstream("s").State().Since
	for _, tt := range []struct {
		rules hub.ToolRules
		want  string
	}{
		{hub.ToolRules{}, "read read_all write stat"},
		{hub.ToolRules{Only: []string{"read"}}, "read"},
		{hub.ToolRules{Only: []string{"read*"}, Hide: []string{"*_all"}}, "read"},
		{hub.ToolRules{Only: []string{}}, ""},
		{hub.ToolRules{Hide: []string{"*"}}, ""},
		{hub.ToolRules{Hide: []string{"[", "stat", "none"}}, "read read_all write"},
		{hub.ToolRules{Only: []string{"write"}, Rename: map[string]string{"write": "put", "read": "get"}}, "put"},
		{hub.ToolRules{Hide: []string{"put"}, Only: []string{"write"}, Rename: map[string]string{"write": "put"}}, "put"}, // the server's own names count
	} {
		d := with("s")
		d.Tools = tt.rules
		h.Apply([]hub.Definition{d}, "the file changed")
		c := h.Catalog()
		var got []string
		for _, item := range c.Items(catalog.Tool) {
			got = append(got, strings.TrimPrefix(item.WireName, "s__"))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %v, want %s", tt.rules, got, tt.want)
		}
		for _, name := range []string{"s__read", "s__write", "s__put"} {
			if c.Find(catalog.Tool, name) != nil && !slices.Contains(got, strings.TrimPrefix(name, "s__")) {
				t.Errorf("%+v: %s can be called", tt.rules, name)
			}
		}
	}
	d := with("s")
	d.Tools.Describe = map[string]string{"read": "Reads <it>."}
	h.Apply([]hub.Definition{d}, "the file changed")
	if item := h.Catalog().Find(catalog.Tool, "s__read"); !strings.Contains(string(item.Definition), `"description":"Reads <it>."`) {
		t.Errorf("%s", item.Definition)
	}
	if s := h.Upstream("s").State(); s.Since != since {
		t.Errorf("it was restarted: %+v", s)
	}
}

// A list that fails is reported, and affects neither the connection nor the other lists.
func TestListThatFails(t *testing.T) {
	for _, method := range []string{mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates} {
		s := server.New("s", "1", &server.Options{Logger: quiet})
		server.Tool(s, "echo", "", func(context.Context, struct{ Text string }) (string, error) { return "", nil })
		server.Prompt(s, "greet", "", func(context.Context, struct{}) (string, error) { return "", nil })
		server.Resource(s, "test://a", "", func(context.Context, struct{}) (string, error) { return "", nil })
		server.Resource(s, "test://{b}", "", func(context.Context, struct {
			B string `uri:"b"`
		}) (string, error) {
			return "", nil
		})
		failing := func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
				if req.Method == method {
					return nil, mcp.Errorf(-32603, "the database is gone")
				}
				return next.ServeMCP(ctx, req)
			})
		}
		h := start(t, hub.Options{Logger: quiet}, hub.Definition{Name: "s", Target: mcp.Chain(s, failing)})
		settled(t, h)
		u, c := h.Upstream("s"), h.Catalog()
		if got := u.State(); got.Status != hub.Ready || got.Err != nil {
			t.Errorf("%s: %+v", method, got)
		}
		lists := 0
		for _, k := range []catalog.Kind{catalog.Tool, catalog.Prompt, catalog.Resource, catalog.Template} {
			lists += c.Count(u, k)
		}
		if q := u.Quarantined(); lists != 3 || len(q) != 1 || q[0].Name != method || !strings.Contains(q[0].Reason, "the database is gone") {
			t.Errorf("%s: %d things are offered, and left out are %+v", method, lists, q)
		}
	}
}

// Changed rules take effect at once, also together with a change that restarts the server.
func TestRulesChangeWithMore(t *testing.T) {
	d := with("s", "read", "write")
	h := start(t, hub.Options{Logger: quiet}, d)
	settled(t, h)
	d.Tools.Hide, d.WatchPaths = []string{"write"}, []string{filepath.Join(t.TempDir(), "x")}
	h.Apply([]hub.Definition{d}, "the file changed")
	if item := h.Catalog().Find(catalog.Tool, "s__write"); item != nil {
		t.Errorf("%s can still be called", item.WireName)
	}
}
