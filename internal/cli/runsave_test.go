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

// The conversation of dowel run is a file that dowel chat resumes and traces, and the console
// lists.
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
	if out := runDowel(t, "", "chat", "--sessions"); !strings.Contains(out.stdout, "dowel run: What is 19 plus 23?") {
		t.Errorf("%+v", out)
	}
	if out := runDowel(t, "", "chat", "--trace"); !strings.Contains(out.stdout, "cli-test.add a=19 b=23") || !strings.Contains(out.stdout, "step 2 · request 2") {
		t.Errorf("%+v", out)
	}
	if out := runDowel(t, "x\n", withTestServer(t, "chat", "--resume")...); out.code != exit.Usage || !strings.Contains(out.stderr, "continues with --resume="+began.Session) {
		t.Errorf("a run of a script is offered: %+v", out)
	}
	if out := runDowel(t, "And times two?\n", withTestServer(t, "chat", "--resume="+began.Session)...); out.code != exit.OK || out.stdout != "84\n" {
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

// runSaved runs a task with further words, and returns the ID of its conversation.
func (m *model) runSaved(t *testing.T, words ...string) string {
	t.Helper()
	out := runDowel(t, "", m.runArgs(t, append(words, "--json")...)...)
	var began struct{ Session string }
	first, _, _ := strings.Cut(out.stdout, "\n")
	if err := json.Unmarshal([]byte(first), &began); err != nil || out.code != exit.OK || began.Session == "" {
		t.Fatalf("%v: %+v", err, out)
	}
	return began.Session
}

// dowel run --resume continues the last run of the folder, and keeps its model.
func TestRunResumes(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	m := newModel(t, `{"turns": [{"text": "One."}, {"text": "Talk."}, {"expectBody": ["first task", "One."], "expect": ["second task"], "text": "Two."},
		{"expectBody": ["first task", "second task"], "expect": ["third task"], "text": "Three."}]}`)
	for _, word := range []string{"--resume", "--resume=x"} {
		if out := runDowel(t, "", m.runArgs(t, "a task", word)...); out.code != exit.Usage || !strings.Contains(out.stderr, "dowel chat --sessions") {
			t.Errorf("%s: %+v", word, out)
		}
	}
	first := m.runSaved(t, "first task")
	if out := runDowel(t, "hello\n", withTestServer(t, "chat", "--model", "gpt-test", "--base-url", m.url)...); out.stdout != "Talk.\n" {
		t.Fatalf("%+v", out)
	}
	if out := runDowel(t, "", withTestServer(t, "run", "--resume", "second task")...); out.stdout != "Two.\n" {
		t.Errorf("%+v", out)
	}
	if id := m.runSaved(t, "--resume="+first, "third task"); id != first {
		t.Errorf("continued is %s, want %s", id, first)
	}
	if out := runDowel(t, "", m.runArgs(t, "x", "--resume", "--watch", "cli-test:a")...); out.code != exit.Usage {
		t.Errorf("%+v", out)
	}
}

// Each run deletes the oldest runs beyond --keep-runs. Chats, and runs that were continued in a
// chat, stay.
func TestRunsAreBounded(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	m := newModel(t, `{"turns": [`+strings.Repeat(`{"text": "ok"}, `, 7)+`{"text": "ok"}]}`)
	if out := runDowel(t, "hello\n", withTestServer(t, "chat", "--model", "gpt-test", "--base-url", m.url)...); out.code != exit.OK {
		t.Fatalf("%+v", out)
	}
	chat := sessionFiles(t, state)
	continued := m.runSaved(t, "a")
	if out := runDowel(t, "hello\n", withTestServer(t, "chat", "--resume="+continued)...); out.code != exit.OK {
		t.Fatalf("%+v", out)
	}
	old := m.runSaved(t, "b", "--keep-runs", "1")
	kept := []string{continued, m.runSaved(t, "c", "--keep-runs", "0"), m.runSaved(t, "d"), m.runSaved(t, "e", "--keep-runs", "3")}
	if n := len(sessionFiles(t, state)); n != len(chat)+len(kept) {
		t.Errorf("%d files are left: %v", n, sessionFiles(t, state))
	}
	for _, id := range kept {
		if _, err := os.Stat(filepath.Join(state, "dowel", "sessions", id+".jsonl")); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(state, "dowel", "sessions", old+".jsonl")); err == nil {
		t.Errorf("%s, the oldest run, is left", old)
	}
	if last := m.runSaved(t, "f", "--keep-runs", "1"); len(sessionFiles(t, state)) != len(chat)+2 {
		t.Errorf("beside %s there are %v", last, sessionFiles(t, state))
	}
	if out := runDowel(t, "", m.runArgs(t, "x", "--keep-runs", "-1")...); out.code != exit.Usage {
		t.Errorf("%+v", out)
	}
}
