//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// runCase is a run of dowel run with a scripted model.
type runCase struct {
	name, script   string
	words          []string
	stdout, stderr string   // all of stdout, and a part of stderr
	without        []string // not in stderr
	code           int
}

func (test runCase) run(t *testing.T) {
	t.Run(test.name, func(t *testing.T) {
		m := newModel(t, test.script)
		out := runDowel(t, "", m.runArgs(t, test.words...)...)
		if out.code != test.code || out.stdout != test.stdout || !strings.Contains(out.stderr, test.stderr) || test.stderr == "" && out.stderr != "" {
			t.Errorf("exit code %d, want %d\nstdout: %s\nwant:   %s\nstderr: %s\nwant:   %s", out.code, test.code, out.stdout, test.stdout, out.stderr, test.stderr)
		}
		checkText(t, out.stderr, nil, test.without)
	})
}

// --allow is for one tool and one task, --max-tokens ends the task before the next reply.
func TestRunAllowances(t *testing.T) {
	const add = `{"turns": [{"calls": [{"name": "cli-test__add", "arguments": {"a": 1, "b": 2}}]}, {"expect": ["\"sum\":3"], "text": "3"}]}`
	const both = `{"turns": [{"calls": [{"name": "cli-test__add", "arguments": {"a": 1, "b": 2}}, {"name": "cli-test__fail"}]}]}`
	const echoes = `{"turns": [{"text": "One.", "calls": [{"name": "cli-test__echo", "arguments": {"message": "1"}}], "usage": {"input": 700, "output": 300}}]}`
	for _, test := range []runCase{
		{name: "one tool", script: add, words: []string{"Add", "--allow", "cli-test.add"}, stdout: "3\n"},
		{name: "all tools of a server", script: add, words: []string{"Add", "--allow", "cli-test.*"}, stdout: "3\n"},
		{
			name: "another tool", script: both, words: []string{"Add", "--allow", "cli-test.add"}, code: exit.Approval,
			stderr: "the model called cli-test.fail, which needs an approval: it may destroy something, or declares no effect\n  allow this tool for this run with --allow cli-test.fail, or all tools with --approve all\n",
		},
		{
			name: "no such tool", script: `{"turns": [{"text": "ok"}]}`, words: []string{"Add", "--allow", "cli-test.ad"}, stdout: "ok\n",
			stderr: "--allow cli-test.ad: no server has this tool now; did you mean cli-test.add?",
		},
		{name: "none", script: `{"turns": []}`, words: []string{"Add", "--allow", "cli-test.add", "--approve", "none"}, code: exit.Usage, stderr: "--approve none runs no tool, and --allow lets cli-test.add run: use one of them"},
		{
			name: "tokens", script: echoes, words: []string{"Echo", "--trust-annotations", "--max-tokens", "1000"}, stdout: "One.\n", code: exit.Budget,
			stderr: "dowel: the model did not finish within the budget: it used 1,000 of 1,000 tokens\n  raise the limit with --max-tokens\n",
		},
		{name: "the last reply may exceed the tokens", script: `{"turns": [{"text": "One.", "usage": {"input": 700, "output": 300}}]}`, words: []string{"Say one", "--max-tokens", "10"}, stdout: "One.\n"},
		{name: "an unknown price", script: `{"turns": []}`, words: []string{"Echo", "--max-cost", "1"}, code: exit.Usage, stderr: `the price of gpt-test is unknown: add "price"`},
		{name: "a negative limit", script: `{"turns": []}`, words: []string{"Echo", "--max-tokens", "-1"}, code: exit.Usage, stderr: "--max-tokens -1: write a number from 1"},
	} {
		test.run(t)
	}
}

// The price of a model in the configuration bounds the cost of a task.
func TestRunMaxCost(t *testing.T) {
	m := newModel(t, `{"turns": [{"text": "One.", "calls": [{"name": "cli-test__echo", "arguments": {"message": "1"}}], "usage": {"input": 1000000, "output": 100000}}]}`)
	file := filepath.Join(t.TempDir(), "dowel.json")
	content := `{"models": {"priced": {"provider": "openai", "model": "gpt-test", "url": "` + m.url + `", "price": {"input": 2, "output": 10}}}}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	words := withTestServer(t, "run", "--config", file, "--model", "priced", "--trust-annotations", "--json", "--max-cost", "2.5", "Echo")
	out := runDowel(t, "", words...)
	var end struct{ Reason, Error string }
	if err := json.Unmarshal([]byte(lastLineOf(out.stdout)), &end); err != nil {
		t.Fatal(err, out)
	}
	if out.code != exit.Budget || end.Reason != "budget spent" || !strings.Contains(end.Error, "it used $3.00 of $2.50") {
		t.Errorf("%+v", out)
	}
}

func lastLineOf(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// --schema makes the answer JSON that matches. The model gets one chance to correct it.
func TestRunSchema(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answer.json")
	if err := os.WriteFile(file, []byte(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []runCase{
		{name: "it matches", script: `{"turns": [{"expectBody": ["This JSON Schema must accept it"], "text": "{\"sum\": 3}"}]}`, words: []string{"Add", "--schema", file}, stdout: "{\"sum\": 3}\n"},
		{name: "in a fence", script: "{\"turns\": [{\"text\": \"```json\\n{\\\"sum\\\": 3}\\n```\"}]}", words: []string{"Add", "--schema", file}, stdout: "{\"sum\": 3}\n"},
		{
			name:   "corrected",
			script: `{"turns": [{"text": "It is three."}, {"expect": ["the answer does not match the schema", "Reply with the corrected JSON value"], "text": "{\"sum\": 3}"}]}`,
			words:  []string{"Add", "--schema", file}, stdout: "{\"sum\": 3}\n",
		},
		{
			name:   "not corrected",
			script: `{"turns": [{"text": "{}"}, {"text": "{\"sum\": \"three\"}"}]}`,
			words:  []string{"Add", "--schema", file}, stdout: "{\"sum\": \"three\"}\n", code: exit.Failed,
			stderr: "dowel: the answer does not match the schema: /sum",
		},
		{name: "no schema", script: `{"turns": []}`, words: []string{"Add", "--schema", "absent.json"}, code: exit.Usage, stderr: "--schema: open absent.json"},
	} {
		test.run(t)
	}
	if err := os.WriteFile(file, []byte(`{"type":"objekt"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	runCase{name: "a wrong schema", script: `{"turns": []}`, words: []string{"Add", "--schema", file}, code: exit.Usage, stderr: "is not a JSON Schema"}.run(t)
}

// A prompt of a server can be the task. Other words that begin with a slash are not prompts.
func TestRunPrompt(t *testing.T) {
	for _, test := range []runCase{
		{name: "a prompt", script: `{"turns": [{"expect": ["Greet Ada!"], "text": "Hello Ada."}]}`, words: []string{"/cli-test.greet", "name=Ada"}, stdout: "Hello Ada.\n"},
		{name: "an argument is missing", script: `{"turns": []}`, words: []string{"/cli-test.greet"}, code: exit.Usage, stderr: "name"},
		{name: "no such prompt", script: `{"turns": []}`, words: []string{"/cli-test.gret", "name=Ada"}, code: exit.Usage, stderr: "unknown prompt /cli-test.gret; did you mean cli-test.greet?"},
		{name: "a path", script: `{"turns": [{"expect": ["/tmp is full"], "text": "ok"}]}`, words: []string{"/tmp", "is", "full"}, stdout: "ok\n"},
	} {
		test.run(t)
	}
}

// Results are left out, begun with -v, and complete with -vv.
func TestRunVerbosity(t *testing.T) {
	long := strings.Repeat("word ", 200)
	script := `{"turns": [{"calls": [{"name": "cli-test__echo", "arguments": {"message": "` + long + `"}}]}, {"text": "ok"}]}`
	for _, test := range []struct {
		flag string
		want int // the most words of the result
	}{{"", 0}, {"-v", 100}, {"-vv", 220}} {
		m := newModel(t, script)
		words := m.runArgs(t, "Echo", "--trust-annotations")
		if test.flag != "" {
			words = m.runArgs(t, "Echo", "--trust-annotations", test.flag)
		}
		out := runDowel(t, "", words...)
		if n := strings.Count(out.stderr, "word"); out.stdout != "ok\n" || n > test.want || n <= test.want/10 && test.want > 0 {
			t.Errorf("%q: %d words, want at most %d\n%+v", test.flag, n, test.want, out)
		}
	}
}

// The runs of --watch share --max-tokens: dowel ends when they have used it up.
func TestRunWatchBudget(t *testing.T) {
	reply := func(text string) string {
		return `{"text": "` + text + `", "usage": {"input": 700, "output": 300}}`
	}
	m := newModel(t, `{"turns": [`+reply("one")+`, `+reply("two")+`]}`)
	out := runDowel(t, "", m.runArgs(t, "Look.", "--watch", "cli-test:test://ticking", "--max-tokens", "1500")...)
	if out.code != exit.Budget || !strings.HasPrefix(out.stdout, "one\ntwo\n") || !strings.Contains(out.stderr, "it used 2,000 of 1,500 tokens") {
		t.Errorf("%+v", out)
	}
}

// --watch runs the task at once, and again after each change, in a conversation of its own.
func TestRunWatch(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	m := newModel(t, `{"turns": [{"expect": ["Look at it", "tick"], "text": "one"}, {"expect": ["Look at it", "tick"], "text": "two"}]}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var stdout, stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		words := m.runArgs(t, "Look at it: @cli-test:test://ticking", "--watch", "cli-test:test://ticking", "--max-time", "5m")
		ended <- Run(ctx, words, strings.NewReader(""), &stdout, &stderr)
	}()
	polltest.Until(t, "two runs", func() bool { return m.Left() == 0 })
	cancel(&exit.Interruption{Signal: os.Interrupt})
	if code := <-ended; code != exit.Interrupted || !strings.HasPrefix(stdout.String(), "one\n") {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	if files := sessionFiles(t, state); len(files) < 2 {
		t.Errorf("stored are %v", files)
	}
	for _, r := range m.Requests()[:2] {
		if bytes.Contains(r.Body, []byte(`"one"`)) {
			t.Errorf("the second run knows the first: %s", r.Body)
		}
	}
	nothing := runDowel(t, "", "run", "--model", "gpt-test", "--base-url", m.url, "--server", "shell", "Look", "--watch", "shell:kv://x")
	if want := "dowel: --watch: the server offers none of these changes\n"; nothing.code != exit.Protocol || nothing.stderr != want {
		t.Errorf("a server without resources: exit code %d, %q, want %q", nothing.code, nothing.stderr, want)
	}
	for word, want := range map[string]string{
		"elsewhere:test://ticking": "no server is called elsewhere", "nothing": "--watch nothing: write SERVER:URI",
	} {
		m := newModel(t, `{"turns": []}`)
		if out := runDowel(t, "", m.runArgs(t, "Look", "--watch", word)...); out.code != exit.Usage || !strings.Contains(out.stderr, want) {
			t.Errorf("%+v", out)
		}
	}
}
