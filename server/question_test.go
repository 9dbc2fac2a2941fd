package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

func TestAskRaw(t *testing.T) {
	s := newServer()
	server.Tool(s, "raw", "", func(ctx context.Context, _ anyArgs) (string, error) {
		r, err := server.AskRaw(ctx, "k", mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","enum":[1,2]}}}`)})
		if err != nil {
			return "", err
		}
		return string(r.Action) + string(r.Content), nil
	})
	for answer, expected := range map[string]string{
		accept(`{"n":2}`):      textResult(`accept{"n":2}`),
		`{"action":"accept"}`:  textResult(`accept{}`),
		`{"action":"decline"}`: textResult(`decline`),
		accept(`{"n":3}`):      "too many rounds",
	} {
		got, _ := ask(t, s, "raw", map[string]string{"k": answer})
		want(t, got, expected)
	}
}

func TestAskWithSchema(t *testing.T) {
	s := newServer()
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		answer, err := server.AskRaw(ctx, "k", mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","minLength":2}}}`)})
		if err != nil {
			return "", err
		}
		return string(answer.Content), nil
	})
	got, _ := ask(t, s, "t", map[string]string{"k": accept(`{"a":"xy"}`)})
	want(t, got, textResult(`{"a":"xy"}`))
	got, _ = ask(t, s, "t", map[string]string{"k": accept(`{"a":"x"}`)})
	want(t, got, "too many rounds")
}

// An elicitation has a mode and a message, however it is made.
func TestElicitationsHaveModeAndMessage(t *testing.T) {
	s := newServer()
	server.Tool(s, "t", "", func(ctx context.Context, in struct {
		Message string `json:"message"`
	}) (string, error) {
		var name string
		return "", server.AskAll(ctx, server.FormQuestion("form", in.Message, &name), server.URLQuestion("url", in.Message, "https://x/y", nil))
	})
	server.Tool(s, "raw", "", func(ctx context.Context, in struct {
		Message string `json:"message"`
	}) (string, error) {
		_, err := server.AskRaw(ctx, "raw", mcp.ElicitParams{Message: in.Message, RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		return "", err
	})
	for _, message := range []string{"Who?", ""} {
		for tool, modes := range map[string]map[string]string{"t": {"form": "form", "url": "url"}, "raw": {"raw": ""}} { // no mode means a form
			res, err := s.ServeMCP(t.Context(), request(mcp.MethodCallTool, fmt.Sprintf(`{"name":%q,"arguments":{"message":%q}}`, tool, message)))
			if err != nil {
				t.Fatal(err)
			}
			for key, q := range res.Value.(*mcp.InputRequiredResult).InputRequests {
				mode, _ := rawjson.String(rawjson.Lookup(q.Params, "mode"))
				link, _ := rawjson.String(rawjson.Lookup(q.Params, "url"))
				if got, ok := rawjson.String(rawjson.Lookup(q.Params, "message")); !ok || got != message || mode != modes[key] || (link == "https://x/y") != (mode == "url") {
					t.Errorf("%s: %s", key, q.Params)
				}
			}
		}
	}
}

func TestAskMistakes(t *testing.T) {
	s := newServer()
	var kept context.Context
	mistakes := map[string]func(ctx context.Context) error{
		"Inner": func(ctx context.Context) error {
			_, err := server.Ask[struct{ Inner struct{ X int } }](ctx, "k", "?")
			return err
		},
		"a question needs a key": func(ctx context.Context) error { _, err := server.Ask[string](ctx, "", "?"); return err },
		"is not a URL":           func(ctx context.Context) error { return server.AskURL(ctx, "k", "?", "javascript:x", nil) },
		`url: \"not a url\" is not an absolute`: func(ctx context.Context) error {
			_, err := server.AskRaw(ctx, "k", mcp.ElicitParams{Mode: mcp.ElicitURL, Message: "?", URL: "not a url"})
			return err
		},
		"MaxTokens must be": func(ctx context.Context) error {
			_, err := server.Sample(ctx, "k", mcp.CreateMessageParams{})
			return err
		},
		"must be an object with": func(ctx context.Context) error {
			_, err := server.AskRaw(ctx, "k", mcp.ElicitParams{RequestedSchema: json.RawMessage(`{"type":"object"}`)})
			return err
		},
		"question k: schema: ": func(ctx context.Context) error { // without a schema
			_, err := server.AskRaw(ctx, "k", mcp.ElicitParams{Message: "?"})
			return err
		},
		"o: a form can ask for": func(ctx context.Context) error {
			_, err := server.AskRaw(ctx, "k", mcp.ElicitParams{RequestedSchema: json.RawMessage(`{"type":"object","properties":{"o":{"type":"object"}}}`)})
			return err
		},
		"objects: a form can ask for": func(ctx context.Context) error {
			_, err := server.AskRaw(ctx, "k", mcp.ElicitParams{RequestedSchema: json.RawMessage(`{"type":"object","properties":{"objects":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}}}}}}`)})
			return err
		},
		"strings: a form can ask for": func(ctx context.Context) error { // strings without an enum are not a choice
			_, err := server.AskRaw(ctx, "k", mcp.ElicitParams{RequestedSchema: json.RawMessage(`{"type":"object","properties":{"strings":{"type":"array","items":{"type":"string"}}}}`)})
			return err
		},
		"numbers: a form can ask for": func(ctx context.Context) error {
			_, err := server.AskRaw(ctx, "k", mcp.ElicitParams{RequestedSchema: json.RawMessage(`{"type":"object","properties":{"numbers":{"type":"array","items":{"enum":[1,2]}}}}`)})
			return err
		},
		"no extension of the serve": func(ctx context.Context) error {
			return server.AskAll(ctx, server.MethodQuestion("k", mcp.Method[mcp.None, mcp.None]{Name: "x/y"}, mcp.None{}, new(mcp.None)))
		},
		"used for two questions": func(ctx context.Context) error {
			a, b := "", ""
			return server.AskAll(ctx, server.FormQuestion("k", "A?", &a), server.FormQuestion("k", "B?", &b))
		},
	}
	server.Tool(s, "t", "", func(ctx context.Context, in struct {
		Mistake string `json:"mistake"`
	}) (string, error) {
		kept = ctx
		return "", mistakes[in.Mistake](ctx)
	})
	for mistake := range mistakes {
		got := call(t, s, "t", fmt.Sprintf(`{"mistake":%q}`, mistake))
		if !strings.Contains(got, mistake) || !strings.Contains(got, "isError") {
			t.Errorf("%s: %s", mistake, got)
		}
	}
	for _, ctx := range []context.Context{t.Context(), kept} {
		if _, err := server.Ask[string](ctx, "k", "?"); err == nil || !strings.Contains(err.Error(), "can ask, before they return") {
			t.Errorf("outside of a handler: %v", err)
		}
	}
}

func TestExtensionQuestion(t *testing.T) {
	s := newServer(server.Options{Extensions: []mcp.Extension{{ID: "x/e", InputRequests: map[string]mcp.ClientCapabilities{
		"x/ask": {Extensions: map[string]json.RawMessage{"x/e": json.RawMessage("{}")}},
	}}}})
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		var answer json.RawMessage
		err := server.AskAll(ctx, server.MethodQuestion("k", mcp.Method[json.RawMessage, json.RawMessage]{Name: "x/ask"}, json.RawMessage(`{"a":1}`), &answer))
		return string(answer), err
	})
	_, err := s.ServeMCP(t.Context(), request(mcp.MethodCallTool, `{"name":"t"}`))
	if e := (*mcp.CapabilityError)(nil); !errors.As(err, &e) || e.Required.Extensions["x/e"] == nil {
		t.Errorf("got %v", err)
	}
	a := &asker{t: t, h: s, req: request(mcp.MethodCallTool, `{"name":"t"}`), answer: func(string, mcp.InputRequest) string { return `{"any":"thing"}` }}
	a.req.ClientCapabilities = json.RawMessage(`{"extensions":{"x/e":{}}}`)
	want(t, a.run(), textResult(`{"any":"thing"}`))
}

func TestMethodQuestion(t *testing.T) {
	type params struct {
		A int `json:"a"`
	}
	type result struct {
		B string `json:"b"`
	}
	ask := mcp.Method[params, result]{Name: "x/ask"}
	s := newServer(server.Options{Extensions: []mcp.Extension{{ID: "x/e", InputRequests: map[string]mcp.ClientCapabilities{ask.Name: {}}}}})
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		var answer result
		err := server.AskAll(ctx, server.MethodQuestion("k", ask, params{1}, &answer))
		return answer.B, err
	})
	for answer, expected := range map[string]string{
		`{"b":"yes"}`: textResult("yes"), `{"b":1}`: "too many rounds", `[]`: "too many rounds", ``: "too many rounds",
	} {
		a := &asker{t: t, h: s, req: request(mcp.MethodCallTool, `{"name":"t"}`), answer: func(_ string, q mcp.InputRequest) string {
			want(t, q.Method+string(q.Params), `x/ask{"a":1}`)
			return answer
		}}
		want(t, a.run(), expected)
	}
}

// TestAskSeveralOfAnOldClient asks for a choice of several, and for fields with defaults, where the
// protocol has neither.
func TestAskSeveralOfAnOldClient(t *testing.T) {
	type form struct {
		Colors []string `json:"colors" enum:"red,green,blue" minItems:"2"`
		Name   string   `json:"name" default:"Ann"`
	}
	for revision, answer := range map[mcp.Revision]string{
		mcp.Revision20250618: `{"colors.red":true,"colors.green":false,"colors.blue":true}`,
		mcp.Revision20251125: `{"colors":["red","blue"],"name":"Ann"}`,
		mcp.LatestRevision:   `{"colors":["red","blue"],"name":"Ann"}`,
	} {
		s := newServer()
		server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
			f, err := server.Ask[form](ctx, "k", "?")
			return fmt.Sprint(f), err
		})
		req := request(mcp.MethodCallTool, `{"name":"t"}`)
		req.Revision = revision
		a := &asker{t: t, h: s, req: req, answer: func(_ string, q mcp.InputRequest) string {
			seen := string(mcpwire.AdaptParams(revision, q.Method, q.Params))
			if several := strings.Contains(seen, `"array"`); several == (revision == mcp.Revision20250618) {
				t.Errorf("%s: %s", revision, seen)
			}
			return accept(answer)
		}}
		want(t, a.run(), textResult("{[red blue] Ann}"))
		want(t, fmt.Sprint(a.rounds), "[k]")
	}
}
