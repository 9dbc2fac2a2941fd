package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// script is a tool that gives its results one after the other and keeps what it was sent.
type script struct {
	mu      sync.Mutex
	results []*mcp.Result
	got     []string
}

func (s *script) serve(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, string(req.Params))
	res := s.results[min(len(s.got), len(s.results))-1]
	return res, nil
}

func asks(s string) *mcp.Result {
	return &mcp.Result{Type: mcp.ResultInputRequired, Raw: json.RawMessage(s)}
}

const done = `{"content":[{"type":"text","text":"done"}]}`

func accept(content string) func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
	return func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(content)}, nil
	}
}

func TestRetryKeepsTheParametersAndSendsTheStateBack(t *testing.T) {
	s := &script{results: []*mcp.Result{
		asks(`{"inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"Bob"}}}}}},"requestState":"a\u002fb \"c\""}`),
		asks(`{"requestState":"second"}`),
		asks(`{"inputRequests":{"z":{"method":"roots/list"},"a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}}}`),
		raw(done),
	}}
	c := dialWire(t, tools(s.serve), client.Options{
		Answers: client.Answers{
			Elicit: accept(``),
			Roots:  client.FixedRoots(mcp.Root{URI: "file:///r"}),
			Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.SamplingContent{mcp.Text("hi")}, Model: "m"}, nil
			},
		},
	})
	params := json.RawMessage(`{"name":"t", "extra":[1.0,  2e3],"arguments":{"n":9007199254740993,"u":"\u00e9"}}`)
	res, err := client.Do(context.Background(), c, mcp.Method[json.RawMessage, mcp.CallToolResult]{Name: mcp.MethodCallTool}, params,
		client.CallOptions{Meta: mcp.Meta{"trace": "x"}})
	if err != nil || res.Content[0].Text != "done" {
		t.Fatalf("got %v, %v", res, err)
	}
	const original = `"name":"t","extra":[1.0,  2e3],"arguments":{"n":9007199254740993,"u":"\u00e9"},"_meta":{"trace":"x"}`
	want := []string{
		`{` + original + `}`,
		`{` + original + `,"inputResponses":{"who":{"action":"accept","content":{"name":"Bob"}}},"requestState":"a\u002fb \"c\""}`,
		`{` + original + `,"requestState":"second"}`,
		`{` + original + `,"inputResponses":{"a":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"},"z":{"roots":[{"uri":"file:///r"}]}}}`,
	}
	for i := range want {
		if i < len(s.got) && s.got[i] != want[i] {
			t.Errorf("request %d:\n got %s\nwant %s", i, s.got[i], want[i])
		}
	}
	if len(s.got) != len(want) {
		t.Errorf("%d requests, want %d", len(s.got), len(want))
	}
}

// dialWire connects without a wire, so that params arrive as they were sent.
func dialWire(t testing.TB, h mcp.Handler, o client.Options) *client.Client {
	t.Helper()
	return dialFake(t, &fakeDialer{name: t.Name(), handler: h}, o)
}

func dialFake(t testing.TB, l *fakeDialer, o client.Options) *client.Client {
	t.Helper()
	if o.Wire.Verdicts == nil {
		o.Wire.Verdicts = new(transport.Verdicts)
	}
	c, err := client.Dial(context.Background(), l, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// sampled returns a function that always answers with r.
func sampled(r mcp.CreateMessageResult) func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	return func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return &r, nil }
}

func TestQuestionsThatCannotBeAnswered(t *testing.T) {
	yes := accept(`{}`)
	ask := func(method, params string) *mcp.Result {
		return asks(fmt.Sprintf(`{"inputRequests":{"q":{"method":%q,"params":%s}}}`, method, params))
	}
	for _, test := range []struct {
		name   string
		result *mcp.Result
		opts   client.Options
		want   string
		code   int
	}{
		{"no handler", ask("elicitation/create", `{"message":"?"}`), client.Options{}, "does not answer elicitation/create", -32601},
		{"no sampling", ask("sampling/createMessage", `{"messages":[],"maxTokens":1}`), client.Options{Answers: client.Answers{Elicit: yes}}, "does not answer", -32601},
		{"no roots", ask("roots/list", `{}`), client.Options{Answers: client.Answers{Elicit: yes}}, "does not answer", -32601},
		{"unknown kind", ask("acme/ask", `{}`), client.Options{Answers: client.Answers{Elicit: yes}}, "does not answer acme/ask", -32601},
		{"undeclared mode", ask("elicitation/create", `{"mode":"url","message":"?","url":"https://x"}`), client.Options{Answers: client.Answers{Elicit: yes}}, "did not declare", -32602},
		{"unknown mode", ask("elicitation/create", `{"mode":"voice","message":"?"}`), client.Options{Answers: client.Answers{Elicit: yes, ElicitURL: true}}, "did not declare", -32602},
		{"relative URL", ask("elicitation/create", `{"mode":"url","message":"?","url":"x"}`), client.Options{Answers: client.Answers{Elicit: yes, ElicitURL: true}}, "absolute", -32602},
		{"broken schema", ask("elicitation/create", `{"message":"?","requestedSchema":{"type":"objekt"}}`), client.Options{Answers: client.Answers{Elicit: yes}}, "requestedSchema", -32602},
		{"undeclared tools", ask("sampling/createMessage", `{"messages":[],"maxTokens":1,"tools":[]}`),
			client.Options{Answers: client.Answers{Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, nil }}}, "tools", -32602},
		{"undeclared choice of tools", ask("sampling/createMessage", `{"messages":[],"maxTokens":1,"toolChoice":{"mode":"auto"}}`),
			client.Options{Answers: client.Answers{Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, nil }}}, "tools", -32602},
		{"no message", ask("sampling/createMessage", `{"messages":[],"maxTokens":1}`),
			client.Options{Answers: client.Answers{Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, nil }}}, "neither", 0},
		{"unknown dialect", ask("elicitation/create", `{"message":"?","requestedSchema":{"$schema":"urn:unheard-of","type":"object","properties":{}}}`),
			client.Options{Answers: client.Answers{Elicit: yes}}, "dialect \"urn:unheard-of\" is not known", -32602},
		{"a root that is no file", ask("roots/list", `{}`), client.Options{Answers: client.Answers{Roots: client.FixedRoots(mcp.Root{URI: "file:///a"}, mcp.Root{URI: "https://a.test/"})}}, "is not a file URI", 0},
		{"a relative root", ask("roots/list", `{}`), client.Options{Answers: client.Answers{Roots: client.FixedRoots(mcp.Root{URI: "work"})}}, "is not an absolute URI", 0},
		{"a root that climbs", ask("roots/list", `{}`), client.Options{Answers: client.Answers{Roots: client.FixedRoots(mcp.Root{URI: "file:///a/../../etc"})}}, "climbs with ..", 0},
		{"a root with a bad key", ask("roots/list", `{}`), client.Options{Answers: client.Answers{Roots: client.FixedRoots(mcp.Root{URI: "file:///a", Meta: mcp.Meta{"-bad": 1}})}}, "is not a key of _meta", 0},
		{"a message without a role", ask("sampling/createMessage", `{"messages":[],"maxTokens":1}`), client.Options{Answers: client.Answers{Sample: sampled(mcp.CreateMessageResult{Content: mcp.SamplingContent{mcp.Text("a")}})}}, `the role ""`, 0},
		{"a message without content", ask("sampling/createMessage", `{"messages":[],"maxTokens":1}`), client.Options{Answers: client.Answers{Sample: sampled(mcp.CreateMessageResult{Role: mcp.RoleAssistant})}}, "without content", 0},
		{"answer against the schema", ask("elicitation/create", `{"message":"?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`),
			client.Options{Answers: client.Answers{Elicit: yes}}, "does not match the form", 0},
		{"content is not an object", ask("elicitation/create", `{"message":"?"}`), client.Options{Answers: client.Answers{Elicit: accept(`[]`)}}, "must be an object", 0},
		{"unknown action", ask("elicitation/create", `{"message":"?"}`), client.Options{Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "maybe"}, nil
		}}}, "unknown action", 0},
		{"panic", ask("elicitation/create", `{"message":"?"}`), client.Options{Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			panic("oh")
		}}}, "panicked: oh", 0},
		{"nothing asked", asks(`{}`), client.Options{}, "without naming any", 0},
		{"state is not a string", asks(`{"requestState":{}}`), client.Options{}, "must be a string", 0},
		{"questions are not an object", asks(`{"inputRequests":[]}`), client.Options{}, "cannot be read", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &script{results: []*mcp.Result{test.result, raw(done)}}
			test.opts.Logger = quiet
			c := dialWire(t, tools(s.serve), test.opts)
			_, err := client.Call[string](context.Background(), c, "t", nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			var answered *mcp.Error
			if errors.As(err, &answered) != (test.code != 0) || answered != nil && answered.Code != test.code {
				t.Errorf("got %v, want code %d", err, test.code)
			}
			if len(s.got) != 1 {
				t.Errorf("the call was made %d times", len(s.got))
			}
		})
	}
}

func TestOnlyThreeMethodsMayAsk(t *testing.T) {
	h := handlers{mcp.MethodComplete: func(context.Context, *mcp.Request) (*mcp.Result, error) {
		return asks(`{"requestState":"x"}`), nil
	}}
	c := dialWire(t, h, client.Options{})
	_, err := c.Complete(context.Background(), mcp.PromptRef("p"), "a", "", nil)
	if err == nil || !strings.Contains(err.Error(), "does not allow it") {
		t.Fatalf("got %v", err)
	}
}

func TestRoundsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{results: []*mcp.Result{asks(`{"requestState":"again"}`)}}
		c := dialWire(t, tools(s.serve), client.Options{Limits: client.Limits{MaxRounds: 5}})
		began := time.Now()
		_, err := client.Call[string](t.Context(), c, "t", nil)
		mustBe(t, err, client.ErrRounds)
		if len(s.got) != 6 {
			t.Errorf("the call was made %d times, want 1 and 5 retries", len(s.got))
		}
		// 100, 200, 400, 800, 1600 ms, each shortened by up to half.
		if took := time.Since(began); took < 1550*time.Millisecond || took > 3100*time.Millisecond {
			t.Errorf("5 retries took %v", took)
		}
	})
}

func TestStateOfOneCallStaysInIt(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]string{}
	hasState := func(name string) bool { return strings.HasSuffix(name, `0"`) || strings.HasSuffix(name, `2"`) }
	h := tools(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		name := param(req, "name")
		seen[name] = append(seen[name], param(req, "requestState")+param(req, "inputResponses"))
		questions := `"inputRequests":{` + name + `:{"method":"roots/list"}}}`
		switch {
		case len(seen[name]) == 1 && hasState(name):
			return asks(`{"requestState":` + name + `,` + questions), nil
		case len(seen[name]) == 1:
			return asks(`{` + questions), nil
		}
		return raw(done), nil
	})
	c := dialWire(t, h, client.Options{Answers: client.Answers{Roots: client.FixedRoots()}})
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			if _, err := client.Call[string](context.Background(), c, fmt.Sprint("tool", i), nil); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if _, err := client.Call[string](context.Background(), c, "without a state, after the others", nil); err != nil {
		t.Error(err)
	}
	for name, got := range seen {
		want := `{` + name + `:{"roots":[]}}`
		if hasState(name) {
			want = name + want
		}
		if len(got) != 2 || got[0] != "" || got[1] != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestUnknownResultType(t *testing.T) {
	h := tools(func(context.Context, *mcp.Request) (*mcp.Result, error) {
		return &mcp.Result{Type: "task", Raw: json.RawMessage(`{"taskId":"1"}`)}, nil
	})
	c := dialWire(t, h, client.Options{})
	if _, err := client.Call[string](context.Background(), c, "t", nil); err == nil || !strings.Contains(err.Error(), `"task"`) {
		t.Errorf("got %v", err)
	}
	known := dialWire(t, h, client.Options{Extensions: []mcp.Extension{{ID: "acme/tasks", ResultTypes: []mcp.ResultType{"task"}}}})
	if _, err := client.Call[string](context.Background(), known, "t", nil); err == nil || !strings.Contains(err.Error(), `"task"`) {
		t.Errorf("as a string: got %v", err)
	}
	res, err := client.Do(context.Background(), known, mcp.Method[mcp.CallToolParams, mcp.Response]{Name: mcp.MethodCallTool}, mcp.CallToolParams{Name: "t"})
	if err != nil || res.Type != "task" {
		t.Errorf("as a response: got %v, %v", res, err)
	}
}
