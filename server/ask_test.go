package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// asker is a client's side of a call that asks: it retries with what answer returns, nil for no
// answer to a question.
type asker struct {
	t      testing.TB
	h      mcp.Handler
	req    *mcp.Request
	answer func(key string, q mcp.InputRequest) string
	rounds []string // the keys asked in each round
	states []string
}

const maxRounds = 16

// run calls until there is a result, or the rounds are too many. Parameters are re-encoded, as
// clients do.
func (a *asker) run() string {
	a.t.Helper()
	req := *a.req
	for range maxRounds {
		res, err := a.h.ServeMCP(a.t.Context(), &req)
		if err != nil || res.Type == "" {
			return unescapeString(a.t, res, err)
		}
		asked := a.asked(res)
		responses := map[string]json.RawMessage{}
		for key, q := range asked.InputRequests {
			if answer := a.answer(key, q); answer != "" {
				responses[key] = json.RawMessage(answer)
			}
		}
		req.Params = retry(a.t, a.req.Params, responses, *asked.RequestState)
	}
	return "too many rounds"
}

func (a *asker) asked(res *mcp.Result) *mcp.InputRequiredResult {
	a.t.Helper()
	if res.Type != mcp.ResultInputRequired || res.Cache != (mcp.Cache{}) {
		a.t.Errorf("type %q, cache %v", res.Type, res.Cache)
	}
	asked := res.Value.(*mcp.InputRequiredResult)
	a.rounds = append(a.rounds, strings.Join(slices.Sorted(maps.Keys(asked.InputRequests)), "+"))
	a.states = append(a.states, *asked.RequestState)
	return asked
}

// retry returns params with answers and state, re-encoded in another order.
func retry(t testing.TB, params json.RawMessage, responses map[string]json.RawMessage, state string) json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(params, &all); err != nil {
		t.Fatal(err)
	}
	if responses != nil {
		raw, err := json.Marshal(responses)
		if err != nil {
			t.Fatal(err)
		}
		all["inputResponses"] = raw
	}
	if state != "" {
		all["requestState"] = json.RawMessage(fmt.Sprintf("%q", state))
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// ask calls a tool, answering each key with the given JSON.
func ask(t testing.TB, h mcp.Handler, tool string, answers map[string]string) (result string, a *asker) {
	t.Helper()
	a = &asker{t: t, h: h, req: request(mcp.MethodCallTool, fmt.Sprintf(`{"name":%q,"arguments":{"b":1,"a":[1.0,"\u0041"]}}`, tool))}
	a.answer = func(key string, _ mcp.InputRequest) string { return answers[key] }
	return a.run(), a
}

func accept(content string) string { return `{"action":"accept","content":` + content + `}` }

func textResult(text string) string {
	return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text)
}

type anyArgs = map[string]any

func TestAsk(t *testing.T) {
	s := newServer()
	type trip struct {
		City string `json:"city" doc:"Where to" minLength:"2"`
		Days int    `json:"days,omitzero" default:"3"`
	}
	server.Tool(s, "book", "", func(ctx context.Context, _ anyArgs) (string, error) {
		to, err := server.Ask[trip](ctx, "trip", "Where to?")
		if err != nil {
			return "", err
		}
		sure, err := server.Ask[bool](ctx, "sure", "Sure about "+to.City+"?")
		return fmt.Sprint(to, sure), err
	})
	res, err := s.ServeMCP(t.Context(), request(mcp.MethodCallTool, `{"name":"book"}`))
	if err != nil {
		t.Fatal(err)
	}
	asked := res.Value.(*mcp.InputRequiredResult)
	want(t, string(asked.InputRequests["trip"].Params), `{"mode":"form","message":"Where to?","requestedSchema":{"type":"object","properties":{"city":{"type":"string","description":"Where to","minLength":2},"days":{"type":"integer","default":3}},"required":["city"]}}`)

	got, a := ask(t, s, "book", map[string]string{"trip": accept(`{"city":"Oslo","days":2}`), "sure": accept(`{"value":true}`)})
	want(t, got, textResult("{Oslo 2} true"))
	want(t, fmt.Sprint(a.rounds), "[trip sure]")
	if a.states[0] == a.states[1] {
		t.Error("the state stays the same")
	}
}

func TestAskSingle(t *testing.T) {
	s := newServer()
	var params json.RawMessage
	server.Tool(s, "name", "", func(ctx context.Context, _ anyArgs) (string, error) {
		return server.Ask[string](ctx, "user_name", "What is your name?")
	})
	a := &asker{t: t, h: s, req: request(mcp.MethodCallTool, `{"name":"name"}`)}
	a.answer = func(_ string, q mcp.InputRequest) string {
		params = q.Params
		return accept(`{"value":"Ann"}`)
	}
	want(t, a.run(), textResult("Ann"))
	want(t, string(params), `{"mode":"form","message":"What is your name?","requestedSchema":{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}}`)
}

func TestAskOutcomes(t *testing.T) {
	s := newServer()
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		n, err := server.Ask[int](ctx, "n", "How many?")
		switch {
		case errors.Is(err, server.ErrDeclined):
			return "declined", nil
		case errors.Is(err, server.ErrCancelled):
			return "cancelled", nil
		}
		return fmt.Sprint(n), err
	})
	for answer, expected := range map[string]string{
		accept(`{"value":3}`):       textResult("3"),
		accept(`{"value":3,"x":1}`): textResult("3"),
		`{"action":"decline"}`:      textResult("declined"),
		`{"action":"cancel"}`:       textResult("cancelled"),
		accept(`{"value":"three"}`): "too many rounds",
		accept(`{"value":1.5}`):     "too many rounds",
		accept(`{}`):                "too many rounds",
		`{"action":"accept"}`:       "too many rounds",
		`{"action":"maybe"}`:        "too many rounds",
		`{}`:                        "too many rounds",
		`null`:                      "too many rounds",
		`12345`:                     "too many rounds",
		`[]`:                        "too many rounds",
		``:                          "too many rounds",
	} {
		if got, _ := ask(t, s, "t", map[string]string{"n": answer, "other": accept(`{"value":9}`)}); got != expected {
			t.Errorf("%s: %s", answer, got)
		}
	}

	server.Tool(s, "up", "", func(ctx context.Context, _ anyArgs) (string, error) {
		return server.Ask[string](ctx, "k", "?")
	})
	got, _ := ask(t, s, "up", map[string]string{"k": `{"action":"decline"}`})
	want(t, got, `{"content":[{"type":"text","text":"k: the user declined"}],"isError":true}`)
}

// TestSwallowedQuestion completes with nothing before the answer is there, whatever the handler
// makes of the error.
func TestSwallowedQuestion(t *testing.T) {
	s := newServer()
	server.Tool(s, "zero", "", func(ctx context.Context, _ anyArgs) (string, error) {
		n, _ := server.Ask[int](ctx, "n", "?")
		return fmt.Sprint(n), nil
	})
	server.Tool(s, "other", "", func(ctx context.Context, _ anyArgs) (string, error) {
		if n, err := server.Ask[int](ctx, "n", "?"); err == nil {
			return fmt.Sprint(n), nil
		}
		return "", mcp.InvalidParams("something else")
	})
	for _, tool := range []string{"zero", "other"} {
		got, a := ask(t, s, tool, map[string]string{"n": accept(`{"value":7}`)})
		want(t, got, textResult("7"))
		want(t, fmt.Sprint(a.rounds), "[n]")
	}
}

func TestAskAll(t *testing.T) {
	s := newServer()
	server.Tool(s, "all", "", func(ctx context.Context, _ anyArgs) (string, error) {
		var name string
		var roots []mcp.Root
		var said *mcp.CreateMessageResult
		err := server.AskAll(ctx,
			server.FormQuestion("user_name", "Name?", &name),
			server.SampleQuestion("greeting", sampling("Greet."), &said),
			server.RootsQuestion("client_roots", &roots))
		if err != nil {
			return "", err
		}
		return name + said.Text() + roots[0].URI, nil
	})
	answers := map[string]string{
		"user_name":    accept(`{"value":"Ann"}`),
		"greeting":     `{"role":"assistant","content":{"type":"text","text":" hi "},"model":"m"}`,
		"client_roots": `{"roots":[{"uri":"file:///a"}]}`,
	}
	got, a := ask(t, s, "all", answers)
	want(t, got, textResult("Ann hi file:///a"))
	want(t, fmt.Sprint(a.rounds), "[client_roots+greeting+user_name]")

	// A missing or wrong answer is asked for again, and nothing else.
	asks := map[string]int{}
	a = &asker{t: t, h: s, req: request(mcp.MethodCallTool, `{"name":"all"}`)}
	a.answer = func(key string, _ mcp.InputRequest) string {
		if asks[key]++; asks[key] == 1 && key == "greeting" {
			return `{"role":"assistant"}`
		}
		if asks[key] == 1 && key == "client_roots" {
			return ""
		}
		return answers[key]
	}
	want(t, a.run(), textResult("Ann hi file:///a"))
	want(t, fmt.Sprint(a.rounds), "[client_roots+greeting+user_name client_roots+greeting]")

	answers["user_name"] = `{"action":"decline"}`
	delete(answers, "greeting")
	got, _ = ask(t, s, "all", answers)
	want(t, got, `{"content":[{"type":"text","text":"user_name: the user declined"}],"isError":true}`)
}

func sampling(text string) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{MaxTokens: 100, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text(text)}}}}
}

func TestPromptsAndResourcesAsk(t *testing.T) {
	s := newServer()
	type in struct {
		A string `json:"a" uri:"a"`
	}
	fn := func(ctx context.Context, in in) (string, error) {
		name, err := server.Ask[string](ctx, "name", "Name?")
		return in.A + name, err
	}
	server.Prompt(s, "p", "", fn)
	server.Resource(s, "x://{a}", "", fn)
	answer := func(string, mcp.InputRequest) string { return accept(`{"value":"Ann"}`) }
	p := &asker{t: t, h: s, req: request(mcp.MethodGetPrompt, `{"name":"p","arguments":{"a":"b"}}`), answer: answer}
	wantPart(t, p.run(), `"bAnn"`)
	r := &asker{t: t, h: s, req: request(mcp.MethodReadResource, `{"uri":"x://b"}`), answer: answer}
	wantPart(t, r.run(), `"bAnn"`)
}

// TestChangedQuestion asks again if the question differs from the answered one.
func TestChangedQuestion(t *testing.T) {
	s := newServer()
	price := 0
	server.Tool(s, "buy", "", func(ctx context.Context, _ anyArgs) (string, error) {
		if price < 3 {
			price++
		}
		yes, err := server.Ask[bool](ctx, "sure", fmt.Sprintf("Pay %d?", price))
		return fmt.Sprint(yes, price), err
	})
	got, a := ask(t, s, "buy", map[string]string{"sure": accept(`{"value":true}`)})
	want(t, got, textResult("true 3"))
	want(t, fmt.Sprint(a.rounds), "[sure sure sure]")
}

// TestAnsweredQuestionChanges does so for a question that an earlier round settled.
func TestAnsweredQuestionChanges(t *testing.T) {
	s := newServer()
	round := 0
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		round++
		first, err := server.Ask[string](ctx, "first", fmt.Sprint("First? ", round >= 3))
		if err != nil {
			return "", err
		}
		second, err := server.Ask[string](ctx, "second", "Second?")
		return first + second, err
	})
	got, a := ask(t, s, "t", map[string]string{"first": accept(`{"value":"a"}`), "second": accept(`{"value":"b"}`)})
	want(t, got, textResult("ab"))
	want(t, fmt.Sprint(a.rounds), "[first second first]") // the second answer is kept meanwhile
}

func TestAnswersWithoutState(t *testing.T) {
	s := newServer()
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		a, err := server.Ask[string](ctx, "a", "A?")
		if err != nil {
			return "", err
		}
		b, err := server.Ask[string](ctx, "b", "B?")
		return a + b, err
	})
	params := func(responses string) string { return `{"name":"t","inputResponses":` + responses + `}` }
	a, b := `"a":`+accept(`{"value":"x"}`), `"b":`+accept(`{"value":"y"}`)
	want(t, serve(t, s, request(mcp.MethodCallTool, params(`{`+a+`,`+b+`,"c":1}`))), textResult("xy"))

	// The missing answer is asked for, and the given one stays in the state.
	session := &asker{t: t, h: s, req: request(mcp.MethodCallTool, `{"name":"t"}`), answer: func(string, mcp.InputRequest) string { return accept(`{"value":"y"}`) }}
	first, err := s.ServeMCP(t.Context(), request(mcp.MethodCallTool, params(`{`+a+`}`)))
	if err != nil {
		t.Fatal(err)
	}
	asked := session.asked(first)
	want(t, fmt.Sprint(session.rounds), "[b]")
	req := request(mcp.MethodCallTool, "")
	req.Params = retry(t, json.RawMessage(`{"name":"t"}`), map[string]json.RawMessage{"b": json.RawMessage(accept(`{"value":"y"}`))}, *asked.RequestState)
	want(t, serve(t, s, req), textResult("xy"))

	// With state, an answer to a question that was not asked is ignored.
	req.Params = retry(t, json.RawMessage(`{"name":"t"}`), map[string]json.RawMessage{
		"a": json.RawMessage(accept(`{"value":"forged"}`)), "b": json.RawMessage(accept(`{"value":"y"}`)),
	}, *asked.RequestState)
	want(t, serve(t, s, req), textResult("xy"))
}

func TestAskCapabilities(t *testing.T) {
	s := newServer()
	questions := map[string]func(context.Context) error{
		"form":     func(ctx context.Context) error { _, err := server.Ask[string](ctx, "k", "?"); return err },
		"url":      func(ctx context.Context) error { return server.AskURL(ctx, "k", "?", "https://x/y", nil) },
		"sampling": func(ctx context.Context) error { _, err := server.Sample(ctx, "k", sampling("?")); return err },
		"tools": func(ctx context.Context) error {
			p := sampling("?")
			p.Tools = []mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}}
			_, err := server.Sample(ctx, "k", p)
			return err
		},
		"roots": func(ctx context.Context) error { _, err := server.Roots(ctx); return err },
		"both": func(ctx context.Context) error {
			var a, b string
			var roots []mcp.Root
			return server.AskAll(ctx, server.FormQuestion("a", "?", &a), server.RootsQuestion("r", &roots), server.FormQuestion("b", "?", &b))
		},
	}
	server.Tool(s, "t", "", func(ctx context.Context, in struct {
		Kind string `json:"kind"`
	}) (string, error) {
		return "", questions[in.Kind](ctx)
	})
	for _, c := range []struct{ kind, declared, missing string }{
		{"form", `{}`, `{"elicitation":{}}`},
		{"form", `{"elicitation":{}}`, ""},
		{"form", `{"elicitation":{"form":{}}}`, ""},
		{"form", `{"elicitation":{"url":{}}}`, `{"elicitation":{}}`},
		{"url", `{"elicitation":{}}`, `{"elicitation":{"url":{}}}`},
		{"url", `{"elicitation":{"url":{}}}`, ""},
		{"sampling", `{"roots":{}}`, `{"sampling":{}}`},
		{"sampling", `{"sampling":{}}`, ""},
		{"tools", `{"sampling":{}}`, `{"sampling":{"tools":{}}}`},
		{"tools", `{"sampling":{"tools":{}}}`, ""},
		{"roots", ``, `{"roots":{}}`},
		{"roots", `{"roots":{}}`, ""},
		{"both", `{"elicitation":{}}`, `{"roots":{}}`},
	} {
		req := request(mcp.MethodCallTool, fmt.Sprintf(`{"name":"t","arguments":{"kind":%q}}`, c.kind))
		req.ClientCapabilities = json.RawMessage(c.declared)
		res, err := s.ServeMCP(t.Context(), req)
		missing := ""
		if e := (*mcp.CapabilityError)(nil); errors.As(err, &e) {
			raw, _ := json.Marshal(e.Required)
			missing = string(raw)
		} else if err != nil || res.Type != mcp.ResultInputRequired {
			t.Errorf("%s of %s: %v, %v", c.kind, c.declared, res, err)
		}
		if missing != c.missing {
			t.Errorf("%s of %s misses %s", c.kind, c.declared, missing)
		}
	}
}
