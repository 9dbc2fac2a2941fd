package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/anthropic"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files")

// scenario is a conversation in a file. Its golden file holds the events and the requests.
type scenario struct {
	Options struct{ MaxTokens, Thinking, MaxMedia, Retries int }
	Key     string
	Tools   []mcp.Tool
	Results map[string][]*mcp.CallToolResult // of each tool, one a call; the last is given again
	History []agent.Message
	Turns   []turn
	Script  json.RawMessage
}

// turn is an input of the user. A system prompt or a model continues the conversation with a new
// agent.
type turn struct {
	System, Model string
	Say           []mcp.Content
}

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			got := play(t, file)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v; got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func play(t *testing.T, file string) []byte {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s scenario
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	script, err := modelserver.Parse(s.Script)
	if err != nil {
		t.Fatal(err)
	}
	server := modelserver.New(t.Error, script, modelserver.Messages)
	web := httptest.NewServer(server)
	defer web.Close()
	defer http.DefaultClient.CloseIdleConnections()

	var out record
	o := anthropic.Options{Model: "claude-test", Key: s.Key, BaseURL: web.URL, MaxTokens: s.Options.MaxTokens, Thinking: s.Options.Thinking,
		MaxMedia: s.Options.MaxMedia, Retries: s.Options.Retries, Warn: func(what string) { out.line("warning: %s", what) }}
	tools := &bench{tools: s.Tools, results: s.Results}
	var a *agent.Agent
	messages, system := s.History, ""
	for i, turn := range s.Turns {
		if i == 0 || turn.System != "" || turn.Model != "" {
			if turn.System != "" {
				system = turn.System
			}
			if turn.Model != "" {
				o.Model = turn.Model
			}
			a = agent.New(anthropic.New(o), tools, &agent.Options{System: system, Messages: messages, Mode: agent.ModeAll})
		}
		out.run(t, a, turn.Say)
		messages = resumed(t, a.Messages())
	}
	if left := server.Left(); left > 0 {
		t.Errorf("%d turns of the script were not played", left)
	}
	for i, r := range server.Requests() {
		out.line("\nrequest %d%s", i+1, refused(r))
		out.json(t, r.Body)
	}
	return bytes.ReplaceAll(out.Bytes(), []byte(web.URL), []byte("http://model"))
}

// resumed returns a conversation as a session file stores it.
func resumed(t *testing.T, messages []agent.Message) (again []agent.Message) {
	data, err := json.Marshal(messages)
	if err == nil {
		err = json.Unmarshal(data, &again)
	}
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func refused(r modelserver.Request) string {
	if r.Refused == "" {
		return ""
	}
	return ", refused: " + r.Refused
}

type record struct{ bytes.Buffer }

func (r *record) line(format string, args ...any) { fmt.Fprintf(r, format+"\n", args...) }

// json writes JSON indented, with sorted members and long strings shortened.
func (r *record) json(t *testing.T, data []byte) {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // one that is not exact as a float has to arrive
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	e := json.NewEncoder(r)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(shortened(v)); err != nil {
		t.Fatal(err)
	}
}

func shortened(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = shortened(v[key])
		}
	case []any:
		for i := range v {
			v[i] = shortened(v[i])
		}
	case string:
		if len(v) > 500 {
			return fmt.Sprintf("%s… (%d bytes)", v[:20], len(v))
		}
	}
	return v
}

func (r *record) run(t *testing.T, a *agent.Agent, say []mcp.Content) {
	said, thought := "", ""
	for e, err := range a.Run(t.Context(), say...) {
		if err != nil {
			r.line("said: %q\nerror: %v", said, err)
			return
		}
		switch e := e.(type) {
		case agent.Delta:
			said += e.Text
			if thought += e.Reasoning; e.Message == nil {
				continue
			}
			r.line("thought: %q\nsaid: %q", thought, said)
			said, thought = "", ""
			if u := e.Message.Usage; *u != (agent.Usage{}) {
				r.line("usage: %d read, %d of them cached, %d written", u.Input, u.Cached, u.Output)
			}
		case agent.CallStarted:
			var input bytes.Buffer
			if err := json.Compact(&input, e.Call.Input); err != nil {
				t.Error(err)
			}
			r.line("calls: %s %s", e.Call.Name, &input)
		case agent.Ended:
			r.line("%s", e.Reason)
		}
	}
}

// bench holds tools in memory.
type bench struct {
	tools   []mcp.Tool
	mu      sync.Mutex
	results map[string][]*mcp.CallToolResult
}

func (b *bench) List(context.Context) ([]mcp.Tool, error) { return slices.Clone(b.tools), nil }
func (b *bench) Changed() <-chan struct{}                 { return nil }

func (b *bench) Call(_ context.Context, use mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	results := b.results[use.Name]
	if len(results) == 0 {
		return nil, errors.New("the tool has no result")
	}
	if len(results) > 1 {
		b.results[use.Name] = results[1:]
	}
	return results[0], nil
}
