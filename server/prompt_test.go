package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

type briefArgs struct {
	City  string  `json:"city" doc:"Where" title:"City"`
	Days  int     `json:"days,omitempty"`
	Style *string `json:"style" enum:"short,long"`
}

func get(t testing.TB, h mcp.Handler, prompt, arguments string) string {
	t.Helper()
	return serve(t, h, request(mcp.MethodGetPrompt, fmt.Sprintf(`{"name":%q,"arguments":%s}`, prompt, arguments)))
}

func TestPrompts(t *testing.T) {
	s := newServer()
	server.Prompt(s, "brief", "Writes.", func(_ context.Context, in briefArgs) (string, error) {
		return fmt.Sprint(in.City, in.Days, in.Style != nil), nil
	}, server.PromptOptions{Title: "Brief"})
	server.Prompt(s, "content", "", func(context.Context, struct{}) (mcp.Content, error) { return mcp.Image([]byte{1}, "image/png"), nil })
	server.Prompt(s, "message", "", func(context.Context, struct{}) (mcp.PromptMessage, error) {
		return mcp.PromptMessage{Role: mcp.RoleAssistant, Content: mcp.Text("a")}, nil
	})
	server.Prompt(s, "messages", "", func(context.Context, struct{}) ([]mcp.PromptMessage, error) { return nil, nil })
	server.Prompt(s, "result", "", func(context.Context, struct{}) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "own"}, nil
	})
	server.Prompt(s, "map", "", func(_ context.Context, in map[string]string) (string, error) { return in["a"] + in["b"], nil },
		server.PromptOptions{Arguments: []mcp.PromptArgument{{Name: "a", Required: true}, {Name: "b"}}})
	server.Prompt(s, "fail", "", func(context.Context, struct{}) (string, error) { return "", errors.New("broken") })

	want(t, serve(t, s, request(mcp.MethodListPrompts, `{}`))[:188], `{"prompts":[{"name":"brief","title":"Brief","description":"Writes.","arguments":[{"name":"city","title":"City","description":"Where","required":true},{"name":"days"},{"name":"style"}]},{"n`)
	for _, c := range []struct{ name, arguments, want string }{
		{"brief", `{"city":"Oslo"}`, `{"description":"Writes.","messages":[{"role":"user","content":{"type":"text","text":"Oslo0 false"}}]}`},
		{"brief", `{"city":"Oslo","days":"3","style":"long","unknown":"x"}`, `{"description":"Writes.","messages":[{"role":"user","content":{"type":"text","text":"Oslo3 true"}}]}`},
		{"brief", `{}`, `error -32602: missing required argument "city"`},
		{"brief", `{"city":1}`, `error -32602: argument "city" must be a string`},
		{"brief", `{"city":"x","days":"many"}`, `error -32602: argument "days" must be an integer`},
		{"brief", `{"city":"x","style":"odd"}`, `error -32602: argument "style" must be one of short, long (got "odd")`},
		{"content", `{}`, `{"messages":[{"role":"user","content":{"type":"image","data":"AQ==","mimeType":"image/png"}}]}`},
		{"message", `{}`, `{"messages":[{"role":"assistant","content":{"type":"text","text":"a"}}]}`},
		{"messages", `{}`, `{"messages":[]}`},
		{"result", `{}`, `{"description":"own","messages":[]}`},
		{"map", `{"a":"x","b":"y"}`, `{"messages":[{"role":"user","content":{"type":"text","text":"xy"}}]}`},
		{"map", `{"b":"y"}`, `error -32602: missing required argument "a"`},
		{"fail", `{}`, `error: broken`},
		{"none", `{}`, `error -32602: Unknown prompt: none`},
	} {
		want(t, get(t, s, c.name, c.arguments), c.want)
	}
}

func TestPromptMistakes(t *testing.T) {
	fn := func(context.Context, struct{}) (string, error) { return "", nil }
	for want, make := range map[string]func() (server.Item, error){
		"the name is empty": func() (server.Item, error) { return server.NewPrompt("", "", fn) },
		"cannot return int": func() (server.Item, error) {
			return server.NewPrompt("p", "", func(context.Context, struct{}) (int, error) { return 0, nil })
		},
		"cannot be a list": func() (server.Item, error) {
			return server.NewPrompt("p", "", func(context.Context, struct{ L []string }) (string, error) { return "", nil })
		},
		"describes the arguments of a map": func() (server.Item, error) {
			return server.NewPrompt("p", "", fn, server.PromptOptions{Arguments: []mcp.PromptArgument{{Name: "a"}}})
		},
		`Complete: unknown argument "x"`: func() (server.Item, error) {
			return server.NewPrompt("p", "", fn, server.PromptOptions{Complete: map[string]server.CompleteFunc{"x": nil}})
		},
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestCompletion(t *testing.T) {
	s := newServer(server.Options{})
	many := make([]string, 250)
	for i := range many {
		many[i] = fmt.Sprint("v", i)
	}
	server.Prompt(s, "p", "", func(context.Context, struct {
		Lang   string `json:"lang" enum:"Go,Go-like,Cargo,Rust"`
		Plain  string `json:"plain"`
		Many   string `json:"many"`
		Custom string `json:"custom"`
		Fails  string `json:"fails"`
	}) (string, error) {
		return "", nil
	}, server.PromptOptions{Complete: map[string]server.CompleteFunc{
		"many": func(context.Context, string, map[string]string) ([]string, error) { return many, nil },
		"custom": func(_ context.Context, v string, settled map[string]string) ([]string, error) {
			return []string{v + settled["lang"]}, nil
		},
		"fails": func(context.Context, string, map[string]string) ([]string, error) { return nil, errors.New("broken") },
	}})
	server.Resource(s, "x://{city}", "", func(context.Context, struct {
		City string `uri:"city"`
	}) (string, error) {
		return "", nil
	}, server.ResourceOptions{Complete: map[string]server.CompleteFunc{"city": server.CompleteFrom("Oslo", "Rome")}})
	server.Resource(s, "x://fixed", "", func(context.Context, struct{}) (string, error) { return "", nil })

	prompt := func(argument, value string) string {
		return fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":%q,"value":%q},"context":{"arguments":{"lang":"Go"}}}`, argument, value)
	}
	resource := func(uri, argument string) string {
		return fmt.Sprintf(`{"ref":{"type":"ref/resource","uri":%q},"argument":{"name":%q,"value":"o"}}`, uri, argument)
	}
	for _, c := range []struct{ params, want string }{
		{prompt("lang", "go"), `{"completion":{"values":["Go","Go-like","Cargo"],"total":3}}`},
		{prompt("lang", "x"), `{"completion":{"values":[]}}`},
		{prompt("plain", ""), `{"completion":{"values":[]}}`},
		{prompt("custom", "x"), `{"completion":{"values":["xGo"],"total":1}}`},
		{prompt("fails", ""), `error: broken`},
		{prompt("none", ""), `error -32602: p has no argument "none"`},
		{resource("x://{city}", "city"), `{"completion":{"values":["Oslo","Rome"],"total":2}}`},
		{resource("x://{city}", "town"), `error -32602: x://{city} has no argument "town"`},
		{resource("x://fixed", "a"), `error -32602: x://fixed has no argument "a"`},
		{resource("x://none", "a"), `error -32602: resource not found: x://none`},
		{`{"ref":{"type":"ref/tool","name":"p"},"argument":{"name":"a","value":""}}`, `error -32602: ref.type must be ref/prompt or ref/resource (got "ref/tool")`},
		{`{"ref":1}`, `error -32602: completion/complete: `},
	} {
		got := serve(t, s, request(mcp.MethodComplete, c.params))
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s\n got %s\nwant %s", c.params, got, c.want)
		}
	}
	got := serve(t, s, request(mcp.MethodComplete, prompt("many", "")))
	wantPart(t, got, `"v99"],"total":250,"hasMore":true}`)
}
