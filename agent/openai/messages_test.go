package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/openai"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

func said(role mcp.Role, content ...mcp.Content) agent.Message {
	return agent.Message{Role: role, Content: content}
}

func result(id, text string) mcp.Content {
	return mcp.Content{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: id, Content: []mcp.Content{mcp.Text(text)}}}
}

// sent returns the messages that are sent of a conversation, which the server has to take.
func sent(t *testing.T, change func(*openai.Options), c agent.Conversation) (messages string) {
	t.Helper()
	s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{{Text: "Good."}}}, modelserver.Chat)
	o := serve(t, s)
	if change != nil {
		change(&o)
	}
	for _, err := range openai.New(o).Reply(t.Context(), c) {
		if err != nil {
			t.Error(err)
		}
	}
	var body struct{ Messages json.RawMessage }
	if err := json.Unmarshal(s.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	return string(body.Messages)
}

// Servers accept any history, also of another provider or of a sample.
func TestHistories(t *testing.T) {
	const user, resumed = `{"content":"hi","role":"user"}`, `{"content":"Go on.","role":"user"}`
	hi, input := said(mcp.RoleUser, mcp.Text("hi")), json.RawMessage(`{}`)
	long, longer := strings.Repeat("x", 40), strings.Repeat("x", 41)
	for _, tt := range []struct {
		name     string
		messages []agent.Message
		want     string // a part
	}{
		{"nothing", nil, `[` + resumed + `]`},
		{"the assistant first", []agent.Message{said(mcp.RoleAssistant, mcp.Text("a")), hi}, `[{"content":"(nothing)","role":"user"},{"content":"a","role":"assistant"},` + user + `]`},
		{"the assistant last", []agent.Message{hi, said(mcp.RoleAssistant, mcp.Text("a"))}, `,{"content":"a","role":"assistant"},` + resumed + `]`},
		{"empty messages", []agent.Message{said(mcp.RoleUser), said(mcp.RoleAssistant), said(mcp.RoleUser, mcp.Text(""))},
			`[{"content":"(nothing)","role":"user"},{"content":"(nothing)","role":"assistant"},{"content":"(nothing)","role":"user"}]`},
		{"only calls", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool("1", "a", input)), said(mcp.RoleUser, result("1", "r"))},
			`{"tool_calls":[{"id":"1","function":{"arguments":"{}","name":"a"},"type":"function"}],"role":"assistant"},{"content":"r","tool_call_id":"1","role":"tool"}]`},
		{"a made-up name", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool("1", "multi_tool_use.parallel", input)), said(mcp.RoleUser, result("1", "r"))},
			`"name":"multi_tool_use_parallel"`},
		{"a long name", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool("1", strings.Repeat("ä", 65), input)), said(mcp.RoleUser, result("1", "r"))},
			`"name":"` + strings.Repeat("_", 64) + `"`},
		{"no name", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool("1", "", input)), said(mcp.RoleUser, result("1", "r"))}, `"name":"unknown"`},
		{"a long id", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool(long, "a", input), mcp.UseTool(longer, "a", input)), said(mcp.RoleUser, result(longer, "r2"), result(long, "r1"))},
			`"tool_call_id":"` + long + `"`},
		{"an id twice, and none", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool("1", "a", input), mcp.UseTool("1", "a", input), mcp.UseTool("", "a", input)),
			said(mcp.RoleUser, result("1", "r1"), result("1", "r2"), result("", "r3"))}, `{"content":"r1","tool_call_id":"1","role":"tool"}`},
	} {
		if got := sent(t, nil, agent.Conversation{Messages: tt.messages, System: " "}); !strings.Contains(got, tt.want) || strings.Contains(got, longer) {
			t.Errorf("%s: sent %s, want %s", tt.name, got, tt.want)
		}
		if got := sent(t, func(o *openai.Options) { o.ToolsInPrompt = true }, agent.Conversation{Messages: tt.messages}); strings.Contains(got, `"content":""`) {
			t.Errorf("%s: sent %s", tt.name, got)
		}
	}
}

// A result goes to its own call, also under a replaced id, and the next request repeats the
// bytes.
func TestLongIDs(t *testing.T) {
	ids := []string{strings.Repeat("a", 83), strings.Repeat("b", 83)}
	c := agent.Conversation{Messages: []agent.Message{
		said(mcp.RoleUser, mcp.Text("hi")),
		said(mcp.RoleAssistant, mcp.UseTool(ids[0], "first", nil), mcp.UseTool(ids[1], "second", nil)),
		said(mcp.RoleUser, result(ids[0], "one"), mcp.Content{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: ids[1],
			Content: []mcp.Content{{Type: mcp.ContentImage, MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}}}),
	}}
	type message struct {
		Role      string
		Content   json.RawMessage
		ID        string `json:"tool_call_id"`
		ToolCalls []struct {
			ID       string
			Function struct{ Name string }
		} `json:"tool_calls"`
	}
	text := sent(t, nil, c)
	var all []message
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 5 || all[2].ID != all[1].ToolCalls[0].ID || all[3].ID != all[1].ToolCalls[1].ID || all[2].ID == all[3].ID || len(all[2].ID) != 40 ||
		!strings.Contains(string(all[2].Content), "one") || !strings.Contains(string(all[4].Content), "From the result of second:") {
		t.Errorf("sent %s", text)
	}
	if again := sent(t, nil, c); again != text {
		t.Errorf("sent %s, and then %s", text, again)
	}
}

// Media are sent by the type of their bytes, or not at all: a server would refuse every later
// request.
func TestMediaByBytes(t *testing.T) {
	const png, wav, mp3 = "\x89PNG\r\n\x1a\n", "RIFF\x04\x00\x00\x00WAVE", "\xff\xfb\x90\x00"
	left := "left out, since its bytes are none of what models take"
	for _, tt := range []struct {
		content mcp.Content
		want    string
	}{
		{mcp.Image([]byte(png), "image/png"), `"url":"data:image/png;base64,`},
		{mcp.Image([]byte(png), "image/jpeg"), `"url":"data:image/png;base64,`},
		{mcp.Image([]byte("GIF89a"), "image/x-unknown"), `"url":"data:image/gif;base64,`},
		{mcp.Image([]byte("some text"), "image/png"), "[image of type image/png, 9 bytes: " + left},
		{mcp.Image([]byte(wav), "image/png"), left},
		{mcp.Embed(mcp.ResourceContents{URI: "file:///a", MIMEType: "image/webp", Blob: []byte("some text")}), left},
		{mcp.Audio([]byte(wav), "audio/x-wav"), `"format":"wav"`},
		{mcp.Audio([]byte(wav), "audio/mpeg"), `"format":"wav"`},
		{mcp.Audio([]byte(mp3), "audio/mp3"), `"format":"mp3"`},
		{mcp.Audio([]byte("ID3\x03"), "audio/mpeg"), `"format":"mp3"`},
		{mcp.Audio([]byte("some text"), "audio/wav"), left},
		{mcp.Audio([]byte("\xff\xfes\x00o\x00"), "audio/mpeg"), left},
	} {
		c := agent.Conversation{Messages: []agent.Message{
			said(mcp.RoleUser, mcp.Text("hi")), said(mcp.RoleAssistant, mcp.UseTool("1", "look", nil)),
			said(mcp.RoleUser, mcp.Content{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: "1", Content: []mcp.Content{tt.content}}})}}
		if got := sent(t, nil, c); !strings.Contains(got, tt.want) {
			t.Errorf("%s: sent %s, want %s", tt.content.String(), got, tt.want)
		}
	}
}

func TestMaxTools(t *testing.T) {
	tools := []mcp.Tool{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for _, tt := range []struct {
		o          openai.Options
		want, sent int
	}{
		{openai.Options{}, 0, 3}, {openai.Options{MaxTools: -1}, 0, 3}, {openai.Options{MaxTools: 2}, 2, 2}, {openai.Options{MaxTools: 2, ToolsInPrompt: true}, 0, 0},
	} {
		s := modelserver.New(t.Error, modelserver.Script{Turns: []modelserver.Turn{{Text: "Good."}}}, modelserver.Chat)
		o := serve(t, s)
		o.MaxTools, o.ToolsInPrompt = tt.o.MaxTools, tt.o.ToolsInPrompt
		m, notices := openai.New(o), 0
		for delta, err := range m.Reply(t.Context(), agent.Conversation{Tools: tools}) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(delta.Notice, "takes 2 tools at most: c and those behind it are left out") {
				notices++
			}
		}
		var body struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(s.Requests()[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		if got := m.(interface{ MaxTools() int }).MaxTools(); got != tt.want || len(body.Tools) != tt.sent || notices != tt.want/2 {
			t.Errorf("%d, and %d were sent; %+v", got, len(body.Tools), tt)
		}
	}
	if got := openai.New(openai.Options{}).(interface{ MaxTools() int }).MaxTools(); got != 128 {
		t.Errorf("%d tools at OpenAI", got)
	}
}
