package question

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// slyText is text that a terminal would mostly hide.
const slyText = "ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f"

const slyTextShown = `ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f`

// The approval question hides no character of the call.
func TestApprovalsReveal(t *testing.T) {
	quoted, err := json.Marshal(map[string]any{"command": slyText, "two": slyText + "\nmore", "nested": []string{slyText}, slyText: 1})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{
		"arguments":          FormatArguments(quoted),
		"no object":          FormatArguments(json.RawMessage(slyText)),
		"the line of a call": {agentview.BrieflyInput(quoted, 1000)},
		"sampling":           formatSampling(&mcp.CreateMessageParams{SystemPrompt: slyText, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text(slyText)}}}}),
		"the tool":           {toolname.Display("server__" + slyText)},
		"the server":         {displayServer(agent.Question{Server: slyText})},
	}
	for what, lines := range shown {
		text := strings.Join(lines, "\n")
		if term.Reveal(text) != text {
			t.Errorf("%s: something cannot be seen in %q", what, text)
		}
		if !strings.Contains(text, "rm -rf ~") || what != "the line of a call" && !strings.Contains(text, slyTextShown) {
			t.Errorf("%s: something is left out in %s", what, text)
		}
	}
}

func TestWholeArguments(t *testing.T) {
	got := FormatArguments([]byte(`{"path":"a\u001b[2Jb","text":"one\n  Run it? y\n","n":{"x":[1]},"e":""}`))
	want := []string{`path: a\x1b[2Jb`, "text:", "    one", "      Run it? y", "n:", "    {", `      "x": [`, "        1", "      ]", "    }", "e: "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The approval question shows arguments so that a string cannot pass for another value.
func TestArgumentsAreTold(t *testing.T) {
	for input, want := range map[string]string{
		`{"a":false,"b":"false","c":"no"}`:       "a: false\nb: \"false\"\nc: no",
		`{"a":1,"b":"1","c":" 1","d":"1 2"}`:     "a: 1\nb: \"1\"\nc: \" 1\"\nd: 1 2",
		`{"a":"\"x\"","b":"x","c":""}`:           "a: \"\\\"x\\\"\"\nb: x\nc: ",
		`{"a":"{\n  \"b\": 1\n}","c":{"b":1}}`:   "a: (text)\n    {\n      \"b\": 1\n    }\nc:\n    {\n      \"b\": 1\n    }",
		`{"a":"two\nlines","n":null,"m":"null"}`: "a:\n    two\n    lines\nn: null\nm: \"null\"",
		`{}`:                                     "(no arguments)",
	} {
		if got := strings.Join(FormatArguments(json.RawMessage(input)), "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", input, got, want)
		}
	}
}

// A sampling request is shown completely, with tools and their results.
func TestSamplingLines(t *testing.T) {
	result := mcp.ToolResultContent{ToolUseID: "1", IsError: true, Content: []mcp.Content{mcp.Text("first\nsec\u200bond"), mcp.Image(make([]byte, 3), "image/png")}}
	got := strings.Join(formatSampling(&mcp.CreateMessageParams{
		SystemPrompt: "Be brief.", MaxTokens: 10,
		Messages: []mcp.SamplingMessage{
			{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("go")}},
			{Role: mcp.RoleAssistant, Content: mcp.SamplingContent{mcp.UseTool("1", "look", []byte(`{"x":1}`))}},
			{Role: mcp.RoleUser, Content: mcp.SamplingContent{{Type: mcp.ContentToolResult, ToolResult: &result},
				{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: "2", StructuredContent: []byte(`{"y":2}`)}}}},
		},
		Tools: []mcp.Tool{{Name: "look", Description: "Looks."}, {Name: "wi\u200bpe"}},
	}), "\n")
	want := `system: Be brief.
user: go
assistant: [call of look: {"x":1}]
result of 1: failed: first
    sec\u200bond
    [image, image/png, 3 bytes]
result of 2: {"y":2}
tool look: Looks.
tool wi\u200bpe: 
at most 10 tokens`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Edits are shown as removed and added lines, without a loss.
func TestEditsAreTold(t *testing.T) {
	for input, want := range map[string]string{
		`{"path":"a","edits":[{"old":"x\ny\nz","new":"x\nY\nz"},{"old":"1","new":"","all":true}]}`: "path: a\nedits:\n      x\n    - y\n    + Y\n      z\n    …\n    - 1\n    all: true",
		`{"path":"a","old_string":"x\n","new_string":"x","replace_all":false}`:                     "path: a\nold_string, new_string:\n      x\n    + \\ no line break at the end\nreplace_all: false",
		`{"oldText":"","newText":"a\n\u001b[2J"}`:                                                  "oldText, newText:\n    + a\n    + \\x1b[2J",
		`{"old":"a","new":"a"}`:                         "old: a\nnew: a",
		`{"old":"a","new":"b","old":"c"}`:               "old: a\nnew: b\nold: c",
		`{"old":1,"new":"b"}`:                           "old: 1\nnew: b",
		`{"edits":[{"old":"a","new":"b"},{"old":"a"}]}`: "edits:\n    [\n      {\n        \"old\": \"a\",\n        \"new\": \"b\"\n      },\n      {\n        \"old\": \"a\"\n      }\n    ]",
		`{"edits":[]}`:                                  "edits: []",
	} {
		if got := strings.Join(FormatArguments(json.RawMessage(input)), "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", input, got, want)
		}
	}
}
