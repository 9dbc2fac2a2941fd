package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// addCall returns a turn in which the model calls add, a tool without annotations.
func addCall(a, b string) string {
	return `{"calls": [{"name": "cli-test__add", "arguments": {"a": ` + a + `, "b": ` + b + `}}]}`
}

// Without a terminal, chat reads lines from stdin and writes answers to stdout and events to
// stderr.
func TestChatPiped(t *testing.T) {
	for _, test := range []struct {
		name           string
		turns          string
		stdin          string
		words          []string
		stdout, stderr string // stderr is a part of it; "" means empty
		code           int
	}{
		{name: "nothing", stdin: ""},
		{name: "lines", turns: `{"expect": ["one"], "text": "First."}, {"expect": ["two\nthree"], "text": "Second.\nAnd more."}`, stdin: "one\n\ntwo\\\nthree", stdout: "First.\nSecond.\nAnd more.\n"},
		{
			name: "a call", turns: `{"text": "Let me see.", "calls": [{"name": "cli-test__echo", "arguments": {"message": "hi"}}]}, {"expect": ["hi"], "text": "It said hi."}`,
			stdin: "echo hi\n", words: []string{"--trust-annotations"}, stdout: "Let me see.\nIt said hi.\n", stderr: "✓ cli-test.echo message=hi · ",
		},
		{
			name: "nobody to ask", turns: addCall("1", "2") + `, {"expect": ["This tool was not run: the user has to approve this tool, and cannot be asked."], "text": "I may not."}`,
			stdin: "add\n", stdout: "I may not.\n", stderr: "– cli-test.add a=1 b=2 · not run: the user has to approve this tool, and cannot be asked",
		},
		{name: "all may run", turns: addCall("1", "2") + `, {"expect": ["3"], "text": "3"}`, stdin: "add\n", words: []string{"--approve", "all"}, stdout: "3\n", stderr: "✓ cli-test.add a=1 b=2"},
		{
			name: "answers", turns: `{"calls": [{"name": "cli-test__name"}]}, {"expect": ["hello Ada"], "text": "done"}`, stdin: "ask\n",
			words: []string{"--approve", "all", "--answer", "value=Ada"}, stdout: "done\n", stderr: "✓ cli-test.name",
		},
		{name: "instructions", turns: `{"expectBody": ["Be brief."], "text": "ok"}`, stdin: "x\n", words: []string{"--system", "Be brief."}, stdout: "ok\n"},
		{name: "cut off", turns: `{"text": "One,", "stop": "length"}, {"expect": ["go on"], "text": "two."}`, stdin: "count\ngo on\n", stdout: "One,\ntwo.\n", stderr: `the answer was cut off; write "go on" for the rest`},
		{name: "a failure is not the end", turns: `{"fail": {"status": 400, "message": "no such luck"}}, {"text": "better"}`, stdin: "x\ny\n", stdout: "better\n", stderr: "no such luck"},
		{name: "a failure at the end", turns: `{"fail": {"status": 400, "message": "no such luck"}}`, stdin: "x\n", stderr: "no such luck", code: exit.Failed},
		{name: "a command", stdin: "/approve\n/quit\nnever said\n", stdout: "ask: dowel asks before it runs a tool that is not read-only\n"},
		{name: "an unknown command", stdin: "/tols\n", stderr: "unknown command /tols; did you mean tools?", code: exit.Failed},
		{name: "a prompt", turns: `{"expect": ["Greet Ada!"], "text": "Dear Ada"}`, stdin: "/cli-test.greet name=Ada\n", stdout: "Dear Ada\n", stderr: "Greet Ada!"},
		{
			name: "a resource", turns: `{"expect": ["The resource test://item/7 of the server cli-test:", "item 7", "Read @cli-test:test://item/7!"], "text": "ok"}`,
			stdin: "Read @cli-test:test://item/7!\n", stdout: "ok\n", stderr: "added cli-test:test://item/7\n",
		},
		{name: "an unknown resource", stdin: "Read @cli-test:test://txet\n", stderr: "; did you mean test://text?", code: exit.Failed},
		{name: "a list of resources", stdin: "/resources text\n", stdout: "@cli-test:test://text text/plain the text: A text.\n"},
		{name: "a prompt without what it needs", stdin: "/cli-test.greet\n", stderr: "argument name is missing", code: exit.Failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			m := newModel(t, `{"turns": [`+test.turns+`]}`)
			out := runDowel(t, test.stdin, withTestServer(t, append([]string{"chat", "--model", "gpt-test", "--base-url", m.url}, test.words...)...)...)
			if out.code != test.code || out.stdout != test.stdout || !strings.Contains(out.stderr, test.stderr) || test.stderr == "" && out.stderr != "" {
				t.Errorf("exit code %d\n%s\nstderr: %s", out.code, out.stdout, out.stderr)
			}
			if strings.Count(out.stderr, "no such luck") > 1 || test.code != 0 && !strings.Contains(out.stderr, "the last message failed") {
				t.Errorf("it is told twice: %s", out.stderr)
			}
		})
	}
}

func TestChatUsage(t *testing.T) {
	unsetModels(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for words, want := range map[string]string{
		"hello":                     "or use dowel run",
		"everything":                "name a server with --server everything",
		"--approve some":            "want ask, read-only, all, none",
		"--max-steps -1":            "a number above 0",
		"--json":                    "dowel run --json",
		"--resume":                  "no saved conversation in",
		"--resume=x":                "there is no session x",
		"--system @/nowhere/at/all": "/nowhere/at/all",
		"--answer x":                "--answer",
		"--server nobody --model m --base-url http://127.0.0.1:9/v1": "no server is called nobody",
		"--server everything":              "there is no model to work with",
		"--model m --server everything --": "there is no command after --",
	} {
		if out := runDowel(t, "hello\n", append([]string{"chat"}, strings.Fields(words)...)...); out.code != exit.Usage || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: %+v", words, out)
		}
	}
	if out := runDowel(t, "", "chat", "--sessions"); out.code != exit.OK || !strings.Contains(out.stderr, "no conversation is saved") {
		t.Errorf("%+v", out)
	}
}

// --prune deletes old conversations and their results, after a question or with --yes.
func TestChatPrune(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	m := newModel(t, `{"turns": [{"text": "ok"}, {"text": "ok"}]}`)
	for range 2 {
		if out := runDowel(t, "x\n", withTestServer(t, "chat", "--model", "gpt-test", "--base-url", m.url)...); out.code != exit.OK {
			t.Fatalf("%+v", out)
		}
	}
	count := func() int {
		kept, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(kept)
	}
	kept, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*.jsonl"))
	if err != nil || len(kept) != 2 {
		t.Fatal(kept, err)
	}
	long := strings.TrimSuffix(kept[0], ".jsonl") + ".results"
	old := time.Now().Add(-40 * 24 * time.Hour)
	if err := errors.Join(os.Mkdir(long, 0o700), os.WriteFile(filepath.Join(long, "1"), nil, 0o600), os.Chtimes(kept[0], old, old)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		words string
		code  int
		want  string
		left  int
	}{
		{"--prune soon", exit.Usage, "write an age of at least an hour, such as 30d or 12h", 3},
		{"--prune 1m", exit.Usage, "write an age of at least an hour", 3},
		{"--yes", exit.Usage, "--yes is for --prune", 3},
		{"--prune 41d", exit.OK, "No conversation is older than 41d.", 3},
		{"--prune 30d", exit.Usage, "nothing is deleted: add --yes to delete 1 conversation", 3},
		{"--prune 30d --yes", exit.OK, "1 conversation deleted", 1},
	} {
		out := runDowel(t, "", append([]string{"chat"}, strings.Fields(step.words)...)...)
		if n := count(); out.code != step.code || !strings.Contains(out.stdout+out.stderr, step.want) || n != step.left {
			t.Errorf("%s: %d files are left: %+v", step.words, n, out)
		}
	}
}

// With --no-save, chat stores nothing.
func TestChatNotSaved(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	m := newModel(t, `{"turns": [{"text": "ok"}, {"text": "ok"}]}`)
	for _, words := range [][]string{{"--no-save"}, {}} {
		if out := runDowel(t, "x\n", withTestServer(t, append([]string{"chat", "--model", "gpt-test", "--base-url", m.url}, words...)...)...); out.code != exit.OK {
			t.Errorf("%+v", out)
		}
		found, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*"))
		if err != nil || (len(found) == 1) != (words == nil || len(words) == 0) {
			t.Errorf("%v: %v, %v", words, found, err)
		}
	}
}

// A chat that is saved late, or copied, records its model and continues with it.
func TestChatSavedLater(t *testing.T) {
	state, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy.jsonl")
	t.Setenv("XDG_STATE_HOME", state)
	m := newModel(t, `{"turns": [{"text": "ok"}, {"expect": ["and now"], "text": "again"}]}`)
	out := runDowel(t, "x\n/save\n/save "+copied+"\n", withTestServer(t, "chat", "--no-save", "--model", "gpt-test", "--base-url", m.url)...)
	kept, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*.jsonl"))
	if err != nil || out.code != exit.OK || len(kept) != 1 {
		t.Fatalf("%+v, %v, %v", out, kept, err)
	}
	for _, path := range append(kept, copied) {
		text, err := os.ReadFile(path)
		if err != nil || strings.Count(string(text), `"event":"model","data":{"provider":"openai","model":"gpt-test","url":"`+m.url+`"}`) != 1 {
			t.Errorf("%s holds %s, %v", path, text, err)
		}
	}
	if out := runDowel(t, "and now\n", withTestServer(t, "chat", "--resume")...); out.code != exit.OK || out.stdout != "again\n" {
		t.Errorf("the model is not that of the session: %+v", out)
	}
}

// A copy needs an existing folder; ~ means the user's home.
func TestChatSave(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	home, here := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Chdir(here)
	m := newModel(t, `{"turns": [{"text": "ok"}]}`)
	out := runDowel(t, "x\n/save nowhere/copy.jsonl\n/save here.jsonl\n/save ~/copy.jsonl\n", withTestServer(t, "chat", "--model", "gpt-test", "--base-url", m.url)...)
	for _, want := range []string{filepath.Join(home, "copy.jsonl"), string(filepath.Separator) + "here.jsonl"} {
		if !strings.Contains(out.stdout, want+"\n") {
			t.Errorf("%s is missing in %+v", want, out)
		}
	}
	if !strings.Contains(out.stderr, "nowhere") || out.code != exit.OK {
		t.Errorf("got %+v", out)
	}
	if _, err := os.Stat(filepath.Join(home, "copy.jsonl")); err != nil {
		t.Error(err)
	}
	if found, err := filepath.Glob(filepath.Join(here, "*")); err != nil || len(found) != 1 {
		t.Errorf("there are %v, %v", found, err)
	}
}
