package mcp_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

var (
	blobResource = mcp.ResourceContents{URI: "x://b", MIMEType: "application/octet-stream", Blob: []byte{0, 1, 0xfe, 0xff}, Meta: mcp.Meta{"a": "b"}}
	textResource = mcp.ResourceContents{URI: "x://t", Text: "line\n\"quoted\""}
	notes        = &mcp.Annotations{Audience: []mcp.Role{mcp.RoleUser}, Priority: new(0.0), LastModified: "2026-01-01T00:00:00Z"}
)

// blocks is every kind of content, bare and with everything, beside the JSON it has and the
// definitions that hold it since which revision.
var blocks = []struct {
	name    string
	content mcp.Content
	json    string
	def     string
	since   mcp.Revision
}{
	{"text", mcp.Text("a\n\"b\" é"), `{"type":"text","text":"a\n\"b\" é"}`, "TextContent", r1},
	{"empty text", mcp.Text(""), `{"type":"text","text":""}`, "TextContent", r1},
	{"full text", mcp.Content{Type: "text", Text: "t", Annotations: notes, Meta: mcp.Meta{"k": true}},
		`{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0,"lastModified":"2026-01-01T00:00:00Z"},"_meta":{"k":true}}`, "TextContent", r1},
	{"image", mcp.Image([]byte{1, 2, 3, 4}, "image/png"), `{"type":"image","data":"AQIDBA==","mimeType":"image/png"}`, "ImageContent", r1},
	{"empty image", mcp.Image([]byte{}, ""), `{"type":"image","data":"","mimeType":""}`, "ImageContent", r1},
	{"audio", mcp.Audio([]byte{0xff, 0xfb}, "audio/mpeg"), `{"type":"audio","data":"//s=","mimeType":"audio/mpeg"}`, "AudioContent", r2},
	{"embedded text", mcp.Embed(textResource), `{"type":"resource","resource":{"uri":"x://t","text":"line\n\"quoted\""}}`, "EmbeddedResource", r1},
	{"embedded blob", mcp.Embed(blobResource), `{"type":"resource","resource":{"uri":"x://b","mimeType":"application/octet-stream","blob":"AAH+/w==","_meta":{"a":"b"}}}`, "EmbeddedResource", r1},
	{"embedded empty blob", mcp.Embed(mcp.ResourceContents{URI: "x://b", Blob: []byte{}}), `{"type":"resource","resource":{"uri":"x://b","blob":""}}`, "EmbeddedResource", r1},
	{"link", mcp.Link(mcp.Resource{URI: "x://l", Name: "l", Title: "L", Description: "d", MIMEType: "m", Size: new(int64(0)), Icons: []mcp.Icon{{Src: "https://x.test/i"}}, Annotations: notes, Meta: mcp.Meta{"k": "v"}}),
		`{"type":"resource_link","uri":"x://l","name":"l","title":"L","description":"d","mimeType":"m","size":0,"icons":[{"src":"https://x.test/i"}],` +
			`"annotations":{"audience":["user"],"priority":0,"lastModified":"2026-01-01T00:00:00Z"},"_meta":{"k":"v"}}`, "ResourceLink", r3},
	{"tool use", mcp.UseTool("1", "n", json.RawMessage(`{"a":9007199254740993}`)), `{"type":"tool_use","id":"1","name":"n","input":{"a":9007199254740993}}`, "ToolUseContent", r4},
	{"tool result", mcp.Content{Type: mcp.ContentToolResult, ToolResult: &mcp.ToolResultContent{ToolUseID: "1", Content: []mcp.Content{mcp.Text("t")}, StructuredContent: json.RawMessage(`{"n":1.0}`), IsError: true}},
		`{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"t"}],"structuredContent":{"n":1.0},"isError":true}`, "ToolResultContent", r4},
	{"bare tool result", mcp.ToolResult("1"), `{"type":"tool_result","toolUseId":"1","content":[]}`, "ToolResultContent", r4},
	{"unknown", mcp.Content{Type: "hologram", Raw: json.RawMessage(`{"type":"hologram","x":[1.0, 2]}`)}, `{"type":"hologram","x":[1.0, 2]}`, "", ""},
}

func TestContentRoundTrips(t *testing.T) {
	for _, b := range blocks {
		t.Run(b.name, func(t *testing.T) {
			raw, err := mcp.Encode(&b.content)
			if err != nil || string(raw) != b.json {
				t.Fatalf("encoded as %s, %v\nwant %s", raw, err, b.json)
			}
			for _, r := range every {
				if b.def != "" && r >= b.since {
					if err := validator(t, r).Definition(b.def, raw); err != nil {
						t.Error(err)
					}
				}
			}
			for name, back := range decoders {
				got, err := back(raw)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				again, err := mcp.Encode(&got)
				if err != nil || string(again) != b.json {
					t.Errorf("%s: comes back as %s, %v", name, again, err)
				}
				if b.content.Meta == nil && b.content.Link == nil && b.content.ToolResult == nil && !reflect.DeepEqual(got, b.content) {
					t.Errorf("%s: comes back as %+v", name, got)
				}
			}
			old, err := json.Marshal(b.content) // as a library that knows encoding/json only
			if err != nil || !jsonEqual(t, old, []byte(b.json)) {
				t.Errorf("encoding/json writes %s, %v", old, err)
			}
		})
	}
}

var decoders = map[string]func([]byte) (mcp.Content, error){
	"Decode": func(raw []byte) (mcp.Content, error) {
		var c mcp.Content
		err := mcp.Decode(raw, &c)
		return c, err
	},
	"encoding/json": func(raw []byte) (mcp.Content, error) {
		var c mcp.Content
		err := json.Unmarshal(raw, &c)
		return c, err
	},
	"in a result": func(raw []byte) (mcp.Content, error) {
		var res mcp.CallToolResult
		err := mcp.Decode([]byte(`{"content":[`+string(raw)+`]}`), &res)
		if err != nil {
			return mcp.Content{}, err
		}
		return res.Content[0], nil
	},
	"in a prompt message": func(raw []byte) (mcp.Content, error) {
		var m mcp.PromptMessage
		err := mcp.Decode([]byte(`{"role":"user","content":`+string(raw)+`}`), &m)
		return m.Content, err
	},
	"in a sampling message": func(raw []byte) (mcp.Content, error) {
		var m mcp.SamplingMessage
		err := mcp.Decode([]byte(`{"role":"user","content":`+string(raw)+`}`), &m)
		if err != nil {
			return mcp.Content{}, err
		}
		return m.Content[0], nil
	},
}

func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(decodeAny(t, a), decodeAny(t, b))
}

func TestContentThatCannotBeRead(t *testing.T) {
	for _, raw := range []string{
		`{}`, `{"type":5}`, `{"type":null}`, `5`, `"x"`, `[]`, `null`, `{"type":"text","text":5}`, `{"type":"image","data":"!","mimeType":"m"}`, `{"type":"image","data":5}`,
		`{"type":"image","data":"AAA"}`, `{"type":"audio","data":"AA==","mimeType":5}`, `{"type":"resource"}`, `{"type":"resource","resource":{"uri":5}}`,
		`{"type":"resource","resource":{"uri":"x://a","blob":"%"}}`, `{"type":"resource_link","uri":5}`, `{"type":"tool_use","id":1}`, `{"type":"tool_result","toolUseId":1}`,
		`{"type":"text","text":"t","annotations":5}`, `{"type":"text","text":"t","_meta":5}`,
	} {
		var c mcp.Content
		if err := mcp.Decode([]byte(raw), &c); err == nil {
			t.Errorf("%s is read as %+v", raw, c)
		}
	}
}

func TestContentLeniencies(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{`{"type":"text","text":"a\ud83d"}`, `{"type":"text","text":"a` + "\ufffd" + `"}`}, // half a surrogate pair, as JavaScript cuts text
		{`{"type":"image","data":"\/\/s=","mimeType":"m"}`, `{"type":"image","data":"//s=","mimeType":"m"}`},
		{`{"type":"image","data":"\u0041AAA","mimeType":"m"}`, `{"type":"image","data":"AAAA","mimeType":"m"}`},
		{`{"text":"t","unknown":1,"type":"text"}`, `{"type":"text","text":"t"}`},
		{` { "type" : "text" , "text" : "t" } `, `{"type":"text","text":"t"}`},
	} {
		var c mcp.Content
		if err := mcp.Decode([]byte(tt.raw), &c); err != nil {
			t.Errorf("%s: %v", tt.raw, err)
			continue
		}
		if got, err := mcp.Encode(&c); err != nil || string(got) != tt.want {
			t.Errorf("%s is written as %s, %v", tt.raw, got, err)
		}
	}
}

func TestContentThatCannotBeWritten(t *testing.T) {
	for _, c := range []mcp.Content{{}, {Type: "hologram"}, {Type: mcp.ContentResource}, {Type: mcp.ContentToolUse}, {Type: mcp.ContentToolResult}, {Type: mcp.ContentResourceLink}} {
		if raw, err := mcp.Encode(&c); err == nil {
			t.Errorf("%+v is written as %s", c, raw)
		}
		res := &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("a"), c}}
		if raw, err := mcp.Encode(res); err == nil {
			t.Errorf("%+v is written as %s", res, raw)
		}
	}
}

func TestContentStrings(t *testing.T) {
	for _, tt := range []struct {
		content mcp.Content
		want    string
	}{
		{mcp.Text("t"), "t"}, {mcp.Embed(textResource), textResource.Text}, {mcp.Embed(blobResource), "[resource x://b, application/octet-stream, 4 bytes]"},
		{mcp.Image([]byte{1}, "image/png"), "[image, image/png, 1 bytes]"}, {mcp.Audio(nil, "a/b"), "[audio, a/b, 0 bytes]"}, {mcp.Link(mcp.Resource{Name: "n", URI: "x://n"}), "[link to n: x://n]"},
		{mcp.UseTool("1", "n", nil), "[call of n: ]"}, {mcp.ToolResult("1"), "[result of 1]"}, {mcp.Content{Type: "hologram"}, "[hologram]"},
	} {
		if got := tt.content.String(); got != tt.want {
			t.Errorf("%+v reads %q, want %q", tt.content, got, tt.want)
		}
	}
}

// String is for logs and old clients: half-made content must not panic there.
func TestContentStringsOfHalfMadeContent(t *testing.T) {
	for _, typ := range []mcp.ContentType{"", mcp.ContentText, mcp.ContentImage, mcp.ContentAudio, mcp.ContentResource, mcp.ContentResourceLink, mcp.ContentToolUse, mcp.ContentToolResult} {
		c := mcp.Content{Type: typ}
		if got := c.String(); typ != mcp.ContentText && !strings.HasPrefix(got, "[") {
			t.Errorf("%s reads %q", typ, got)
		}
	}
}

func TestSamplingContentIsOneOrSeveral(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{`{"type":"text","text":"a"}`, `{"type":"text","text":"a"}`}, {`[{"type":"text","text":"a"}]`, `{"type":"text","text":"a"}`},
		{`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`}, {`[]`, `[]`},
	} {
		raw := `{"role":"assistant","content":` + tt.raw + `,"model":"m"}`
		var res mcp.CreateMessageResult
		if err := mcp.Decode([]byte(raw), &res); err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got, err := mcp.Encode(&res)
		if want := `{"role":"assistant","content":` + tt.want + `,"model":"m"}`; err != nil || string(got) != want {
			t.Errorf("%s is written as %s, %v", raw, got, err)
		}
		if strings.Contains(tt.raw, `"b"`) && res.Text() != "ab" {
			t.Errorf("the text is %q", res.Text())
		}
	}
}

// An empty value stays present; only nil means absent.
func TestEmptyObjectsAreKept(t *testing.T) {
	empty := json.RawMessage(`{}`)
	for _, tt := range []struct {
		value any
		want  string
	}{
		{&mcp.ElicitResult{Action: mcp.ElicitAccept, Content: empty}, `{"action":"accept","content":{}}`},
		{&mcp.ElicitResult{Action: mcp.ElicitDecline}, `{"action":"decline"}`},
		{&mcp.CallToolParams{Name: "n", Arguments: empty}, `{"name":"n","arguments":{}}`},
		{&mcp.CallToolParams{Name: "n"}, `{"name":"n"}`},
		{&mcp.CallToolResult{StructuredContent: empty}, `{"content":[],"structuredContent":{}}`},
		{&mcp.CallToolResult{StructuredContent: json.RawMessage(`null`)}, `{"content":[],"structuredContent":null}`},
		{&mcp.Tool{Name: "n", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: empty}, `{"name":"n","inputSchema":{"type":"object"},"outputSchema":{}}`},
		{&mcp.InputRequest{Method: "roots/list", Params: empty}, `{"method":"roots/list","params":{}}`},
		{&mcp.CreateMessageParams{MaxTokens: 1, Metadata: empty}, `{"messages":[],"maxTokens":1,"metadata":{}}`},
		{&mcp.ListParams{Cursor: new("")}, `{"cursor":""}`}, {&mcp.ListParams{}, `{}`},
		{&mcp.ListToolsResult{Page: mcp.Page{NextCursor: new("")}}, `{"tools":[],"nextCursor":""}`},
		{&mcp.InputRequiredResult{RequestState: new("")}, `{"requestState":""}`},
		{&mcp.CompleteResult{}, `{"completion":{"values":[]}}`},
		{&mcp.GetPromptResult{}, `{"messages":[]}`}, {&mcp.ReadResourceResult{}, `{"contents":[]}`}, {&mcp.ListRootsResult{}, `{"roots":[]}`},
		{&mcp.ProgressParams{ProgressToken: json.RawMessage(`"t"`)}, `{"progressToken":"t","progress":0}`},
	} {
		if got, err := mcp.Encode(tt.value); err != nil || string(got) != tt.want {
			t.Errorf("%T is written as %s, %v, want %s", tt.value, got, err, tt.want)
		}
	}
}

func TestSubscriptionFilterKeepsExtensions(t *testing.T) {
	raw := `{"toolsListChanged":true,"resourceSubscriptions":["x://a"],"taskIds":["1"]}`
	var f mcp.SubscriptionFilter
	if err := mcp.Decode([]byte(raw), &f); err != nil || string(f.Extensions["taskIds"]) != `["1"]` {
		t.Fatalf("%+v, %v", f, err)
	}
	if got, err := mcp.Encode(f); err != nil || string(got) != raw {
		t.Errorf("written as %s, %v", got, err)
	}
}

// Text from elsewhere may be no UTF-8, or half a surrogate pair.
func TestEncodeAndDecodeForeignText(t *testing.T) {
	for _, v := range []any{&mcp.Tool{Name: "a\xff", InputSchema: json.RawMessage(`{}`)}, &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("a\xff")}}, &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "a\xff"}}}} {
		raw, err := mcp.Encode(v)
		if err != nil || !strings.Contains(string(raw), "a\ufffd") {
			t.Errorf("%T is written as %s, %v", v, raw, err)
		}
	}
	var tool mcp.Tool
	if err := mcp.Decode([]byte(`{"name":"n","description":"cut \ud83d","inputSchema":{"a":"\ud83d"}}`), &tool); err != nil || tool.Description != "cut \ufffd" {
		t.Errorf("read as %+v, %v", tool, err)
	}
}
