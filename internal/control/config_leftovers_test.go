package control_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/draft"
	"github.com/dowel-mcp/dowel/internal/control"
)

// The bundle and the secrets of an entry go with it, unless another entry needs them.
func TestConfigRemovesLeftovers(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_DATA_HOME", home)
	secrets, bundle := filepath.Join(home, "dowel", "secrets", "a"), filepath.Join(home, "dowel", "bundles", "b-1")
	write(t, filepath.Join(secrets, "TOKEN"), "canary\n")
	write(t, filepath.Join(bundle, "main.js"), "")
	places := config.Options{Home: home, GOOS: "linux", Env: func(string) (string, bool) { return "", false }}
	path := filepath.Join(places.Dir(), "dowel.json")
	entry, err := json.Marshal(map[string]any{"command": "x", "cwd": bundle, "env": map[string]string{"TOKEN": "${file:" + filepath.Join(secrets, "TOKEN") + "}"}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, `{"mcpServers": {"a": `+string(entry)+`, "b": `+string(entry)+`, "c": {"command": "y"}}}`)
	a := serveConsoleAPI(t)
	desk := &draft.Desk{Files: func() []config.File { return config.Load(places).Files }}
	api := control.ConsoleAPI(control.Running{Life: t.Context(), Controller: &controller{a.hub, a.did}, Hub: a.hub, Recorder: a.recorder,
		Config: func() *config.Set { return config.Load(places) }, Drafts: desk, Places: places})
	remove := func(action, name string) (out draft.Outcome) {
		t.Helper()
		opened, err := desk.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		change, err := json.Marshal(draft.Change{Draft: opened.Draft, Edits: []draft.Edit{{Path: []string{"mcpServers", name}, Remove: true}}})
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, httptest.NewRequest("POST", "/v1/config/"+action, strings.NewReader(string(change))))
		if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil || answer.Code != 200 {
			t.Fatalf("%s of %s: %d %s", action, name, answer.Code, answer.Body)
		}
		return out
	}
	check := func(when string, isThere bool) {
		t.Helper()
		for _, folder := range []string{secrets, bundle} {
			if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) == isThere {
				t.Errorf("%s: %s: %v", when, folder, err)
			}
		}
	}
	if out := remove("save", "c"); len(out.Leftovers) != 0 {
		t.Errorf("a server without folders: %q", out.Leftovers)
	}
	if out := remove("save", "a"); len(out.Leftovers) != 0 || !out.Written {
		t.Errorf("folders that another server needs: %q", out.Leftovers)
	}
	check("while another entry needs them", true)
	if out := remove("check", "b"); len(out.Leftovers) != 2 || !strings.Contains(out.Leftovers[1], "The secrets would be removed too") {
		t.Errorf("a check: %q", out.Leftovers)
	}
	check("after a check", true)
	if out := remove("save", "b"); len(out.Leftovers) != 2 || !strings.Contains(out.Leftovers[0], "Removed the bundle") {
		t.Errorf("the last server: %q", out.Leftovers)
	}
	check("without an entry", false)
}
