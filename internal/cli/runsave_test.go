package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/control"
)

// sessionFiles returns the files in the folder of sessions.
func sessionFiles(t *testing.T, state string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The conversation of dowel run is a file that dowel chat resumes and traces, and the console lists.
func TestRunSaves(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Chdir(t.TempDir())
	m := newModel(t, `{"turns": [
		{"expect": ["What is 19 plus 23?"], "calls": [{"name": "cli-test__add", "arguments": {"a": 19, "b": 23}}]},
		{"expect": ["42"], "text": "It is 42."},
		{"expect": ["And times two?"], "text": "84"}]}`)
	out := runDowel(t, "", m.runArgs(t, "What is 19 plus 23?", "--approve", "all", "--json")...)
	if out.code != exit.OK {
		t.Fatalf("%+v", out)
	}
	var began struct{ Session string }
	first, _, _ := strings.Cut(out.stdout, "\n")
	if err := json.Unmarshal([]byte(first), &began); err != nil || began.Session == "" {
		t.Fatalf("%v: %s", err, first)
	}
	list, err := control.NewChats(filepath.Join(state, "dowel", "sessions")).List("")
	if err != nil || len(list.Chats) != 1 || list.Chats[0].ID != began.Session || list.Chats[0].Words != "What is 19 plus 23?" || list.Chats[0].Model != "gpt-test" {
		t.Errorf("%+v, %v", list, err)
	}
	if out := runDowel(t, "", "chat", "--trace"); !strings.Contains(out.stdout, "cli-test.add a=19 b=23") || !strings.Contains(out.stdout, "step 2 · request 2") {
		t.Errorf("%+v", out)
	}
	if out := runDowel(t, "And times two?\n", withTestServer(t, "chat", "--resume")...); out.code != exit.OK || out.stdout != "84\n" {
		t.Errorf("%+v", out)
	}
	for _, said := range []string{"What is 19 plus 23?", "It is 42."} {
		if requests := m.Requests(); !strings.Contains(string(requests[len(requests)-1].Body), said) {
			t.Errorf("the model does not know %q", said)
		}
	}
}

// With --no-save, dowel run stores nothing. If the state folder cannot be written to, it warns and
// carries out the task.
func TestRunNotSaved(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	m := newModel(t, `{"turns": [{"text": "one"}, {"text": "two"}]}`)
	if out := runDowel(t, "", m.runArgs(t, "x", "--no-save")...); out.code != exit.OK || out.stderr != "" {
		t.Errorf("%+v", out)
	}
	if files := sessionFiles(t, state); len(files) > 0 {
		t.Errorf("stored are %v", files)
	}
	path := filepath.Join(state, "dowel", "sessions")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil { // a file in place of the folder
		t.Fatal(err)
	}
	if out := runDowel(t, "", m.runArgs(t, "x")...); out.code != exit.OK || out.stdout != "two\n" || strings.Count(out.stderr, "is not saved") != 1 || !strings.Contains(out.stderr, path) {
		t.Errorf("%+v", out)
	}
}
