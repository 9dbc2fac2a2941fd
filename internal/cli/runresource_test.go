package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// @SERVER:URI in the task adds a resource, with both providers. Any other @ stays text.
func TestRunResources(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString(pixel)[:40]
	for _, test := range []struct {
		name   string
		turns  string
		task   string
		stdin  string
		lacks  string // text that no request may hold
		stderr string // text that stderr must hold; "" means that stderr is empty
		code   int
	}{
		{name: "text", task: "Summarise @cli-test:test://text.", turns: `{"expect": ["The resource test://text of the server cli-test:", "line one\nline two", "Summarise @cli-test:test://text."], "text": "ok"}`},
		{name: "a template with its value", task: "See (@x) @cli-test:test://item/7, please", turns: `{"expect": ["item 7"], "text": "ok"}`},
		{name: "in quotes", task: `See @"cli-test:test://item/7"`, turns: `{"expect": ["item 7"], "text": "ok"}`},
		{name: "an image", task: "@cli-test:test://pixel", turns: `{"expectBody": ["` + picture + `"], "text": "ok"}`},
		{name: "twice", task: "@cli-test:test://text @cli-test:test://text", turns: `{"expect": ["line one"], "text": "ok"}`, lacks: "line two\\n[The resource"},
		{name: "an unknown server", task: "@cli-tset:test://text", code: exit.Usage, stderr: "@cli-tset:test://text names a resource, but no server is called cli-tset; did you mean cli-test?"},
		{name: "an unknown URI", task: "@cli-test:test://txet", code: exit.Failed, stderr: "cli-test has no resource test://txet: "},
		{name: "a similar URI", task: "@cli-test:test://txet", code: exit.Failed, stderr: "; did you mean test://text?"},
		{name: "a template without values", task: "@cli-test:test://item/{id}", code: exit.Usage, stderr: "@cli-test:test://item/{id} is a template: write values in place of {id}"},
		{
			name: "no references", task: "Mail a@b.c, @alice:matrix.org and x@cli-test:test://text, about @notes.txt; @cli-test: hello, @todo:later @https://a.b",
			turns: `{"expect": ["Mail a@b.c, @alice:matrix.org and x@cli-test:test://text, about @notes.txt; @cli-test: hello, @todo:later @https://a.b"], "text": "ok"}`, lacks: "line one",
		},
		{name: "beside a pipe", task: "Say:", stdin: "@cli-test:test://text\n", turns: `{"expect": ["@cli-test:test://text"], "text": "ok"}`, lacks: "line one"},
		{name: "the task in a pipe", task: "-", stdin: "Read @cli-test:test://text\n", turns: `{"expect": ["line one"], "text": "ok"}`},
		{
			name: "the model reads", task: "Read!",
			turns: `{"calls": [{"name": "list_resources"}]}, {"expect": ["test://item/{id} (of cli-test, a template)"], "calls": [{"name": "read_resource", "arguments": {"uri": "test://item/8"}}]},
				{"expect": ["item 8"], "text": "ok"}`,
		},
	} {
		for _, provider := range []string{"openai", "anthropic"} {
			t.Run(test.name+"/"+provider, func(t *testing.T) {
				m := newModel(t, `{"turns": [`+test.turns+`]}`)
				if provider == "anthropic" {
					m.url = strings.TrimSuffix(m.url, "/v1")
				}
				out := runDowel(t, test.stdin, withTestServer(t, "run", "--model", "m-test", "--provider", provider, "--base-url", m.url, test.task)...)
				if out.code != test.code || (out.stdout == "ok\n") != (test.code == exit.OK) || !strings.Contains(out.stderr, test.stderr) || test.stderr == "" && out.stderr != "" {
					t.Errorf("exit code %d\n%s\nstderr: %s", out.code, out.stdout, out.stderr)
				}
				for _, r := range m.Requests() {
					if test.lacks != "" && strings.Contains(string(r.Body), test.lacks) {
						t.Errorf("the model got %s", r.Body)
					}
				}
			})
		}
	}
}

// The files of a folder are resources of the built-in server. The model gets a part of a long file.
func TestRunFileResource(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "long.txt"), []byte(strings.Repeat("much\n", 10_000)+"the end"), 0o600); err != nil {
		t.Fatal(err)
	}
	uri := "file://" + filepath.ToSlash(filepath.Join(dir, "long.txt"))
	m := newModel(t, `{"turns": [{"expect": ["characters are left out here", "kept as \"result-1\"", "the end"], "calls": [{"name": "read_result", "arguments": {"result": "result-1", "search": "the end"}}]},
		{"expect": ["the end"], "text": "ok"}]}`)
	out := runDowel(t, "", "run", "--model", "m-test", "--base-url", m.url, "--server", "files", "--dir", dir, "Read @files:"+uri)
	if out.code != exit.OK || out.stdout != "ok\n" {
		t.Errorf("%+v", out)
	}
}

// A change of a resource that the task names is an event, and the model is told before its next
// reply.
func TestRunResourceChanges(t *testing.T) {
	m := newModel(t, `{"turns": [{"expect": ["[These resources may have changed since you have read them: test://ticking of the server cli-test."], "text": "ok"}]}`)
	calls := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(body, []byte("These resources may have changed")) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			m.ServeHTTP(w, r)
			return
		}
		calls++ // until the change arrives, the model calls a tool
		w.Header().Set("Content-Type", "text/event-stream")
		call := fmt.Sprintf(`{"index":0,"id":"call_%d","type":"function","function":{"name":"cli-test__echo","arguments":"{\"message\":\"%d\"}"}}`, calls, calls)
		for _, choice := range []string{`{"index":0,"delta":{"role":"assistant","tool_calls":[` + call + `]}}`, `{"index":0,"delta":{},"finish_reason":"tool_calls"}`} {
			fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-test\",\"choices\":[%s]}\n\n", choice)
		}
		io.WriteString(w, "data: [DONE]\n\n")
	}))
	defer front.Close()
	out := runDowel(t, "", withTestServer(t, "run", "--json", "--trust-annotations", "--max-steps", "100000", "--model", "m-test", "--base-url", front.URL+"/v1", "Watch @cli-test:test://ticking")...)
	if out.code != exit.OK {
		t.Fatalf("%+v", out)
	}
	seen := map[string]string{}
	for line := range strings.Lines(out.stdout) {
		var e struct {
			Event              string
			Resources, Changed json.RawMessage
			Answer             string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		seen[e.Event] += string(e.Resources) + string(e.Changed) + e.Answer
	}
	const ticking = `[{"server":"cli-test","uri":"test://ticking"}]`
	if seen["began"] != ticking || seen["resources"] != ticking || seen["end"] != "ok" {
		t.Errorf("the events are %v", seen)
	}
}
