package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
)

// newCalls returns calls of the server everything, and the console's API with them.
func newCalls(t *testing.T) (*control.Calls, http.Handler) {
	t.Helper()
	return newCallsAs(t, func(mcp.Revision) {})
}

// newCallsAs is newCalls. dialed is called with the revision of each connection to the gateway.
func newCallsAs(t *testing.T, dialed func(mcp.Revision)) (*control.Calls, http.Handler) {
	t.Helper()
	h := hub.New(nil)
	h.Apply([]hub.Definition{{Name: "everything", Target: everything.New()}}, "the test begins")
	h.Settle(t.Context())
	g := gateway.New(h, nil)
	life, end := context.WithCancel(context.Background())
	calls := control.NewCalls(life, h, func(ctx context.Context, answers client.Answers, revision mcp.Revision) (*client.Client, error) {
		cl, err := client.Dial(ctx, g, &client.Options{Answers: answers, NoOutputCheck: true, NoCache: true, Wire: client.Wire{Revision: revision}})
		if err == nil {
			dialed(cl.Server().Revision)
		}
		return cl, err
	})
	t.Cleanup(func() {
		end()
		if err := errors.Join(calls.Close(), g.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
	return calls, control.ConsoleAPI(control.Running{Life: life, Controller: &controller{h, nil}, Hub: h, Calls: calls})
}

// askAPI sends a request to the API and decodes the answer.
func askAPI[T any](t *testing.T, api http.Handler, method, path, body string) (answer T) {
	t.Helper()
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return answer
}

// tool returns a call of a tool.
func tool(name, arguments string) control.CallRequest {
	return control.CallRequest{ItemName: control.ItemName{Server: "everything", Kind: "tool", Name: name}, Arguments: arguments}
}

// follow returns the events of a call, with the call at its end.
func follow(t *testing.T, calls *control.Calls, id uint64) (events []control.CallEvent, info control.CallInfo) {
	t.Helper()
	err := calls.Follow(t.Context(), id, func(e control.CallEvent) error {
		if e.Call != nil {
			info = *e.Call
		} else {
			events = append(events, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events, info
}

func TestCalls(t *testing.T) {
	t.Parallel()
	calls, _ := newCalls(t)
	for _, test := range []struct {
		call   control.CallRequest
		status control.CallStatus
		last   string // part of the result or the error
	}{
		{tool("echo", `{"message":"hello"}`), control.CallOK, "hello"},
		{tool("test_error_handling", ""), control.CallToolError, `"isError":true`},
		{tool("add", `{"a":"x"}`), control.CallToolError, "must be"},
		{control.CallRequest{ItemName: control.ItemName{Server: "everything", Kind: "resource", Name: "test://static-text"}}, control.CallOK, `"contents"`},
		{control.CallRequest{ItemName: control.ItemName{Server: "everything", Kind: "template", Name: "test://template/{id}/data"}, Arguments: `{"id":"81"}`}, control.CallOK, "test://template/81/data"},
		{control.CallRequest{ItemName: control.ItemName{Server: "everything", Kind: "prompt", Name: "test_prompt_with_arguments"}, Arguments: `{"arg1":"one","arg2":"two"}`}, control.CallOK, "one"},
		{control.CallRequest{ItemName: control.ItemName{Server: "everything", Kind: "prompt", Name: "test_simple_prompt"}, Arguments: `{"a":1}`}, control.CallFailed, "are texts"},
	} {
		info, err := calls.Start(test.call)
		if err != nil {
			t.Errorf("%s: %v", test.call.Name, err)
			continue
		}
		events, info := follow(t, calls, info.ID)
		last := events[len(events)-1]
		if info.Status != test.status || !strings.Contains(last.Result+last.Message, test.last) {
			t.Errorf("%s: %s %+v", test.call.Name, info.Status, last)
		}
	}
	if all := calls.List(); len(all) != 7 || all[0].ID != 7 {
		t.Errorf("the history is %+v", all)
	}
	for _, wrong := range []control.CallRequest{tool("missing", ""), tool("echo", "[]"), tool("echo", "{"), {ItemName: control.ItemName{Server: "none", Kind: "tool", Name: "x"}}} {
		if _, err := calls.Start(wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

// A call is made by a client of its revision, the newest one without one. The calls of a revision
// share a connection.
func TestCallRevisions(t *testing.T) {
	t.Parallel()
	dialed := make(chan mcp.Revision, 3) // one too many
	calls, _ := newCallsAs(t, func(r mcp.Revision) { dialed <- r })
	var results []string
	for _, revision := range []mcp.Revision{"", mcp.Revision20251125, mcp.Revision20251125} {
		call := tool("echo", `{"message":"hello"}`)
		call.Revision = revision
		info, err := calls.Start(call)
		if err != nil {
			t.Fatal(err)
		}
		events, info := follow(t, calls, info.ID)
		if info.Status != control.CallOK || info.Revision != revision {
			t.Errorf("%+v", info)
		}
		results = append(results, events[len(events)-1].Result)
	}
	if got := []mcp.Revision{<-dialed, <-dialed}; got[0] != mcp.LatestRevision || got[1] != mcp.Revision20251125 || len(dialed) != 0 {
		t.Errorf("connections of %v and %d more", got, len(dialed))
	}
	if !strings.Contains(results[0], "hello") || results[1] != results[2] {
		t.Errorf("%q", results)
	}
	wrong := tool("echo", "{}")
	wrong.Revision = "2024-01-01"
	if _, err := calls.Start(wrong); err == nil || !strings.Contains(err.Error(), "2025-11-25") {
		t.Errorf("the revision 2024-01-01: %v", err)
	}
}

// A result is checked against the output schema, and progress arrives before it.
func TestCallVerdictAndProgress(t *testing.T) {
	t.Parallel()
	calls, _ := newCalls(t)
	info, err := calls.Start(tool("structured_object", ""))
	if err != nil {
		t.Fatal(err)
	}
	if events, _ := follow(t, calls, info.ID); events[0].Verdict == nil || !events[0].Verdict.OK {
		t.Errorf("%+v", events)
	}
	if info, err = calls.Start(tool("test_tool_with_progress", "")); err != nil {
		t.Fatal(err)
	}
	events, _ := follow(t, calls, info.ID)
	if len(events) != 4 || events[0].Kind != "progress" || events[0].Total != 100 || events[3].Kind != "result" {
		t.Errorf("%+v", events)
	}
}

// A call ends when the user cancels it, and when the server is silent for too long.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	calls, api := newCalls(t)
	info, err := calls.Start(tool("slow", `{"seconds":600}`))
	if err != nil {
		t.Fatal(err)
	}
	if answer := askAPI[map[string]string](t, api, "POST", "/v1/calls/1/cancel", "{}"); len(answer) != 0 {
		t.Errorf("%v", answer)
	}
	if events, info := follow(t, calls, info.ID); info.Status != control.CallCancelled {
		t.Errorf("%+v %+v", info, events)
	}
	if answer := askAPI[map[string]string](t, api, "POST", "/v1/calls/99/cancel", "{}"); answer["error"] == "" {
		t.Error("a call that does not exist is cancelled")
	}
	silent := tool("slow", `{"seconds":600}`)
	silent.Seconds = 0.001
	if info, err = calls.Start(silent); err != nil {
		t.Fatal(err)
	}
	if _, info := follow(t, calls, info.ID); info.Status != control.CallFailed {
		t.Errorf("%+v", info)
	}
}

// The API lists and finds items, describes them with forms, and checks arguments with their digits.
func TestCatalogAPI(t *testing.T) {
	t.Parallel()
	_, api := newCalls(t)
	type list struct{ Items []control.ItemSummary }
	if all := askAPI[list](t, api, "GET", "/v1/catalog", "").Items; len(all) < 40 || all[0].Tokens == 0 {
		t.Errorf("%d items", len(all))
	}
	if found := askAPI[list](t, api, "GET", "/v1/catalog?q="+url.QueryEscape("add two numbers"), "").Items; len(found) == 0 || found[0].Name != "add" {
		t.Errorf("%+v", found)
	}
	detail := askAPI[struct {
		Form struct {
			Kind       string
			Properties []struct {
				Name     string
				Required bool
			}
		}
	}](t, api, "GET", "/v1/item?server=everything&kind=tool&name=add", "")
	if detail.Form.Kind != "object" || len(detail.Form.Properties) != 2 || !detail.Form.Properties[0].Required {
		t.Errorf("%+v", detail)
	}
	check := func(arguments string) control.Verdict {
		text, _ := json.Marshal(tool("add", arguments))
		return askAPI[control.Verdict](t, api, "POST", "/v1/check", string(text))
	}
	if v := check(`{"a":1,"b":12345678901234567890}`); !v.OK {
		t.Errorf("%+v", v)
	}
	if v := check(`{"a":1,"b":"x"}`); v.OK || len(v.Issues) != 1 || v.Issues[0].Path != "/b" {
		t.Errorf("%+v", v)
	}
	if v := check(`{"a":`); v.OK || v.Error == "" {
		t.Errorf("%+v", v)
	}
}

// A question of a server waits in its call for the first valid answer of the user.
func TestAsks(t *testing.T) {
	t.Parallel()
	calls, api := newCalls(t)
	for action, want := range map[string]string{"accept": "ada@example.com", "decline": "decline", "cancel": "cancel"} {
		info, err := calls.Start(tool("test_elicitation", `{"message":"Who are you?"}`))
		if err != nil {
			t.Fatal(err)
		}
		var last control.CallEvent
		err = calls.Follow(t.Context(), info.ID, func(e control.CallEvent) error {
			last = e
			if e.Kind != "ask" {
				return nil
			}
			if e.Ask.Form == nil || len(e.Ask.Form.Properties) == 0 {
				t.Errorf("%+v", e.Ask)
			}
			path := fmt.Sprintf("/v1/asks/%d", e.Ask.ID)
			if wrong := askAPI[map[string]string](t, api, "POST", path, `{"action":"accept","content":"{\"email\":1}"}`); !strings.Contains(wrong["error"], "must be") {
				t.Errorf("a wrong answer: %v", wrong)
			}
			text := `{"action":"` + action + `","content":"{\"username\":\"ada\",\"email\":\"ada@example.com\"}"}`
			if answer := askAPI[map[string]string](t, api, "POST", path, text); answer["error"] != "" {
				t.Errorf("%s: %v", action, answer)
			}
			return nil
		})
		if err != nil || !strings.Contains(last.Result, want) {
			t.Errorf("%s: %+v, %v", action, last, err)
		}
	}
	if err := calls.Asks.Answer(1, control.AskAnswer{Action: "decline"}); err == nil {
		t.Error("a question is answered twice")
	}
}
