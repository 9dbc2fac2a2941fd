package control_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/draft"
	"github.com/dowel-mcp/dowel/internal/control"
)

// loadConfig returns the configuration of files with these texts, the first of which wins, and
// their paths.
func loadConfig(t *testing.T, texts ...string) (set *config.Set, paths []string) {
	t.Helper()
	for _, text := range texts {
		path := filepath.Join(t.TempDir(), "dowel.json")
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		paths = append(paths, path)
	}
	return config.Load(config.Options{Files: paths}), paths
}

// Each file has its state, and each value its place. Secrets are masked.
func TestDescribeConfig(t *testing.T) {
	t.Parallel()
	set, paths := loadConfig(t,
		"{\"mcpServers\": {\n  \"a\": {\"command\": \"x\",\n    \"timeout\": \"5s\", \"env\": {\"API_KEY\": \"correct-horse-battery\"}}}}",
		"{\"mcpServers\": {\n\n  \"a\": {\"command\": \"y\"},\n  \"b\": {\"url\": \"https://b.example/mcp\", \"timeout\": true}}}",
		"{", "")
	c := control.DescribeConfig(set)
	if len(c.Files) != 4 || len(c.Servers) != 2 {
		t.Fatalf("%+v", c)
	}
	for i, want := range []string{"read", "read", "broken", "missing"} {
		if f := c.Files[i]; f.State != want || f.Path != paths[i] || (len(f.Problems) > 0) != (want == "broken") {
			t.Errorf("%+v, want %s", f, want)
		}
	}
	if c.Files[0].Servers != 1 || c.Files[1].Servers != 1 || c.Files[1].Shadowed != 1 {
		t.Errorf("%+v", c.Files)
	}
	a, b := c.Servers[0], c.Servers[1]
	if a.Name != "a" || a.At != (control.ConfigPlace{Path: paths[0], Line: 2}) || len(a.Shadowed) != 1 || a.Shadowed[0] != (control.ConfigPlace{Path: paths[1], Line: 3}) || len(a.Problems) > 0 {
		t.Errorf("%+v", a)
	}
	values := map[string]control.ConfigValue{}
	for _, v := range a.Values {
		values[v.Field] = v
	}
	if v := values["timeout"]; v.Value != "5s" || v.At == nil || v.At.Line != 3 {
		t.Errorf("%+v", v)
	}
	if v := values["type"]; v.Value != "stdio" || v.At == nil || v.At.Line != 2 {
		t.Errorf("%+v", v)
	}
	if v := values["env.API_KEY"]; v.Value == "" || v.At == nil {
		t.Errorf("%+v", v)
	}
	if text, err := json.Marshal(c); err != nil || strings.Contains(string(text), "correct-horse") {
		t.Errorf("%s, %v", text, err)
	}
	if len(b.Problems) != 1 || !strings.Contains(b.Problems[0], "timeout") {
		t.Errorf("%q", b.Problems)
	}
}

// A stream tells that the configuration was loaded again. The next request has it.
func TestConfigStream(t *testing.T) {
	t.Parallel()
	a := serveConsoleAPI(t)
	first, _ := loadConfig(t, `{}`)
	var current atomic.Pointer[config.Set]
	current.Store(first)
	api := control.ConsoleAPI(control.Running{Life: t.Context(), Controller: &controller{a.hub, a.did}, Hub: a.hub, Recorder: a.recorder, Config: current.Load})
	web := httptest.NewServer(api)
	t.Cleanup(web.Close)
	a.url = web.URL
	next := a.follow(url.Values{})
	if l := next(); l.K != "boot" {
		t.Fatalf("%+v", l)
	}
	now, _ := loadConfig(t, `{"mcpServers": {"new": {"command": "x"}}}`)
	current.Store(now)
	for next().K != "config" {
	}
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, httptest.NewRequest("GET", "/v1/config", nil))
	var c control.Configuration
	if err := json.Unmarshal(answer.Body.Bytes(), &c); err != nil || len(c.Servers) != 1 || c.Servers[0].Name != "new" {
		t.Errorf("%s, %v", answer.Body, err)
	}
}

// A file is opened, checked and saved over the API. The secrets stay in it. Files that dowel does
// not read are refused, and so is an unreadable body.
func TestConfigEdit(t *testing.T) {
	t.Parallel()
	a := serveConsoleAPI(t)
	set, paths := loadConfig(t, `{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "correct-horse-battery"}}}}`)
	desk := &draft.Desk{Files: func() []config.File { return set.Files }}
	api := control.ConsoleAPI(control.Running{Life: t.Context(), Controller: &controller{a.hub, a.did}, Hub: a.hub, Recorder: a.recorder, Config: func() *config.Set { return set }, Drafts: desk})
	request := func(method, path, body string) (status int, text string) {
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, httptest.NewRequest(method, path, strings.NewReader(body)))
		return answer.Code, answer.Body.String()
	}
	_, text := request("GET", "/v1/config/file?path="+url.QueryEscape(paths[0]), "")
	var opened draft.Opened
	if err := json.Unmarshal([]byte(text), &opened); err != nil || opened.Draft == "" || opened.Hash != set.Files[0].Hash || strings.Contains(text, "correct-horse") {
		t.Fatalf("%s, %v", text, err)
	}
	change, err := json.Marshal(draft.Change{Draft: opened.Draft, Edits: []draft.Edit{{Path: []string{"mcpServers", "a", "timeout"}, Value: "9s"}}})
	if err != nil {
		t.Fatal(err)
	}
	if status, text := request("POST", "/v1/config/check", string(change)); status != 200 || !strings.Contains(text, `"lines":[{`) || strings.Contains(text, `"written"`) || strings.Contains(text, "correct-horse") {
		t.Errorf("check: %d %s", status, text)
	}
	if status, text := request("POST", "/v1/config/save", string(change)); status != 200 || !strings.Contains(text, `"written":true`) || !strings.Contains(text, "is saved, but") { // this controller cannot reload
		t.Errorf("save: %d %s", status, text)
	}
	if got, err := os.ReadFile(paths[0]); err != nil || !strings.Contains(string(got), `"timeout": "9s"`) || !strings.Contains(string(got), "correct-horse-battery") {
		t.Errorf("%s, %v", got, err)
	}
	for _, tt := range [][3]string{
		{"GET", "/v1/config/file?path=" + url.QueryEscape(filepath.Join(filepath.Dir(paths[0]), "other.json")), ""},
		{"GET", "/v1/config/file", ""}, {"POST", "/v1/config/check", "{"}, {"POST", "/v1/config/save", `{"draft": "none"}`}, {"POST", "/v1/config/save", `[]`},
	} {
		if status, text := request(tt[0], tt[1], tt[2]); status < 400 || !strings.Contains(text, "error") {
			t.Errorf("%v: %d %s", tt, status, text)
		}
	}
}
