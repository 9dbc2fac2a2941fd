package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/openai"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write what is sent into the files of testdata")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// conversation is a file of testdata: the model's replies, the tools, and the expectations.
type conversation struct {
	About   string             `json:"about"`
	Options settings           `json:"options,omitzero"`
	Script  modelserver.Script `json:"script"`
	Tools   []mcp.Tool         `json:"tools,omitzero"`
	// Results are the results of tools by name, in the order in which the calls end. A tool without
	// a result returns its arguments.
	Results map[string]mcp.CallToolResult `json:"results,omitzero"`
	Input   []string                      `json:"input"` // one run each

	Said     string   `json:"said,omitzero"`     // the last reply's text
	Thought  string   `json:"thought,omitzero"`  // all of the model's thoughts
	Called   []string `json:"called,omitzero"`   // "tool arguments"
	Warnings []string `json:"warnings,omitzero"` // parts of them, each
	Fails    []string `json:"fails,omitzero"`    // parts of the last run's error
	Usage    string   `json:"usage,omitzero"`    // input, cached, output

	// Messages and Functions are the members of the last request.
	Messages  json.RawMessage `json:"messages,omitzero"`
	Functions json.RawMessage `json:"functions,omitzero"`
}

type settings struct {
	Key           string         `json:"key,omitzero"`
	Model         string         `json:"model,omitzero"`
	MaxTokens     int            `json:"maxTokens,omitzero"`
	MaxMedia      int            `json:"maxMedia,omitzero"`
	MaxTools      int            `json:"maxTools,omitzero"`
	MaxText       int            `json:"maxDescription,omitzero"`
	Reasoning     string         `json:"reasoning,omitzero"`
	Strict        bool           `json:"strict,omitzero"`
	ToolsInPrompt bool           `json:"toolsInPrompt,omitzero"`
	Extra         map[string]any `json:"extra,omitzero"`
}

// shelf holds tools in memory.
type shelf struct {
	mu      sync.Mutex
	tools   []mcp.Tool
	results map[string]mcp.CallToolResult
	called  []string
}

func (s *shelf) List(context.Context) ([]mcp.Tool, error) { return slices.Clone(s.tools), nil }
func (s *shelf) Changed() <-chan struct{}                 { return nil }

func (s *shelf) Call(_ context.Context, use mcp.ToolUse, _ func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = append(s.called, use.Name+" "+string(use.Input))
	if !bytes.HasPrefix(use.Input, []byte("{")) {
		return nil, fmt.Errorf("the arguments of %s are not an object", use.Name)
	}
	if r, ok := s.results[use.Name]; ok {
		return &r, nil
	}
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(use.Name + " got " + string(use.Input))}}, nil
}

func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c conversation
			d := json.NewDecoder(bytes.NewReader(data))
			d.DisallowUnknownFields()
			if err := d.Decode(&c); err != nil {
				t.Fatal(err)
			}
			c.play(t, file)
		})
	}
}

func (c *conversation) play(t *testing.T, file string) {
	server := modelserver.New(t.Error, c.Script, modelserver.Chat)
	web := httptest.NewServer(server)
	defer web.Close()
	var mu sync.Mutex
	var warnings []string
	o := openai.Options{Model: "m", BaseURL: web.URL + "/v1", HTTPClient: web.Client(), Key: c.Options.Key, MaxTokens: c.Options.MaxTokens,
		MaxMedia: c.Options.MaxMedia, MaxTools: c.Options.MaxTools, MaxDescription: c.Options.MaxText, Reasoning: c.Options.Reasoning,
		Strict: c.Options.Strict, ToolsInPrompt: c.Options.ToolsInPrompt, Extra: c.Options.Extra,
		Warn: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warnings = append(warnings, text)
		}}
	if c.Options.Model != "" {
		o.Model = c.Options.Model
	}
	tools := &shelf{tools: c.Tools, results: c.Results}
	a := agent.New(openai.New(o), tools, &agent.Options{System: "Be brief.", Mode: agent.ModeAll})
	var got conversation
	var failed error
	for _, input := range c.Input {
		failed = got.runAgent(t, a, input)
	}
	slices.Sort(tools.called)
	if got.Said != c.Said || got.Thought != c.Thought || !slices.Equal(tools.called, c.Called) || c.Usage != "" && got.Usage != c.Usage {
		t.Errorf("said %q, thought %q, called %q, usage %s; want %q, %q, %q, %s", got.Said, got.Thought, tools.called, got.Usage, c.Said, c.Thought, c.Called, c.Usage)
	}
	c.expect(t, "warning", strings.Join(warnings, "\n"), c.Warnings)
	if (failed != nil) != (len(c.Fails) > 0) {
		t.Errorf("the error is %v", failed)
	}
	c.expect(t, "error", fmt.Sprint(failed), c.Fails)
	if server.Left() != 0 {
		t.Errorf("%d turns are left", server.Left())
	}
	c.compare(t, file, server.Requests())
}

// runAgent runs the agent and records its events in c.
func (c *conversation) runAgent(t *testing.T, a *agent.Agent, input string) (failed error) {
	said := ""
	for event, err := range a.Run(t.Context(), mcp.Text(input)) {
		if err != nil {
			return err
		}
		switch e := event.(type) {
		case agent.Delta:
			c.Thought += e.Reasoning
			if said += e.Text; e.Message == nil {
				continue
			}
			if c.Said = e.Message.Text(); said != c.Said {
				t.Errorf("%q was streamed, and %q is the message", said, c.Said)
			}
			said = ""
		case agent.Ended:
			c.Usage = fmt.Sprint(e.Usage.Input, e.Usage.Cached, e.Usage.Output)
		}
	}
	return nil
}

func (c *conversation) expect(t *testing.T, what, got string, want []string) {
	t.Helper()
	for _, part := range want {
		if !strings.Contains(got, part) {
			t.Errorf("no %s with %q in:\n%s", what, part, got)
		}
	}
	if len(want) == 0 && got != "" && got != "<nil>" {
		t.Errorf("there is a %s: %s", what, got)
	}
}

// compare compares the last request with the file.
func (c *conversation) compare(t *testing.T, file string, requests []modelserver.Request) {
	var sent struct {
		Messages json.RawMessage
		Tools    json.RawMessage
	}
	if err := json.Unmarshal(requests[len(requests)-1].Body, &sent); err != nil {
		t.Fatal(err)
	}
	if *update {
		c.Messages, c.Functions = sent.Messages, sent.Tools
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(c); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, pair := range map[string][2]json.RawMessage{"messages": {sent.Messages, c.Messages}, "functions": {sent.Tools, c.Functions}} {
		if got, want := compact(pair[0]), compact(pair[1]); got != want {
			t.Errorf("%s are\n%s\nwant\n%s", name, got, want)
		}
	}
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
