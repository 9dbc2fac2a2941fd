package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// sly is text that hides most of itself from whoever reads it on a terminal.
const sly = "ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f"

const slyRevealed = `ls \x1b]0;rm -rf ~\x07\x1b[8m; id\x1b[0m\r\u009d\x7f\u202e\u200b\U000e0041\ufe0f`

func TestRevealed(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"plain\n\ttext, ünï 日": "plain\n\ttext, ünï 日",
		sly:                    slyRevealed,
		"\xff\xc3":             `\xff\xc3`,
		"\u2028\u3164\u034f":   `\u2028\u3164\u034f`,
		"\ufffd":               "\ufffd",
	} {
		if got := revealed(text); got != want {
			t.Errorf("%q: got %s\nwant %s", text, got, want)
		}
	}
}

// Nothing of what the user decides about is hidden.
func TestQuestionsReveal(t *testing.T) {
	quoted, err := json.Marshal(map[string]any{"command": sly, "two": sly + "\nmore", "nested": []string{sly}, sly: 1})
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	out := newScreen(&said, nil)
	q := &questions{out: out, in: newLines(strings.NewReader("")), origin: "somewhere"}
	q.asks(&client.ElicitRequest{Server: sly, ElicitParams: mcp.ElicitParams{Message: sly}}, "asks:")
	shown := map[string][]string{
		"arguments":          wholeArguments(quoted),
		"no object":          wholeArguments(json.RawMessage(sly)),
		"the line of a call": {brieflyInput(quoted, 1000)},
		"sampling":           samplingLines(&mcp.CreateMessageParams{SystemPrompt: sly, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text(sly)}}}}),
		"a form":             {said.String()},
		"the tool":           {spoken("server__" + sly)},
		"the server":         {serverName(agent.Question{Server: sly})},
	}
	for what, lines := range shown {
		text := strings.Join(lines, "\n")
		if strings.ContainsFunc(text, unseen) {
			t.Errorf("%s: something cannot be seen in %q", what, text)
		}
		if !strings.Contains(text, "rm -rf ~") || what != "the line of a call" && !strings.Contains(text, slyRevealed) {
			t.Errorf("%s: something is left out in %s", what, text)
		}
	}
}
