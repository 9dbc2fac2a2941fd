package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/attach"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// model is a server for a scripted model. It checks requests as the provider would.
type model struct {
	*modelserver.Server
	url string
}

// newModel starts a model with the APIs of both providers. The test must use all turns of the
// script.
func newModel(t *testing.T, script string) *model {
	t.Helper()
	unsetModels(t)
	return startModel(t, script)
}

// startModel is like newModel, but leaves the environment unchanged.
func startModel(t *testing.T, script string) *model {
	t.Helper()
	parsed, err := modelserver.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	s := modelserver.New(t.Error, parsed, modelserver.Chat, modelserver.Messages)
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		for _, r := range s.Requests() {
			if r.Refused != "" {
				t.Errorf("the provider would have refused a request: %s\n%s", r.Refused, r.Body)
			}
		}
		if n := s.Left(); n > 0 && !t.Failed() {
			t.Errorf("%d turns of the script are left", n)
		}
	})
	return &model{s, web.URL + "/v1"}
}

// unsetModels unsets all environment variables for models.
func unsetModels(t *testing.T) {
	t.Helper()
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DOWEL_MODEL"} {
		t.Setenv(name, "")
	}
}

// runArgs appends the flags for the model and the test server to words.
func (m *model) runArgs(t *testing.T, words ...string) []string {
	t.Helper()
	return withTestServer(t, append([]string{"run", "--model", "gpt-test", "--base-url", m.url}, words...)...)
}

func TestRunTask(t *testing.T) {
	for _, test := range []struct {
		name           string
		script         string
		words          []string
		stdin          string
		stdout, stderr string // all of stdout, and a part of stderr
		code           int
	}{
		{
			name:   "an answer",
			script: `{"turns": [{"expect": ["Hello?"], "text": "Hello."}]}`,
			words:  []string{"Hello?"}, stdout: "Hello.\n",
		},
		{
			name: "a call",
			script: `{"turns": [{"text": "Let me see.", "calls": [{"name": "cli-test__echo", "arguments": {"message": "hi"}}]},
				{"expect": ["hi"], "text": "It said hi."}]}`,
			words: []string{"Echo", "hi", "--trust-annotations"}, stdout: "It said hi.\n",
		},
		{
			name:   "the task is piped in",
			script: `{"turns": [{"expect": ["from a pipe"], "text": "ok"}]}`,
			words:  []string{"-"}, stdin: "from a pipe\n", stdout: "ok\n",
		},
		{
			name:   "the task continues in a pipe",
			script: `{"turns": [{"expect": ["Summarize:\n\nwhat is piped in"], "text": "ok"}]}`,
			words:  []string{"Summarize:"}, stdin: "what is piped in", stdout: "ok\n",
		},
		{
			name:   "a call needs an approval",
			script: `{"turns": [{"calls": [{"name": "cli-test__add", "arguments": {"a": 1, "b": 2}}]}]}`,
			words:  []string{"Add"}, code: exit.Approval,
			stderr: "dowel: the model called cli-test.add, which needs an approval: it may destroy something, or declares no effect\n  allow this tool for this run with --allow cli-test.add, or all tools with --approve all\n",
		},
		{
			name:   "a read-only annotation is no approval",
			script: `{"turns": [{"calls": [{"name": "cli-test__echo", "arguments": {"message": "hi"}}]}]}`,
			words:  []string{"Echo"}, code: exit.Approval,
			stderr: "dowel: the model called cli-test.echo, which needs an approval: only its server says that it is read-only\n  if you trust its server to say which of its tools are read-only, allow these for this run with --trust-annotations\n",
		},
		{
			name:   "no tool may run",
			script: `{"turns": [{"calls": [{"name": "cli-test__echo", "arguments": {"message": "hi"}}]}]}`,
			words:  []string{"Echo", "--approve", "none"}, code: exit.Approval, stderr: "allow it with --approve read-only",
		},
		{
			name: "all tools may run",
			script: `{"turns": [{"calls": [{"name": "cli-test__add", "arguments": {"a": 1, "b": 2}}, {"name": "cli-test__fail"}]},
				{"expect": ["\"sum\":3", "out of cheese"], "text": "3"}]}`,
			words: []string{"Add", "--approve", "all"}, stdout: "3\n",
		},
		{
			name: "the budget is spent",
			script: `{"turns": [{"text": "One.", "calls": [{"name": "cli-test__echo", "arguments": {"message": "1"}}]},
				{"text": "Two.", "calls": [{"name": "cli-test__echo", "arguments": {"message": "2"}}]}]}`,
			words: []string{"Echo", "--trust-annotations", "--max-steps", "2"}, stdout: "Two.\n", code: exit.Budget,
			stderr: "dowel: the model did not finish within 2 steps\n  raise the limit with --max-steps\n",
		},
		{
			name:   "the answer is cut off",
			script: `{"turns": [{"text": "One, two, thr", "stop": "length"}]}`,
			words:  []string{"Count"}, stdout: "One, two, thr\n", code: exit.Failed,
			stderr: "dowel: the model's answer reached its length limit and was cut off\n  raise \"maxTokens\"",
		},
		{
			name:   "the answer is cut off, with -v",
			script: `{"turns": [{"text": "One,", "stop": "length"}]}`,
			words:  []string{"Count", "-v"}, stdout: "One,\n", code: exit.Failed, stderr: "the reply has reached the bound of its length, and was cut off",
		},
		{
			name:   "the provider refuses",
			script: `{"turns": [{"fail": {"status": 400, "message": "no such luck"}}]}`,
			words:  []string{"Hello"}, code: exit.Failed, stderr: "no such luck",
		},
		{
			name: "a flag answers a server's question",
			script: `{"turns": [{"calls": [{"name": "cli-test__name"}]},
				{"expect": ["hello Ada"], "text": "done"}]}`,
			words: []string{"Ask", "--approve", "all", "--answer", "value=Ada"}, stdout: "done\n",
		},
		{
			name: "the answer for the asking server is used",
			script: `{"turns": [{"calls": [{"name": "cli-test__name"}]},
				{"expect": ["hello Ada"], "text": "done"}]}`,
			words: []string{"Ask", "--approve", "all", "--answer", "other.value=Eve", "--answer", "cli-test.value=Ada", "--answer", "value=Bob"}, stdout: "done\n",
		},
		{
			name: "the answer for another server is not used",
			script: `{"turns": [{"calls": [{"name": "cli-test__name"}]},
				{"text": "done"}]}`,
			words: []string{"Ask", "--approve", "all", "--answer", "other.value=Eve"}, stdout: "done\n", stderr: "add --answer value=…",
		},
		{
			name: "a question has no answer",
			script: `{"turns": [{"calls": [{"name": "cli-test__name"}]},
				{"text": "done"}]}`,
			words: []string{"Ask", "--approve", "all"}, stdout: "done\n",
			stderr: "dowel: warning: cli-test.name asks the user, and dowel run cannot: answer with --answer KEY=VALUE, or use dowel chat\n",
		},
		{
			name: "-v shows the calls",
			script: `{"turns": [{"calls": [{"name": "cli-test__echo", "arguments": {"message": "hi"}}]},
				{"expect": ["hi"], "text": "It said hi."}]}`,
			words: []string{"Echo", "-v", "--trust-annotations"}, stdout: "It said hi.\n", stderr: "cli-test.echo message=hi",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newModel(t, test.script)
			out := runDowel(t, test.stdin, m.runArgs(t, test.words...)...)
			if out.code != test.code || out.stdout != test.stdout || !strings.Contains(out.stderr, test.stderr) || test.stderr == "" && out.stderr != "" {
				t.Errorf("exit code %d, want %d\nstdout: %s\nwant:   %s\nstderr: %s\nwant:   %s", out.code, test.code, out.stdout, test.stdout, out.stderr, test.stderr)
			}
		})
	}
}

// Attached files are sent with their names. A file type that no model accepts is an error before
// any server starts.
func TestRunTaskFiles(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notes, picture := write("notes.txt", "buy milk"), write("picture.png", string(pixel))
	m := newModel(t, `{"turns": [{"expect": ["What is this?"], "expectBody": ["buy milk", "notes.txt", "picture.png", "data:image/png;base64,"], "text": "ok"}]}`)
	if out := runDowel(t, "", m.runArgs(t, "What is this?", "-f", notes, "-f", picture)...); out.code != exit.OK || out.stdout != "ok\n" {
		t.Errorf("%+v", out)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, "none"): "no such file",
		folder:                        "it is a folder",
		write("binary", "\x00\x01"):   "it is neither UTF-8 text nor an image",
		write("large.txt", strings.Repeat("a", attach.MaxText+1)):     "it is a text of 1.0 MiB, and the limit is 1.0 MiB",
		write("large.png", string(pixel)+string(make([]byte, 6<<20))): "the limit is 5.0 MiB",
	} {
		out := runDowel(t, "", "run", "-f", path, "What is this?")
		if out.code != exit.Usage || !strings.Contains(out.stderr, want) || !strings.Contains(out.stderr, "-f "+path) {
			t.Errorf("%s: %+v, want %q", path, out, want)
		}
	}
}

// Each line of --json is a JSON value.
func TestRunTaskJSON(t *testing.T) {
	m := newModel(t, `{"turns": [
		{"reasoning": "hm", "text": "Let me see.", "calls": [{"id": "one", "name": "cli-test__steps"}], "usage": {"input": 10, "output": 2}},
		{"expect": ["done"], "text": "It is done.", "usage": {"input": 20, "cached": 10, "output": 3}}]}`)
	out := runDowel(t, "", m.runArgs(t, "Go", "--json", "--approve", "all")...)
	if out.code != exit.OK || out.stderr != "" {
		t.Errorf("exit code %d, stderr: %s", out.code, out.stderr)
	}
	var names []string
	events := map[string]map[string]any{}
	for l := range strings.Lines(out.stdout) {
		var e map[string]any
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		name := e["event"].(string)
		if e["time"] == nil || e["step"] == nil {
			t.Errorf("%s has no time or no step: %s", name, l)
		}
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
		events[name] = e
	}
	want := strings.Fields("began state thought text reply state decision call progress result state text reply state end")
	if !slices.Equal(names, want) {
		t.Errorf("the events are %v, want %v", names, want)
	}
	for name, members := range map[string]map[string]any{
		"began":    {"model": "gpt-test", "provider": "openai", "approve": "all"},
		"decision": {"id": "one", "tool": "cli-test__steps", "server": "cli-test", "effect": "destructive", "allowed": true, "by": "mode"},
		"call":     {"id": "one", "tool": "cli-test__steps"},
		"progress": {"id": "one", "tool": "cli-test__steps", "progress": 2.0, "total": 2.0, "message": "there"},
		"result":   {"id": "one", "tool": "cli-test__steps", "error": false},
		"end":      {"reason": "answered", "exit": 0.0, "answer": "It is done."},
	} {
		for member, value := range members {
			if events[name][member] != value {
				t.Errorf("%s of %s is %v, want %v", member, name, events[name][member], value)
			}
		}
	}
	if usage, _ := json.Marshal(events["end"]["usage"]); string(usage) != `{"cached":10,"input":30,"output":5}` {
		t.Errorf("the usage is %s", usage)
	}
}

// --max-time limits the wait for a model that stops in the middle of its reply.
func TestRunTaskLate(t *testing.T) {
	unsetModels(t)
	for name, test := range map[string]struct {
		words          []string
		stdout, stderr string // parts of them; LIMIT is --max-time
	}{
		"lines": {nil, "The answer is\n", "dowel: the model did not finish within LIMIT\n  raise the limit with --max-time\n"},
		"json":  {[]string{"--json"}, `"reason":"time over","exit":124,"answer":"The answer is","partial":true`, `"exit":124`},
	} {
		t.Run(name, func(t *testing.T) {
			m := startStallingServer(t, "The answer is")
			polltest.UntilLongEnough(t, 600*time.Millisecond, func(limit time.Duration) error {
				out := runDowel(t, "", append([]string{"run", "Go", "--model", "gpt-test", "--base-url", m.url, "--server", "everything", "--max-time", limit.String()}, test.words...)...)
				if out.code != exit.Timeout || !strings.Contains(out.stdout, test.stdout) || !strings.Contains(out.stderr, strings.ReplaceAll(test.stderr, "LIMIT", limit.String())) {
					return fmt.Errorf("%+v", out)
				}
				return nil
			})
		})
	}
	if out := runDowel(t, "", "run", "Go", "--server", "everything", "--max-time", "-1s"); out.code != exit.Usage || !strings.Contains(out.stderr, "--max-time -1s") {
		t.Errorf("%+v", out)
	}
}

// stallingServer is a model that sends a part of a reply and then stops.
type stallingServer struct {
	url    string
	stalls chan struct{} // receives a value when the part is sent
}

func startStallingServer(t *testing.T, says string) stallingServer {
	t.Helper()
	s := stallingServer{stalls: make(chan struct{}, 1)}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q}}]}\n\n", says)
		_ = http.NewResponseController(w).Flush()
		select {
		case s.stalls <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(web.Close)
	s.url = web.URL + "/v1"
	return s
}
