package everything

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

// filled returns the content that the user fills in, by the form's message.
func filled(message string) string {
	switch {
	case strings.Contains(message, "name?"):
		return `{"name":"Ada"}`
	case strings.Contains(message, "color?"):
		return `{"color":"blue"}`
	case strings.Contains(message, "confirm"):
		return `{"ok":true}`
	case strings.Contains(message, "context"):
		return `{"context":"tests"}`
	case strings.Contains(message, "defaults"):
		return `{"name":"Ada","age":36,"score":1.5,"status":"pending","verified":false}`
	case message == "Please choose":
		return `{"untitledSingle":"option1","titledSingle":"value2","legacyEnum":"opt3","untitledMulti":["option1","option2"],"titledMulti":["value1"]}`
	}
	return `{"username":"ada","email":"ada@example.com"}`
}

const nobody = "does not support" // if the client cannot be asked

func TestAsking(t *testing.T) {
	// Forms came with 2025-06-18, choices of several and visits to URLs with 2025-11-25.
	forms, choices, always := mcp.Revision20250618, mcp.Revision20251125, mcp.Revision20241105
	tests := []struct {
		since mcp.Revision
		tool  string
		in    args
		asked []string // sorted
		want  string
	}{
		{always, "test_sampling", args{"prompt": "Why?"}, []string{"Why?"}, "LLM response: words"},
		{forms, "test_elicitation", args{"message": "Who?"}, []string{"Who?"}, `User response: action: accept, content: {"username":"ada","email":"ada@example.com"}`},
		{forms, "test_elicitation_sep1034_defaults", nil, []string{"Please review and update the form fields with defaults"},
			`Elicitation completed: action=accept, content={"name":"Ada","age":36,"score":1.5,"status":"pending","verified":false}`},
		{choices, "test_elicitation_sep1330_enums", nil, []string{"Please choose"},
			`Elicitation completed: action=accept, content={"untitledSingle":"option1","titledSingle":"value2","legacyEnum":"opt3","untitledMulti":["option1","option2"],"titledMulti":["value1"]}`},
		{choices, "ask_url", nil, []string{"https://modelcontextprotocol.io/specification"}, "The user agreed to visit the page."},
		{always, "test_missing_capability", nil, nil, "The client has a model."},
		{forms, "test_streaming_elicitation", nil, []string{"What is your name?"}, "Hello, Ada!"},
		{forms, "test_input_required_result_elicitation", nil, []string{"What is your name?"}, "Hello, Ada!"},
		{always, "test_input_required_result_sampling", nil, []string{"What is the capital of France?"}, "words"},
		{always, "test_input_required_result_list_roots", nil, []string{"roots"}, "Roots: file:///home"},
		{forms, "test_input_required_result_request_state", nil, []string{"Please confirm"}, "state-ok, confirmed: true"},
		{forms, "test_input_required_result_tampered_state", nil, []string{"Please confirm"}, "state-ok, confirmed: true"},
		{forms, "test_input_required_result_multiple_inputs", nil, []string{"Generate a greeting", "What is your name?", "roots"}, "Ada says: words. Roots: file:///home"},
		{forms, "test_input_required_result_multi_round", nil, []string{"Step 1: What is your name?", "Step 2: What is your favorite color?"}, "Ada likes blue."},
		{forms, "test_input_required_result_capabilities", nil, []string{"Generate a greeting", "What is your name?"}, "The client has answered 2 questions."},
	}
	a := &answerer{content: filled}
	forRevisions(t, a, func(t *testing.T, r mcp.Revision, c *client.Client) {
		for _, test := range tests {
			if r < test.since {
				continue
			}
			wantText(t, c, test.tool, test.in, test.want)
			if asked := a.questions(); !slices.Equal(asked, test.asked) {
				t.Errorf("%s asked %q, want %q", test.tool, asked, test.asked)
			}
		}
	})
}

func TestAskingOldClients(t *testing.T) {
	a := &answerer{content: filled}
	forRevisions(t, a, func(t *testing.T, r mcp.Revision, c *client.Client) {
		if r >= mcp.Revision20250618 {
			return
		}
		for _, tool := range []string{"test_input_required_result_elicitation", "test_elicitation_sep1330_enums", "ask_url"} {
			got := call(t, c, tool, nil)
			if !got.IsError || !strings.Contains(got.Content[0].Text, nobody) {
				t.Errorf("%s: got %+v", tool, got)
			}
		}
		wantText(t, c, "test_input_required_result_capabilities", nil, "The client has answered 1 questions.")
		if asked := a.questions(); !slices.Equal(asked, []string{"Generate a greeting"}) {
			t.Errorf("asked %q", asked)
		}
	})
}

// A client that answers nothing is told so by a protocol error in the modern era, by a tool error
// before.
func TestAskingWhoCannot(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, r mcp.Revision, c *client.Client) {
		for _, tool := range []string{"test_missing_capability", "test_input_required_result_sampling"} {
			_, err := client.Call[string](t.Context(), c, tool, nil)
			failed, isTool := errors.AsType[*client.ToolError](err)
			protocol, isProtocol := errors.AsType[*mcp.Error](err)
			switch {
			case r.Modern() && (!isProtocol || protocol.Code != mcp.CodeMissingCapability || string(protocol.Data) != `{"requiredCapabilities":{"sampling":{}}}`):
				t.Errorf("%s: got %v", tool, err)
			case !r.Modern() && (!isTool || !strings.Contains(failed.Result.Content[0].Text, nobody)):
				t.Errorf("%s: got %v", tool, err)
			}
		}
		wantText(t, c, "test_input_required_result_capabilities", nil, "The client can answer no questions.")
	})
}

func TestDeclines(t *testing.T) {
	for action, want := range map[mcp.ElicitAction]string{mcp.ElicitDecline: "declined", mcp.ElicitCancel: "dismissed"} {
		a := &answerer{action: action}
		forRevisions(t, a, func(t *testing.T, r mcp.Revision, c *client.Client) {
			if r < mcp.Revision20250618 {
				return
			}
			wantText(t, c, "test_elicitation", args{"message": "Who?"}, "User response: action: "+string(action)+", content: {}")
			got := call(t, c, "test_input_required_result_elicitation", nil)
			if !got.IsError || !strings.Contains(got.Content[0].Text, want) {
				t.Errorf("got %+v, want an error with %q", got, want)
			}
		})
	}
}

func TestForms(t *testing.T) {
	a := &answerer{content: filled}
	forRevisions(t, a, func(t *testing.T, r mcp.Revision, c *client.Client) {
		if r < mcp.Revision20251125 {
			return
		}
		a.forms = nil
		call(t, c, "test_elicitation", args{"message": "Who?"})
		call(t, c, "test_elicitation_sep1034_defaults", nil)
		call(t, c, "test_elicitation_sep1330_enums", nil)
		call(t, c, "test_input_required_result_elicitation", nil)
		want := []string{
			`{"type":"object","properties":{"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`,
			`{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},` +
				`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}},` +
				`"required":["name","age","score","status","verified"]}`,
			enums,
			`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`,
		}
		for i, form := range a.forms {
			if !sameJSON(t, form, []byte(want[i])) {
				t.Errorf("got the form %s, want %s", form, want[i])
			}
		}
		if len(a.forms) != len(want) {
			t.Errorf("got %d forms, want %d", len(a.forms), len(want))
		}
	})
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var va, vb any
	if err := errors.Join(json.Unmarshal(a, &va), json.Unmarshal(b, &vb)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(va, vb)
}

// A client of the modern era sees the rounds themselves.
func TestRounds(t *testing.T) {
	s := New()
	defer s.Close()
	o := (&answerer{content: filled}).options()
	o.Wire.Revision = mcp.Revision20260728
	// Some messages below are wrong on purpose.
	o.Wire.Tap = mcptest.ClientTap(t, mcptest.WithoutChecks("client:schema"))
	c, err := client.Dial(t.Context(), s, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	round := func(tool, more string) (asked mcp.InputRequiredResult, text string, err error) {
		params := json.RawMessage(`{"name":"` + tool + `","arguments":{}` + more + `}`)
		res, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: params})
		if err != nil {
			return asked, "", err
		}
		if res.Type == mcp.ResultInputRequired {
			return asked, "", mcp.Decode(res.Raw, &asked)
		}
		var result mcp.CallToolResult
		if err := mcp.Decode(res.Raw, &result); err != nil {
			return asked, "", err
		}
		return asked, result.Content[0].Text, nil
	}
	const elicitation = "test_input_required_result_elicitation"
	const accepted = `{"action":"accept","content":{"name":"Ada"}}`
	for more, want := range map[string]string{
		`,"inputResponses":{"user_name":` + accepted + `}`:                          "Hello, Ada!",
		`,"inputResponses":{"user_name":` + accepted + `,"other":` + accepted + `}`: "Hello, Ada!",
		``: "",
		`,"inputResponses":{"other":` + accepted + `}`:    "",
		`,"inputResponses":{"user_name":12345}`:           "",
		`,"inputResponses":null`:                          "",
		`,"inputResponses":{"user_name":{"action":"go"}}`: "",
	} {
		asked, text, err := round(elicitation, more)
		if err != nil || text != want || want == "" && asked.InputRequests["user_name"].Method != mcp.MethodElicit {
			t.Errorf("%s: got %+v, %q, %v; want %q", more, asked, text, err, want)
		}
	}

	first, _, err := round("test_input_required_result_multi_round", "")
	if err != nil || first.RequestState == nil {
		t.Fatalf("got %+v, %v", first, err)
	}
	second, _, err := round("test_input_required_result_multi_round", `,"inputResponses":{"step1":`+accepted+`},"requestState":"`+*first.RequestState+`"`)
	if err != nil || second.RequestState == nil || *second.RequestState == *first.RequestState || second.InputRequests["step2"].Method == "" {
		t.Errorf("got %+v, %v", second, err)
	}

	const tampered = "test_input_required_result_tampered_state"
	asked, _, err := round(tampered, "")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = round(tampered, `,"inputResponses":{"confirm":{"action":"accept","content":{"ok":true}}},"requestState":"`+*asked.RequestState+`-TAMPERED"`)
	if protocol, ok := errors.AsType[*mcp.Error](err); !ok || protocol.Code != -32602 {
		t.Errorf("forged state: got %v, want -32602", err)
	}
}
