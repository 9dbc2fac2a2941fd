package builtin

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

func TestEachServerWorks(t *testing.T) {
	opts := map[string]map[string]string{"kv": {"path": filepath.Join(t.TempDir(), "kv.db")}}
	tools := map[string]string{"everything": "echo", "weather": "get_forecast", "kv": "set"}
	for _, name := range Names() {
		s, err := New(name, opts[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c, err := client.Dial(t.Context(), s, client.Options{Tap: mcptest.ClientTap(t)})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for tool, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			found = found || tool.Name == tools[name]
		}
		if !found || c.ServerInfo().Name != name {
			t.Errorf("%s: is %+v, has the tool %s: %v", name, c.ServerInfo(), tools[name], found)
		}
		c.Close()
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	for i, d := range Describe() {
		if d.Name != Names()[i] || d.Description == "" || len(d.Options) == 0 {
			t.Errorf("got %+v", d)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		opts map[string]string
		want string
	}{
		{"wheather", nil, "did you mean weather?"},
		{"KV", nil, "did you mean kv?"},
		{"everythign", nil, "did you mean everything?"},
		{"filesystem", nil, "there are everything, weather, kv"},
		{"", nil, "there are everything, weather, kv"},
		{"weather", map[string]string{"baseurl": "x"}, "did you mean base-url?"},
		{"kv", map[string]string{"colour": "x"}, "there are path, redis, prefix, memory"},
		{"weather", map[string]string{"base-url": "x"}, "not the URL of an API"},
		{"weather", map[string]string{"timeout": "15"}, "write a duration"},
		{"everything", map[string]string{"page-size": "0"}, "write a number from 1"},
		{"kv", map[string]string{"memory": "maybe"}, "write true or false"},
		{"kv", map[string]string{"path": "a", "redis": "b"}, "give one of"},
		{"kv", map[string]string{"memory": "true", "redis": "b"}, "give one of"},
		{"kv", map[string]string{"prefix": "a:"}, "give redis as well"},
		{"kv", map[string]string{"redis": "localhost"}, "the Redis URL cannot be used"},
	} {
		s, err := New(test.name, test.opts)
		if s != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %v: got %v, %v; want an error with %q", test.name, test.opts, s, err, test.want)
		}
	}
}

func TestParseOptions(t *testing.T) {
	got, err := ParseOptions([]string{"path=/a=b", "prefix="})
	if err != nil || len(got) != 2 || got["path"] != "/a=b" || got["prefix"] != "" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, words := range [][]string{{"path"}, {"=x"}, {"path=a", "path=b"}} {
		if got, err := ParseOptions(words); err == nil {
			t.Errorf("%q: got %v, want an error", words, got)
		}
	}
}
