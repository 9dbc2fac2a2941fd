package modelserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

var updateMessages = flag.Bool("update-messages", false, "write the golden files of testdata/messages")

// askMessages sends a request as JSON text.
func askMessages(s *Server, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
	r.Header.Set("Anthropic-Version", "2023-06-01")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// with returns an acceptable request with the given fields replaced. A null field is removed.
func with(t *testing.T, fields string) string {
	all := map[string]json.RawMessage{
		"model": json.RawMessage(`"claude-test"`), "max_tokens": json.RawMessage(`2000`),
		"messages": json.RawMessage(`[{"role":"user","content":"Hello."}]`),
		"tools":    json.RawMessage(`[{"name":"t","input_schema":{"type":"object"}}]`),
	}
	var other map[string]json.RawMessage
	if err := json.Unmarshal([]byte(fields), &other); err != nil {
		t.Fatal(err, fields)
	}
	for key, value := range other {
		if all[key] = value; string(value) == "null" {
			delete(all, key)
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// conversation returns messages with alternating roles. The user's is first.
func conversation(contents ...string) string {
	var all []string
	for i, content := range contents {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		all = append(all, `{"role":"`+role+`","content":`+content+`}`)
	}
	return `{"messages":[` + strings.Join(all, ",") + `]}`
}

func schema(text string) string { return `{"tools":[{"name":"t","input_schema":` + text + `}]}` }

const (
	use1, use2 = `{"type":"tool_use","id":"1","name":"t","input":{}}`, `{"type":"tool_use","id":"2","name":"t","input":{}}`
	res1, res2 = `{"type":"tool_result","tool_use_id":"1"}`, `{"type":"tool_result","tool_use_id":"2"}`
	hi, marked = `{"type":"text","text":"hi"}`, `{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}`
	png        = "\x89PNG\r\n\x1a\n0000"
)

func picture(mediaType, data string) string {
	return `{"type":"image","source":{"type":"base64","media_type":"` + mediaType + `","data":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"}}`
}

func TestMessagesRefused(t *testing.T) {
	for _, tt := range []struct{ name, fields, want string }{
		{"not an object", `[]`, "not valid JSON"},
		{"an unknown field", `{"foo":1}`, "foo: Extra inputs are not permitted"},
		{"no model", `{"model":null}`, "model: Field required"},
		{"no max_tokens", `{"max_tokens":null}`, "max_tokens: Field required"},
		{"max_tokens 0", `{"max_tokens":0}`, "max_tokens: Input should be greater"},
		{"no messages", `{"messages":null}`, "messages: at least one message is required"},
		{"a small budget", `{"thinking":{"type":"enabled","budget_tokens":100}}`, "budget_tokens: Input should be greater"},
		{"a budget over max_tokens", `{"thinking":{"type":"enabled","budget_tokens":2000}}`, "`max_tokens` must be greater than `thinking.budget_tokens`"},
		{"another kind of thinking", `{"thinking":{"type":"hard"}}`, "Input tag 'hard'"},
		{"an empty system prompt", `{"system":[{"type":"text","text":""}]}`, "system: text content blocks must be non-empty"},
		{"a picture as system prompt", `{"system":[` + picture("image/png", png) + `]}`, "system.0: Input should be of type 'text'"},

		{"a name of other characters", `{"tools":[{"name":"a.b","input_schema":{"type":"object"}}]}`, "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		{"an empty name", `{"tools":[{"name":"","input_schema":{"type":"object"}}]}`, "tools.0.custom.name: String should match"},
		{"a long name", `{"tools":[{"name":"` + strings.Repeat("a", 129) + `","input_schema":{"type":"object"}}]}`, "should have at most 128 characters"},
		{"two of a name", `{"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}]}`, "tools: Tool names must be unique."},
		{"no schema", `{"tools":[{"name":"a"}]}`, "tools.0.custom.input_schema: Input should be a valid dictionary"},
		{"no type", schema(`{}`), "tools.0.custom.input_schema.type: Field required"},
		{"another type", schema(`{"type":["object"]}`), "input_schema.type: Input should be 'object'"},
		{"anyOf", schema(`{"type":"object","anyOf":[{}]}`), "does not support oneOf, allOf, or anyOf at the top level"},
		{"oneOf", schema(`{"type":"object","oneOf":[{}]}`), "does not support oneOf, allOf, or anyOf at the top level"},
		{"allOf", schema(`{"type":"object","allOf":[{}]}`), "does not support oneOf, allOf, or anyOf at the top level"},
		{"a property's name", schema(`{"type":"object","properties":{"a b":{}}}`), "Property keys should match pattern"},
		{"draft 4", schema(`{"type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`), "JSON schema is invalid. It must match JSON Schema draft 2020-12"},

		{"another role", `{"messages":[{"role":"system","content":"hi"}]}`, "messages.0.role: Input should be 'user' or 'assistant'"},
		{"the assistant first", `{"messages":[{"role":"assistant","content":"hi"}]}`, `first message must use the "user" role`},
		{"the user twice", `{"messages":[{"role":"user","content":"hi"},{"role":"user","content":"hi"}]}`, `found multiple "user" roles in a row`},
		{"no content", conversation(`"hi"`, `[]`, `"hi"`), "messages.1: all messages must have non-empty content"},
		{"the assistant last", conversation(`"hi"`, `"hi"`), "The conversation must end with a user message."},
		{"an empty text", conversation(`""`), "messages: text content blocks must be non-empty"},
		{"a blank text", conversation(`[` + hi + `,{"type":"text","text":" \n"}]`), "messages: text content blocks must contain non-whitespace text"},
		{"a call of the user's", conversation(`[` + use1 + `]`), "messages.0.content.0: Input tag 'tool_use'"},
		{"a result of the assistant's", conversation(`"hi"`, `[`+res1+`]`, `"hi"`), "messages.1.content.0: Input tag 'tool_result'"},
		{"a picture of the assistant's", conversation(`"hi"`, `[`+picture("image/png", png)+`]`, `"hi"`), "messages.1.content.0: Input tag 'image'"},
		{"a sound", conversation(`[{"type":"audio"}]`), "messages.0.content.0: Input tag 'audio'"},
		{"a picture without data", conversation(`[{"type":"image"}]`), "image.source: Field required"},
		{"another picture", conversation(`[` + picture("image/svg+xml", "<svg/>") + `]`), "media_type: Input should be 'image/jpeg'"},
		{"a picture that is none", conversation(`[` + picture("image/png", "text") + `]`), "Could not process image"},
		{"a picture that is another", conversation(`[` + picture("image/jpeg", png) + `]`), "the image appears to be a image/png image"},
		{"a picture of other text", conversation(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%"}}]`), "invalid base64 data"},

		{"a call's id", conversation(`"hi"`, `[{"type":"tool_use","id":"a.b","name":"t","input":{}}]`, `"hi"`), "tool_use.id: String should match pattern"},
		{"a call's name", conversation(`"hi"`, `[{"type":"tool_use","id":"a","name":"t.t","input":{}}]`, `"hi"`), "tool_use.name: String should match pattern"},
		{"a call's input", conversation(`"hi"`, `[{"type":"tool_use","id":"a","name":"t","input":"{}"}]`, `"hi"`), "tool_use.input: Input should be a valid dictionary"},
		{"a call without tools", `{"tools":null,` + conversation(`"hi"`, `[`+use1+`]`, `[`+res1+`]`)[1:], "must define tools"},
		{"a call without a result", conversation(`"hi"`, `[`+use1+`,`+use2+`]`, `[`+res1+`]`), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: 2."},
		{"a result that is not first", conversation(`"hi"`, `[`+use1+`,`+use2+`]`, `[`+res1+`,`+hi+`,`+res2+`]`), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: 2."},
		{"a result without its call", conversation(`[` + res1 + `]`), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: 1."},
		{"a result too late", conversation(`"hi"`, `[`+use1+`]`, `[`+res1+`]`, `"hi"`, `[`+res1+`]`), "messages.4.content.0: unexpected `tool_use_id`"},
		{"two results of a call", conversation(`"hi"`, `[`+use1+`]`, `[`+res1+`,`+res1+`]`), "messages.2.content.1: unexpected `tool_use_id`"},
		{"two calls of an id", conversation(`"hi"`, `[`+use1+`]`, `[`+res1+`]`, `[`+use1+`]`, `[`+res1+`]`), "`tool_use` ids must be unique"},
		{"an error without content", conversation(`"hi"`, `[`+use1+`]`, `[{"type":"tool_result","tool_use_id":"1","is_error":true}]`), "content cannot be empty if `is_error` is true"},
		{"an error that is a picture", conversation(`"hi"`, `[`+use1+`]`, `[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":[`+picture("image/png", png)+`]}]`), "all content must be type `text` if `is_error` is true"},
		{"an empty text in a result", conversation(`"hi"`, `[`+use1+`]`, `[{"type":"tool_result","tool_use_id":"1","content":""}]`), "text content blocks must be non-empty"},
		{"a result in a result", conversation(`"hi"`, `[`+use1+`]`, `[{"type":"tool_result","tool_use_id":"1","content":[`+res1+`]}]`), "tool_result.content.0: Input tag 'tool_result'"},

		{"thoughts without a signature", conversation(`"hi"`, `[{"type":"thinking","thinking":"a"}]`, `"hi"`), "messages.1.content.0.thinking.signature: Field required"},
		{"nothing but thoughts", conversation(`"hi"`, `[{"type":"thinking","thinking":"a","signature":"SIGNED"}]`, `"hi"`), "messages.1: The final block in an assistant message cannot be `thinking`."},
		{"no thoughts before a call", `{"thinking":{"type":"enabled","budget_tokens":1024},` + conversation(`"hi"`, `[`+use1+`]`, `[`+res1+`]`)[1:], "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`"},
		{"marked thoughts", `{"system":[` + marked + `],` + conversation(`"hi"`, `[{"type":"thinking","thinking":"a","signature":"SIGNED","cache_control":{"type":"ephemeral"}},`+hi+`]`, `"hi"`)[1:], "thinking.cache_control: Extra inputs are not permitted"},
		{"five marks", conversation(`[` + strings.Repeat(marked+",", 4) + marked + `]`), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(t.Error, Script{Turns: []Turn{{Text: "Hello."}}}, Messages)
			body := tt.fields
			if strings.HasPrefix(body, "{") {
				body = with(t, body)
			}
			body = strings.ReplaceAll(body, "SIGNED", signatureOf(s, "a"))
			w := askMessages(s, body)
			var got struct {
				Type  string
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != 400 || got.Type != "error" || got.Error.Type != "invalid_request_error" || !strings.Contains(got.Error.Message, tt.want) {
				t.Errorf("%d %+v", w.Code, got)
			}
			if r := s.Requests()[0]; r.Refused != got.Error.Message || s.Left() != 1 {
				t.Errorf("%q, %d left", r.Refused, s.Left())
			}
		})
	}
}

// The limit for images applies to their base64 form. It is too large for a request in a file.
func TestMessagesImageSize(t *testing.T) {
	for size, refused := range map[int]bool{maxMessagesImage / 4 * 3: false, maxMessagesImage/4*3 + 1: true} {
		data := base64.StdEncoding.EncodeToString(append([]byte(png), make([]byte, size-len(png))...))
		why := checkImage("source", &imageSource{Type: "base64", MediaType: "image/png", Data: data})
		if strings.Contains(why, "image exceeds 5 MB maximum") != refused || !refused && why != "" {
			t.Errorf("%d: %s", size, why)
		}
	}
}

// signatureOf returns the signature of a first thinking block.
func signatureOf(s *Server, thinking string) string {
	e := &exchange{Server: s}
	return e.thinkingSignature(&messagesRequest{Model: "claude-test"}, thinking, 0)
}

func TestMessagesHeaders(t *testing.T) {
	s := New(t.Error, Script{Model: "claude-test", Key: "sk-1", Turns: []Turn{{Text: "Hello."}}}, Messages)
	for _, tt := range []struct {
		header []string
		fields string
		status int
		want   string
	}{
		{nil, `{}`, 401, "x-api-key header is required"},
		{[]string{"X-Api-Key", "sk-2"}, `{}`, 401, "invalid x-api-key"},
		{[]string{"X-Api-Key", "sk-1", "Anthropic-Version", ""}, `{}`, 400, "anthropic-version: header is required"},
		{[]string{"X-Api-Key", "sk-1"}, `{"model":"other"}`, 404, "model: other"},
		{[]string{"X-Api-Key", "sk-1"}, `{}`, 200, "Hello."},
	} {
		if w := askMessages(s, with(t, tt.fields), tt.header...); w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%v: %d %s", tt, w.Code, w.Body)
		}
	}
}

// Changed thinking blocks are refused; each case changes one property of a block.
func TestMessagesThoughts(t *testing.T) {
	for name, tt := range map[string]struct {
		quirk    string
		old, new string
	}{
		"as they were": {}, "another text": {"", "I think", "I thank"}, "another model": {"", `"claude-test"`, `"claude-other"`},
		"another place": {"", `[{"signature`, `[{"type":"text","text":"first"},{"signature`},
		"redacted":      {quirk: "redacted"}, "redacted, and other data": {"redacted", `"data":"`, `"data":"x`},
		"bound": {quirk: "bound"}, "bound to another system prompt": {"bound", `"max_tokens"`, `"system":"Be brief.","max_tokens"`},
		"interleaved": {quirk: "interleaved"},
	} {
		t.Run(name, func(t *testing.T) {
			script := Script{Turns: []Turn{{Reasoning: "I think", Text: "so", Calls: []Call{{Name: "t"}}}, {Text: "Yes."}}, Quirks: []string{tt.quirk}}
			s := New(t.Error, script, Messages)
			var reply struct{ Content json.RawMessage }
			if err := json.Unmarshal(askMessages(s, with(t, `{}`)).Body.Bytes(), &reply); err != nil {
				t.Fatal(err)
			}
			body := with(t, `{"thinking":{"type":"enabled","budget_tokens":1024},`+conversation(`"Hello."`, string(reply.Content), `[{"type":"tool_result","tool_use_id":"toolu_0_0"}]`)[1:])
			changed := strings.Replace(body, tt.old, tt.new, 1)
			if tt.old != "" && changed == body {
				t.Fatalf("there is no %s in %s", tt.old, body)
			}
			w := askMessages(s, changed)
			if tt.old == "" && w.Code != 200 || tt.old != "" && (w.Code != 400 || !strings.Contains(w.Body.String(), "Invalid `signature` in `thinking` block")) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// Each file of testdata/messages holds a script, requests, and the response to each request.
func TestMessagesGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/messages/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c struct {
				Script   json.RawMessage
				Requests []json.RawMessage
			}
			if err := json.Unmarshal(data, &c); err != nil {
				t.Fatal(err)
			}
			script, err := Parse(c.Script)
			if err != nil {
				t.Fatal(err)
			}
			s := New(t.Error, script, Messages)
			var got bytes.Buffer
			for _, body := range c.Requests {
				w := askMessages(s, with(t, string(body)))
				got.WriteString(w.Result().Status + " " + w.Header().Get("Retry-After") + "\n" + w.Body.String() + "\n")
			}
			golden := strings.TrimSuffix(file, ".json") + ".golden"
			if *updateMessages {
				if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || !bytes.Equal(want, got.Bytes()) {
				t.Errorf("%v; got\n%s", err, got.Bytes())
			}
		})
	}
}

// A reply with Cut breaks the connection.
func TestMessagesCut(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := New(t.Error, Script{Turns: []Turn{{Text: "one two three", Cut: true}, {Text: "one two three", Cut: true}}}, Messages)
	web := httptest.NewServer(s)
	defer web.Close()
	for _, fields := range []string{`{"stream":true}`, `{}`} {
		r, err := http.NewRequest(http.MethodPost, web.URL+"/v1/messages", strings.NewReader(with(t, fields)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Anthropic-Version", "2023-06-01")
		res, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil || !strings.Contains(string(body), "one") || strings.Contains(string(body), "message_stop") {
			t.Errorf("%v after %s", err, body)
		}
	}
}
