package builtin

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/builtin/shell"
	"github.com/dowel-mcp/dowel/internal/skills"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

func TestEachServerWorks(t *testing.T) {
	opts := map[string]map[string]string{
		"kv":     {"path": filepath.Join(t.TempDir(), "kv.db")},
		"files":  {"roots": t.TempDir() + string(filepath.ListSeparator) + t.TempDir(), "read-only": "false"},
		"skills": {"dir": skillFolder(t)},
	}
	tools := map[string]string{"everything": "echo", "weather": "get_forecast", "kv": "set", "files": "edit", "shell": "run"}
	if runtime.GOOS == "windows" {
		delete(tools, "shell") // which says so
	}
	for _, name := range Names() {
		s, err := New(name, opts[name])
		if tools[name] == "" && errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c, err := client.Dial(t.Context(), s, &client.Options{Wire: client.Wire{Tap: mcptest.ClientTap(t)}})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		if name == "skills" { // it has skills only
			all, err := client.All(skills.List(t.Context(), c))
			found = err == nil && len(all) == 1 && all[0].URI == "skill://greet/SKILL.md"
		} else {
			for tool, err := range c.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				found = found || tool.Name == tools[name]
			}
		}
		if !found || c.Server().Info.Name != name {
			t.Errorf("%s: is %+v, has the tool %s: %v", name, c.Server().Info, tools[name], found)
		}
		c.Close()
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

// skillFolder returns a folder with a skill.
func skillFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := "---\nname: greet\ndescription: How to greet\n---\nSay hello.\n"
	if err := os.Mkdir(filepath.Join(dir, "greet"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "greet", "SKILL.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Servers that act on the machine itself are marked as local.
func TestLocal(t *testing.T) {
	var local []string
	for _, d := range Describe() {
		if d.Local {
			local = append(local, d.Name)
		}
	}
	if strings.Join(local, " ") != "files shell skills" {
		t.Errorf("local are %v", local)
	}
}

func TestReadOnlyFiles(t *testing.T) {
	s, err := New("files", map[string]string{"read-only": "true"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := client.Dial(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for tool, err := range c.Tools(t.Context()) {
		if err != nil || !*tool.Annotations.ReadOnlyHint {
			t.Errorf("%s: %+v, %v", tool.Name, tool.Annotations, err)
		}
	}
}

func TestShellOptions(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("A_SECRET", "known")
	s, err := New("shell", map[string]string{"dir": dir, "shell": "sh", "clean-env": "true", "timeout": "1m", "idle": "1h", "max-shells": "1", "max-output": "10"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := client.Dial(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := client.Call[shell.Result](t.Context(), c, "run", map[string]string{"command": "echo \"[$A_SECRET]\"; echo 0123456789"})
	if err != nil || r.Folder != dir || r.Omitted != 4 || !strings.HasPrefix(r.Output, "[]\n") {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := client.Call[shell.Result](t.Context(), c, "run", map[string]string{"command": "pwd"}); err == nil || !strings.Contains(err.Error(), "the maximum of 1 open shells") {
		t.Errorf("got %v", err)
	}
}

func TestAnchored(t *testing.T) {
	folder, sep := t.TempDir(), string(filepath.ListSeparator)
	in := func(name string) string { return filepath.Join(folder, name) }
	for _, c := range []struct {
		name        string
		words, want []string
	}{
		{"kv", []string{"path=a.db"}, []string{"path=" + in("a.db")}},
		{"kv", []string{"path=" + in("a.db")}, []string{"path=" + in("a.db")}},
		{"kv", []string{"memory=true"}, []string{"memory=true"}},
		{"weather", []string{"timeout=1s"}, []string{"timeout=1s"}},
		{"files", nil, []string{"roots=" + folder}},
		{"files", []string{"read-only=true", "roots=a" + sep + ".." + sep + in("c")},
			[]string{"read-only=true", "roots=" + in("a") + sep + filepath.Dir(folder) + sep + in("c")}},
		{"shell", []string{"sandbox=true"}, []string{"sandbox=true", "dir=" + folder}},
		{"shell", []string{"dir=a"}, []string{"dir=" + in("a")}},
		{"nosuch", []string{"dir=a"}, []string{"dir=a"}},
	} {
		if got := Anchored(c.name, c.words, folder); !slices.Equal(got, c.want) {
			t.Errorf("%s %q: got %q, want %q", c.name, c.words, got, c.want)
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
		{"filesystem", nil, "did you mean files?"},
		{"database", nil, "want everything, weather, kv, files, shell, skills"},
		{"", nil, "want everything, weather, kv"},
		{"weather", map[string]string{"baseurl": "x"}, "did you mean base-url?"},
		{"kv", map[string]string{"colour": "x"}, "want path, redis, prefix, memory"},
		{"weather", map[string]string{"base-url": "x"}, "not the URL of an API"},
		{"weather", map[string]string{"timeout": "15"}, "want a duration"},
		{"everything", map[string]string{"page-size": "0"}, "want a whole number, at least 1"},
		{"kv", map[string]string{"memory": "maybe"}, "want true or false"},
		{"kv", map[string]string{"path": "a", "redis": "b"}, "exclude each other"},
		{"kv", map[string]string{"memory": "true", "redis": "b"}, "exclude each other"},
		{"kv", map[string]string{"prefix": "a:"}, "give redis as well"},
		{"kv", map[string]string{"redis": "localhost"}, "the Redis URL cannot be used"},
		{"files", map[string]string{"root": "."}, "did you mean roots?"},
		{"files", map[string]string{"read-only": "yes"}, "read-only=yes: want true or false"},
		{"files", map[string]string{"roots": "nosuchfolder"}, `roots=nosuchfolder: the folder "nosuchfolder" cannot be used`},
		{"skills", map[string]string{"dir": "nosuchfolder"}, `dir=nosuchfolder: "nosuchfolder" cannot be used as a folder`},
		{"files", map[string]string{"roots": "builtin_test.go"}, `"builtin_test.go" cannot be used as a folder`},
		{"shell", map[string]string{"sandbox": "on"}, "sandbox=on: want true or false"},
		{"shell", map[string]string{"network": "true"}, "give sandbox=true as well"},
		{"shell", map[string]string{"network": "false"}, "give sandbox=true as well"},
		{"shell", map[string]string{"timeout": "60"}, "timeout=60: want a duration such as 30s"},
		{"shell", map[string]string{"timeout": "2h"}, "timeout=2h: want at most 1h"},
		{"shell", map[string]string{"idle": "-1s"}, "idle=-1s: want a duration"},
		{"shell", map[string]string{"max-shells": "0"}, "max-shells=0: want a whole number"},
		{"shell", map[string]string{"max-output": "much"}, "max-output=much: want a whole number"},
		{"shell", map[string]string{"dir": "nosuchfolder"}, "the folder of the shells"},
		{"shell", map[string]string{"shell": "nosuchshell"}, "the option shell"},
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
