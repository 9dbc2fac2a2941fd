package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// chatLines runs dowel chat with the test server, a model that has these turns, and lines of input.
func chatLines(t *testing.T, turns string, input []string, words ...string) output {
	t.Helper()
	m := newModel(t, `{"turns": [`+turns+`]}`)
	words = append([]string{"chat", "--model", "gpt-test", "--base-url", m.url}, words...)
	return runDowel(t, strings.Join(input, "\n")+"\n", withTestServer(t, words...)...)
}

// A tool that is switched off cannot be called, and comes back.
func TestChatSwitchesTools(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	echo := `{"calls": [{"name": "cli-test__echo", "arguments": {"message": "hi"}}]}`
	out := chatLines(t, `{"text": "ok"}, `+echo+`, {"expect": ["there is no tool"], "text": "none"}, `+echo+`, {"expect": ["hi"], "text": "there"}`,
		[]string{"hello", "/tools off cli-test.echo", "/tools", "go", "/tools on cli-test", "/tools", "go"}, "--approve", "all")
	if out.code != exit.OK || !strings.HasSuffix(out.stdout, "there\n") || strings.Count(out.stdout, "cli-test.echo read-only off ") != 1 {
		t.Errorf("%+v", out)
	}
	if !regexp.MustCompile(`(?m)^cli-test\.add \d+ tokens `).MatchString(out.stdout) {
		t.Errorf("the tokens of add are missing: %s", out.stdout)
	}
	for words, want := range map[string]string{
		"/tools off":               "needs a name",
		"/tools off cli-test.ecko": "did you mean cli-test.echo?",
	} {
		if out := chatLines(t, "", []string{words}); out.code != exit.Failed || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v", words, out)
		}
	}
}

// Servers restart, tell why they fail, and are examined.
func TestChatServers(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	out := chatLines(t, "", []string{"/servers", "/servers restart cli-test", "/servers why cli-test", "/doctor everything"})
	for _, want := range []string{"cli-test", "ready", "handshake"} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("%s is missing: %+v", want, out)
		}
	}
	if out.code != exit.OK || !strings.Contains(out.stderr, "cli-test restarts; /servers shows its state") {
		t.Errorf("%+v", out)
	}
	for words, want := range map[string]string{
		"/servers rstart cli-test": "want restart, login, why",
		"/servers restart cli-tst": "did you mean cli-test?",
		"/servers login cli-test":  "no server of your configuration is called cli-test",
		"/doctor nothing":          "no server is named nothing",
	} {
		if out := chatLines(t, "", []string{words}); out.code != exit.Failed || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v", words, out)
		}
	}
}

// A fork continues in a file of its own. The first conversation stays as it was, and can be
// resumed inside the chat.
func TestChatForkAndResume(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	out := chatLines(t, `{"text": "first"}, {"expect": ["second question"], "text": "second"}`, []string{"first question", "/fork", "second question"})
	found := regexp.MustCompile(`continuing in (\S+); (\S+) stays`).FindStringSubmatch(out.stderr)
	if out.code != exit.OK || found == nil {
		t.Fatalf("%+v", out)
	}
	for i, want := range []int{1, 0} {
		text, err := os.ReadFile(filepath.Join(state, "dowel", "sessions", found[i+1]+".jsonl"))
		if err != nil || strings.Count(string(text), "second question") != want {
			t.Errorf("%s holds %s, %v", found[i+1], text, err)
		}
	}
	out = chatLines(t, `{"expectBody": ["first question"], "expect": ["third question"], "text": "third"}`, []string{"/resume", "/resume " + found[2], "third question", "/resume " + found[2]})
	if !strings.Contains(out.stdout, found[1]) || !strings.Contains(out.stderr, "> first question") || !strings.Contains(out.stderr, "is this conversation") || !strings.Contains(out.stdout, "third") {
		t.Errorf("%+v", out)
	}
	text, err := os.ReadFile(filepath.Join(state, "dowel", "sessions", found[2]+".jsonl"))
	if err != nil || strings.Contains(string(text), "second question") || !strings.Contains(string(text), "third question") {
		t.Errorf("the conversation holds %s, %v", text, err)
	}
	if out := chatLines(t, "", []string{"/resume nothing"}); out.code != exit.Failed || !strings.Contains(out.stderr, "there is no session nothing") {
		t.Errorf("%+v", out)
	}
}

func TestChatExport(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	markdown, data := filepath.Join(dir, "talk.md"), filepath.Join(dir, "talk.json")
	turns := "{\"text\": \"Use ```a```.\", \"calls\": [{\"name\": \"cli-test__echo\", \"arguments\": {\"message\": \"```b```\"}}]}, {\"text\": \"done\"}"
	out := chatLines(t, turns, []string{"hello", "/export " + markdown, "/export " + data, "/export"}, "--approve", "all")
	text, err := os.ReadFile(markdown)
	want := "# A conversation with gpt-test\n\n## User\n\nhello\n\n## Model\n\nUse ```a```.\n\n**Call of cli-test.echo**\n\n````json\n{\"message\":\"```b```\"}\n````\n\n**Result**\n\n````\n```b```\n````\n\n## Model\n\ndone\n"
	if err != nil || string(text) != want || out.code != exit.OK || !strings.HasSuffix(out.stdout, want) {
		t.Errorf("%s, %v, %+v", text, err, out)
	}
	var held struct {
		Model    string
		Messages []json.RawMessage
	}
	if text, err = os.ReadFile(data); err != nil || json.Unmarshal(text, &held) != nil || held.Model != "gpt-test" || len(held.Messages) != 4 {
		t.Errorf("%s, %v", text, err)
	}
	if out := chatLines(t, `{"text": "ok"}`, []string{"x", "/export " + data}); out.code != exit.Failed || !strings.Contains(out.stderr, data+" already exists") {
		t.Errorf("%+v", out)
	}
}

// The changes of a files server are undone one after the other, unless the file has changed since.
func TestChatUndo(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	t.Chdir(dir)
	a, b := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")
	if err := os.WriteFile(a, []byte("one\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	turns := `{"calls": [{"name": "files__edit", "arguments": {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}}]},
		{"calls": [{"name": "files__write", "arguments": {"path": "b.txt", "content": "new"}}]}, {"text": "done"}`
	for name, tt := range map[string]struct {
		input  []string
		a, b   string // "" means absent
		stderr string
		code   int
	}{
		"one":           {[]string{"go", "/undo"}, "two\n", "", "removed ", exit.OK},
		"both":          {[]string{"go", "/undo", "/undo"}, "one\n", "", "restored ", exit.OK},
		"no more":       {[]string{"go", "/undo", "/undo", "/undo"}, "one\n", "", "there is no edit to undo", exit.Failed},
		"nothing done":  {[]string{"/undo"}, "one\n", "", "there is no edit to undo", exit.Failed},
		"dry run":       {[]string{"dry", "/undo"}, "one\n", "", "there is no edit to undo", exit.Failed},
		"changed since": {[]string{"again", "/undo"}, "one\n", "mine", "has changed since the edit", exit.Failed},
		"impossible":    {[]string{"delete", "/undo"}, "two\n", "", "the latest change, files.delete, cannot be undone; /undo again", exit.Failed},
		"before that":   {[]string{"delete", "/undo", "/undo", "/undo"}, "one\n", "", "restored ", exit.OK},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(a, []byte("one\n"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(b); err != nil {
				t.Fatal(err)
			}
			turns, words := turns, []string{"--approve", "all", "--server", "files"}
			switch tt.input[0] {
			case "/undo":
				turns = ""
			case "dry":
				turns = `{"calls": [{"name": "files__edit", "arguments": {"path": "a.txt", "dryRun": true, "edits": [{"old": "one", "new": "two"}]}}]}, {"text": "done"}`
			case "delete":
				turns = `{"calls": [{"name": "files__edit", "arguments": {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}}]},
					{"calls": [{"name": "files__write", "arguments": {"path": "b.txt", "content": "new"}}]},
					{"calls": [{"name": "files__delete", "arguments": {"path": "b.txt"}}]}, {"text": "done"}`
			case "again":
				words = append(words, "--server", "shell")
				turns = `{"calls": [{"name": "files__write", "arguments": {"path": "b.txt", "content": "new"}}]},
					{"calls": [{"name": "shell__run", "arguments": {"command": "printf mine > b.txt"}}]}, {"text": "done"}`
			}
			out := chatLines(t, turns, tt.input, words...)
			held := func(path string) string { text, _ := os.ReadFile(path); return string(text) }
			if out.code != tt.code || !strings.Contains(out.stderr, tt.stderr) || held(a) != tt.a || held(b) != tt.b {
				t.Errorf("%+v; the files hold %q and %q", out, held(a), held(b))
			}
			if info, err := os.Stat(a); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}

// /edit takes the last message and its replies out of the conversation.
func TestChatEdit(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	out := chatLines(t, `{"text": "one"}, {"text": "two"}, {"expectBody": ["first", "one", "third"], "text": "three"}`, []string{"first", "second", "/edit", "third", "/export"})
	_, exported, _ := strings.Cut(out.stdout, "# A conversation")
	if out.code != exit.OK || strings.Contains(exported, "second") || strings.Contains(exported, "two") || !strings.Contains(exported, "three") {
		t.Errorf("%+v", out)
	}
	if out := chatLines(t, "", []string{"/edit"}); out.code != exit.Failed || !strings.Contains(out.stderr, "there is no message to edit") {
		t.Errorf("%+v", out)
	}
}

// /compact replaces the older part by a summary, and says why it does not.
func TestChatCompact(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	long := strings.Repeat("many words ", 300)
	out := chatLines(t, `{"text": "`+long+`"}, {"text": "second answer"}, {"expectBody": ["You summarise"], "text": "They spoke."}, {"expectBody": ["first", "They spoke.", "second answer", "third"], "text": "three"}`,
		[]string{"first", "second", "/compact", "third", "/export"})
	_, exported, _ := strings.Cut(out.stdout, "# A conversation")
	if out.code != exit.OK || strings.Contains(exported, "many words") || !strings.Contains(exported, "They spoke.") || !strings.Contains(out.stderr, "compacted from about 1,") {
		t.Errorf("%+v", out)
	}
	if out := chatLines(t, "", []string{"/compact"}); out.code != exit.Failed || !strings.Contains(out.stderr, "nothing older") {
		t.Errorf("%+v", out)
	}
}
