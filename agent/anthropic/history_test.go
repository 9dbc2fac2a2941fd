package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/agent/anthropic"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
)

func said(role mcp.Role, content ...mcp.Content) agent.Message {
	return agent.Message{Role: role, Content: content}
}

func result(id string, content ...mcp.Content) mcp.Content {
	return mcp.Content{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: id, Content: content}}
}

// Any history is sent in a form that the API accepts, also one of another provider or of a sampling
// request.
func TestHistories(t *testing.T) {
	const user, resumed = `{"content":[{"text":"hi","type":"text"}],"role":"user"}`, `{"content":[{"text":"Go on.","cache_control":{"type":"ephemeral"},"type":"text"}],"role":"user"}`
	const a = `{"content":[{"text":"a","type":"text"}],"role":"assistant"}`
	hi, input := said(mcp.RoleUser, mcp.Text("hi")), json.RawMessage(`{}`)
	png := mcp.Content{Type: mcp.ContentImage, MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n0000")}
	for _, tt := range []struct {
		name     string
		messages []agent.Message
		want     string // a part
	}{
		{"nothing", nil, `[` + resumed + `]`},
		{"the assistant first", []agent.Message{said(mcp.RoleAssistant, mcp.Text("a")), hi}, `[{"content":[{"text":"(nothing)","cache_control":{"type":"ephemeral"},"type":"text"}],"role":"user"},` + a},
		{"the assistant last", []agent.Message{hi, said(mcp.RoleAssistant, mcp.Text("a"))}, `,` + a + `,` + resumed + `]`},
		{"empty messages", []agent.Message{said(mcp.RoleUser), said(mcp.RoleAssistant), said(mcp.RoleUser, mcp.Text(" "))}, `[` + resumed + `]`},
		{"only calls, of tools that no longer exist", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool("1", "a", input)), said(mcp.RoleUser, result("1"))},
			`{"content":[{"id":"1","input":{},"name":"a","type":"tool_use"}],"role":"assistant"}`},
		{"a made-up name", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool("1", "multi_tool_use.parallel", nil)), said(mcp.RoleUser, result("1"))}, `"name":"multi_tool_use_parallel"`},
		{"an image in a result", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool("1", "a", json.RawMessage("null"))), said(mcp.RoleUser, result("1", png))},
			`"input":{},"name":"a","type":"tool_use"}],"role":"assistant"},{"content":[{"tool_use_id":"1","cache_control":{"type":"ephemeral"},"content":[{"source":{"data":"iVBORw0KGgowMDAw"`},
		{"a repeated id", []agent.Message{hi, said(mcp.RoleAssistant, mcp.UseTool("1", "a", input), mcp.UseTool("1", "a", input)), said(mcp.RoleUser, result("1", mcp.Text("r1")), result("1", mcp.Text("r2")))},
			`[{"tool_use_id":"1","content":[{"text":"r1","type":"text"}],"type":"tool_result"},{"tool_use_id":"call_2",`},
	} {
		server, o := serve(t, modelserver.Turn{Text: "Good."})
		for _, err := range anthropic.New(o).Reply(t.Context(), agent.Conversation{Messages: tt.messages, System: " ", ToolChoice: "required"}) {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		var body struct {
			Messages json.RawMessage
			Choice   any `json:"tool_choice"`
		}
		if err := json.Unmarshal(server.Requests()[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		if got := string(body.Messages); !strings.Contains(got, tt.want) || body.Choice != nil {
			t.Errorf("%s: sent %s and %v, want %s", tt.name, got, body.Choice, tt.want)
		}
	}
}

// An image within MaxMedia is sent. Otherwise a text says why it is missing.
func TestMaxMedia(t *testing.T) {
	image := mcp.Content{Type: mcp.ContentImage, MIMEType: "image/png", Data: append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 92)...)}
	for most, want := range map[int]string{0: `"type":"base64"`, 100: `"type":"base64"`, 99: "100 bytes: more than 99 cannot be shown", -1: "left out, since this model is given text only"} {
		server, o := serve(t, modelserver.Turn{Text: "Good."})
		o.MaxMedia = most
		for _, err := range anthropic.New(o).Reply(t.Context(), agent.Conversation{Messages: []agent.Message{said(mcp.RoleUser, image)}}) {
			if err != nil {
				t.Error(err)
			}
		}
		if body := string(server.Requests()[0].Body); !strings.Contains(body, want) {
			t.Errorf("%d: %s", most, body)
		}
	}
}

// serveEvents returns options for a server that answers with a stream of the given content blocks,
// each as the lines of its events, and stop as the stop reason.
func serveEvents(t *testing.T, stop string, blocks ...string) anthropic.Options {
	all := slices.Concat([]string{`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":7,"output_tokens":1}}}`},
		blocks, []string{`{"type":"message_delta","delta":{"stop_reason":"` + stop + `"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for line := range strings.SplitSeq(strings.Join(all, "\n"), "\n") {
			var event struct{ Type string }
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Error(err, line)
			}
			_, _ = io.WriteString(w, "event: "+event.Type+"\ndata: "+line+"\n\n")
		}
	}))
	t.Cleanup(web.Close)
	return anthropic.Options{Model: "m", BaseURL: web.URL, HTTPClient: web.Client(), Retries: -1}
}

const (
	textBlock = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look."}}
{"type":"content_block_stop","index":0}`
	callBlock = `{"type":"content_block_start","index":INDEX,"content_block":{"type":"tool_use","id":"ID","name":"NAME","input":INPUT}}
{"type":"content_block_delta","index":INDEX,"delta":{"type":"input_json_delta","partial_json":""}}PIECE
{"type":"content_block_stop","index":INDEX}`
)

// callOf returns the events of a call. input is the input in the block's start; piece follows as a
// delta, unless it is "".
func callOf(index, id, name, input, piece string) string {
	if piece != "" {
		text, _ := json.Marshal(piece)
		piece = "\n" + `{"type":"content_block_delta","index":INDEX,"delta":{"type":"input_json_delta","partial_json":` + string(text) + `}}`
	}
	return strings.NewReplacer("INDEX", index, "ID", id, "NAME", name, "INPUT", input).Replace(strings.Replace(callBlock, "PIECE", piece, 1))
}

// If a reply reaches the limit of its length, its last call, which may be incomplete, is dropped.
// The tokens of the reply count.
func TestReplyCutOff(t *testing.T) {
	for _, tt := range []struct {
		name   string
		blocks []string
		want   string
	}{
		{"in a text", []string{textBlock}, "I look."},
		{"after a name", []string{textBlock, callOf("1", "1", "delete", "{}", "")}, "I look."},
		{"in an input", []string{textBlock, callOf("1", "1", "delete", "{}", `{"path":`)}, "I look."},
		{"in an input, closed by the server", []string{textBlock, callOf("1", "1", "delete", "{}", `{"path":""}`)}, "I look."},
		{"in a second call", []string{callOf("0", "1", "read", "{}", `{"a":1}`), callOf("1", "2", "delete", "{}", "")}, `read{"a":1}`},
		{"before any block", nil, ""},
	} {
		var last agent.Delta
		for delta, err := range anthropic.New(serveEvents(t, "max_tokens", tt.blocks...)).Reply(t.Context(), hello()) {
			if err != nil || delta.Notice != "" {
				t.Error(tt.name, err, delta.Notice)
			}
			last = delta
		}
		if got := last.Message.Text() + called(last.Message); got != tt.want || !last.Message.Cut || *last.Message.Usage != (agent.Usage{Input: 7, Output: 5}) {
			t.Errorf("%s: got %q and %+v, want %q", tt.name, got, last.Message, tt.want)
		}
	}
}

func called(m *agent.Message) (text string) {
	for _, use := range m.Calls() {
		text += use.Name + string(use.Input)
	}
	return text
}

// Servers that imitate the API begin calls in other ways. Each call gets a name, an input and a
// unique id.
func TestCalls(t *testing.T) {
	for _, input := range []string{`{}`, `null`, `""`} {
		o := serveEvents(t, "tool_use", textBlock, callOf("1", "", "a", input, `{"x":1}`), callOf("2", "same", "", input, ""), callOf("3", "same", "b", input, ""))
		var m *agent.Message
		for delta, err := range anthropic.New(o).Reply(t.Context(), hello()) {
			if err != nil {
				t.Error(input, err)
			}
			m = delta.Message
		}
		if got := called(m); got != `a{"x":1}unknown{}b{}` || m.Cut {
			t.Errorf("%s: %s", input, got)
		}
		seen := map[string]bool{"": true}
		for _, use := range m.Calls() {
			if seen[use.ID] {
				t.Errorf("%s: the id %q", input, use.ID)
			}
			seen[use.ID] = true
		}
	}
}

// A reply of thoughts only is not sent back, since the API refuses a message that ends with
// thoughts.
func TestNothingButThoughts(t *testing.T) {
	server, o := serve(t, modelserver.Turn{Reasoning: "Hm."}, modelserver.Turn{Text: "Good."})
	o.Thinking = 2000
	m, c := anthropic.New(o), hello()
	for range 2 {
		var last *agent.Message
		for delta, err := range m.Reply(t.Context(), c) {
			if err != nil {
				t.Error(err)
			}
			last = delta.Message
		}
		if last == nil || len(c.Messages) == 1 && len(last.Reasoning) == 0 {
			t.Fatalf("%+v", last)
		}
		c.Messages = append(c.Messages, *last, said(mcp.RoleUser, mcp.Text("And?")))
	}
	if body := string(server.Requests()[1].Body); strings.Contains(body, "Hm.") {
		t.Error(body)
	}
}
