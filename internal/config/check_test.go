package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// loadUserFile loads a single file of the user.
func loadUserFile(t *testing.T, text string) *Set {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, "dowel.json")
	if err := writeFile(path, text); err != nil {
		t.Fatal(err)
	}
	o := testOptions(root)
	o.Files = []string{path}
	return Load(o)
}

// All problems are found at once, in the order of the lines. One problem does not hide another.
func TestCheck(t *testing.T) {
	set := loadUserFile(t, `{
"gateway": {"address": "localhost"},
"mcpServers": {
	"a": {"comand": "x", "command": "y", "args": ["${UNSET_A}"], "env": {"B": []}},
	"b": {"url": "example.com", "headers": {"X": "${UNSET_B}"}},
	"c": {"command": "c", "envFile": "none.env",
		"args": ["${UNSET_C}"]},
	"d": {"url": "${BLANK}x", "headers": {"X": "${UNSET_D}"}},
	"e": {"command": "e"}
}}`)
	var lines []int
	var text []string
	for _, p := range set.Check() {
		lines, text = append(lines, p.Line), append(text, p.String())
	}
	if !slices.IsSorted(lines) {
		t.Errorf("they are not in order: %v", lines)
	}
	all := strings.Join(text, "\n")
	for _, want := range []string{":2:24: error: gateway.address", "UNSET_A is not set", "env.B", `unknown key "comand"`, `server "b": url must begin`, "UNSET_B is not set", "none.env", "UNSET_C is not set",
		"dowel.json:8:15: error: server \"d\": url", "UNSET_D is not set"} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%q is not there once in\n%s", want, all)
		}
	}
	if strings.Contains(all, `"e"`) {
		t.Errorf("there is nothing wrong with e:\n%s", all)
	}
}

func TestAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "7800": true, ":7800": true, "127.0.0.1:0": true, "localhost:7800": true, "[::1]:7800": true, "0.0.0.0:7800": true,
		"localhost": false, "127.0.0.1": false, "1.2.3:80": false, "300.1.1.1:80": false, "http://127.0.0.1:7800": false, "127.0.0.1:99999": false, "127.0.0.1:x y": false, "::1": false,
	} {
		if why := addressProblem(address); (why == "") != ok {
			t.Errorf("%q: %q", address, why)
		}
	}
	if p := loadUserFile(t, `{"gateway": {"address": "${NONE}:80"}}`).Check(); len(p) != 1 || p[0].Variable != "NONE" {
		t.Errorf("%v", p)
	}
}

// The path after a folder's variable lies below that folder, even if the folder is the root.
func TestFoldersJoin(t *testing.T) {
	for _, c := range []struct{ folder, text, want string }{
		{"/", "${workspaceFolder}/x", "/x"},
		{"/", "${workspaceFolder}", "/"},
		{"/", "--dir=${workspaceFolder}/x:${workspaceFolder}", "--dir=/x:/"},
		{"/a", "${workspaceFolder}/x", "/a/x"},
		{`C:\`, `${workspaceFolder}\x`, `C:\x`},
		{"/", "${A}/x", "//x"},
	} {
		got, missing := Variables{Workspace: c.folder, Env: func(string) (string, bool) { return "/", true }}.Expand(c.text)
		if got != c.want || missing != nil {
			t.Errorf("%s in %s: %q, %v", c.text, c.folder, got, missing)
		}
	}
}

// A masked entry is the entry as written, without its secrets.
func TestMasked(t *testing.T) {
	set := loadUserFile(t, `{"mcpServers": {"a": {"command": "npx", "args": ["--token=abc", "${TOKEN}", "--password", "hunter22"],
		"env": {"API_KEY": "k", "OTHER_KEY": "${TOKEN:-sesame}", "PLAIN": "hello"}}, "b": {"url": "https://u:pw12@h/?key=12345678", "headers": {"Authorization": "Bearer abcd", "X-Token": "${TOKEN}"}}}}`)
	a, b := set.Server("a").Masked(), set.Server("b").Masked()
	if got := strings.Join(a.Args, " "); got != "--token=**** ${TOKEN} --password ****" && got != "**** ${TOKEN} --password ****" {
		t.Error(got)
	}
	if a.Env["API_KEY"] != "****" || a.Env["OTHER_KEY"] != "${TOKEN:-****}" || a.Env["PLAIN"] != "hello" {
		t.Error(a.Env)
	}
	if b.URL != "https://u:****@h/?key=****" || b.Headers["Authorization"] != "Bearer ****" || b.Headers["X-Token"] != "${TOKEN}" {
		t.Error(b.URL, b.Headers)
	}
	if set.Server("a").Env["API_KEY"] != "k" {
		t.Error("the entry itself has changed")
	}
}

// If the project is the user's home, a file of both counts as the user's.
func TestDiscoverHomeProject(t *testing.T) {
	root := t.TempDir()
	o := testOptions(root)
	o.Project = o.Home
	if err := writeFile(filepath.Join(o.Home, ".cursor/mcp.json"), `{"mcpServers": {"a": {"command": "x"}}}`); err != nil {
		t.Fatal(err)
	}
	if found := Discover(o, "cursor"); len(found) != 1 || found[0].Scope != User {
		t.Errorf("%+v", found)
	}
}

// The hint for an input tells how to answer it, and never suggests to write a secret into the file.
func TestInputHints(t *testing.T) {
	set := loadUserFile(t, `{"inputs": [{"id": "api-key", "type": "promptString", "password": true}, {"id": "2nd", "type": "promptString"}],
		"mcpServers": {"a": {"command": "x", "args": ["${input:api-key}", "${input:2nd}"]}}}`)
	problems := set.Check()
	if len(problems) != 2 {
		t.Fatal(problems)
	}
	if hint := problems[0].Hint; !strings.Contains(hint, "${API_KEY}") || strings.Contains(hint, "default") {
		t.Error(hint)
	}
	if hint := problems[1].Hint; !strings.Contains(hint, "${INPUT_2ND}") || !strings.Contains(hint, `"default"`) {
		t.Error(hint)
	}
	if text := problems[0].Text(); strings.Contains(text, "error:") || !strings.Contains(text, "dowel.json:2:") {
		t.Error(text)
	}
}

// No guess is made for names of one letter.
func TestNoGuessOfOneLetter(t *testing.T) {
	if s := suggestName("x", []string{"w", "ex", "y"}); s != "" {
		t.Error(s)
	}
	if s := suggestName("comand", []string{"command"}); s == "" {
		t.Error("nothing is suggested")
	}
}

// Messages name a character as users see it.
func TestTOMLCharacters(t *testing.T) {
	_, problems := parseFile("a.toml", []byte("a = @\n"))
	if len(problems) != 1 || strings.Contains(problems[0].Message, "U+") || !strings.Contains(problems[0].Message, "'@'") {
		t.Errorf("%v", problems)
	}
}
