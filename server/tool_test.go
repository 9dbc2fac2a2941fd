package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

type greeting struct {
	Message string `json:"message" doc:"What to say" minLength:"1"`
}

type point struct {
	X int      `json:"x" maximum:"9"`
	L []string `json:"l"`
}

func TestToolOutput(t *testing.T) {
	s := newServer()
	server.Tool(s, "string", "", func(_ context.Context, in greeting) (string, error) { return in.Message + "!", nil })
	server.Tool(s, "nothing", "", none)
	server.Tool(s, "content", "", func(context.Context, struct{}) (mcp.Content, error) {
		return mcp.Image([]byte("png"), "image/png"), nil
	})
	server.Tool(s, "contents", "", func(context.Context, struct{}) ([]mcp.Content, error) {
		return []mcp.Content{mcp.Text("a"), mcp.Text("b")}, nil
	})
	server.Tool(s, "result", "", func(context.Context, struct{}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("x")}, IsError: true}, nil
	})
	server.Tool(s, "nil_result", "", func(context.Context, struct{}) (*mcp.CallToolResult, error) { return nil, nil })
	server.Tool(s, "struct", "", func(context.Context, struct{}) (point, error) { return point{X: 1}, nil })
	server.Tool(s, "slice", "", func(context.Context, struct{}) ([]int, error) { return nil, nil })
	server.Tool(s, "number", "", func(context.Context, struct{}) (float64, error) { return 1.5, nil })
	server.Tool(s, "map", "", func(context.Context, struct{}) (map[string]int, error) { return map[string]int{"b": 1, "a": 2}, nil })
	server.Tool(s, "any", "", func(_ context.Context, in struct {
		Kind string `json:"kind"`
	}) (any, error) {
		return map[string]any{"nil": nil, "text": "t", "content": mcp.Text("c"), "json": []int{1}, "result": &mcp.CallToolResult{IsError: true}}[in.Kind], nil
	})
	for _, c := range []struct{ tool, arguments, want string }{
		{"string", `{"message":"hi"}`, `{"content":[{"type":"text","text":"hi!"}]}`},
		{"nothing", `{}`, `{"content":[]}`},
		{"content", `{}`, `{"content":[{"type":"image","data":"cG5n","mimeType":"image/png"}]}`},
		{"contents", `{}`, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
		{"result", `{}`, `{"content":[{"type":"text","text":"x"}],"isError":true}`},
		{"nil_result", `{}`, `{"content":[]}`},
		{"struct", `{}`, `{"content":[{"type":"text","text":"{\"x\":1,\"l\":[]}"}],"structuredContent":{"x":1,"l":[]}}`},
		{"slice", `{}`, `{"content":[{"type":"text","text":"[]"}],"structuredContent":[]}`},
		{"number", `{}`, `{"content":[{"type":"text","text":"1.5"}],"structuredContent":1.5}`},
		{"map", `{}`, `{"content":[{"type":"text","text":"{\"a\":2,\"b\":1}"}],"structuredContent":{"a":2,"b":1}}`},
		{"any", `{"kind":"nil"}`, `{"content":[]}`},
		{"any", `{"kind":"text"}`, `{"content":[{"type":"text","text":"t"}]}`},
		{"any", `{"kind":"content"}`, `{"content":[{"type":"text","text":"c"}]}`},
		{"any", `{"kind":"json"}`, `{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}`},
		{"any", `{"kind":"result"}`, `{"content":[],"isError":true}`},
	} {
		t.Run(c.tool, func(t *testing.T) { want(t, call(t, s, c.tool, c.arguments), c.want) })
	}
	for _, params := range []string{`{"name":"nothing"}`, `{"name":"nothing","arguments":null}`} {
		want(t, serve(t, s, request(mcp.MethodCallTool, params)), `{"content":[]}`)
	}
}

func TestToolErrors(t *testing.T) {
	s := newServer()
	server.Tool(s, "fail", "", func(_ context.Context, in struct {
		How string `json:"how" enum:"plain,protocol,wrapped,capability,context"`
	}) (string, error) {
		return "", map[string]error{
			"plain":      errors.New("disk full"),
			"protocol":   mcp.InvalidParams("no"),
			"wrapped":    fmt.Errorf("while: %w", mcp.Errorf(-7, "inner")),
			"capability": fmt.Errorf("while: %w", &mcp.CapabilityError{Required: mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}}),
			"context":    context.DeadlineExceeded,
		}[in.How]
	})
	for how, expected := range map[string]string{
		"plain":      `{"content":[{"type":"text","text":"disk full"}],"isError":true}`,
		"protocol":   `error -32602: no`,
		"wrapped":    `error -7: inner`,
		"capability": `error: the client does not support questions for its folders (roots)`,
		"context":    `{"content":[{"type":"text","text":"context deadline exceeded"}],"isError":true}`,
	} {
		want(t, call(t, s, "fail", fmt.Sprintf(`{"how":%q}`, how)), expected)
	}
	wantPart(t, call(t, s, "fail", `{"how":"other"}`), `{"content":[{"type":"text","text":"invalid arguments: /how: must be one of `)
	want(t, call(t, s, "none", `{}`), "error -32602: Unknown tool: none")
	for params, expected := range map[string]string{
		`{}`:                               "tools/call needs params.name, a string",
		`{"name":1}`:                       "tools/call needs params.name, a string",
		`{"name":"fail","name":"x"}`:       `params has two members "name"`,
		`{"name":"fail","arguments":[]}`:   "params.arguments must be an object",
		`{"name":"fail","requestState":1}`: "requestState must be a string",
		`{"name":"fail","inputResponses":"x","arguments":{"how":"plain"}}`: "params.inputResponses must be an object",
	} {
		want(t, serve(t, s, request(mcp.MethodCallTool, params)), "error -32602: "+expected)
	}
	res, err := s.ServeMCP(t.Context(), request(mcp.MethodCallTool, `{"name":"fail","arguments":{}}`))
	wantPart(t, unescapeString(t, res, err), `"isError":true`)
}

func TestCancelledCall(t *testing.T) {
	s := newServer()
	reason := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	server.Tool(s, "wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		cancel(reason)
		<-ctx.Done()
		return "", ctx.Err()
	})
	if _, err := s.ServeMCP(ctx, request(mcp.MethodCallTool, `{"name":"wait"}`)); err != reason {
		t.Errorf("got %v", err)
	}
}

func TestRedactedErrors(t *testing.T) {
	var log strings.Builder
	s := newServer(server.Options{RedactErrors: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	server.Tool(s, "fail", "", func(context.Context, struct{}) (string, error) { return "", errors.New("secret") })
	want(t, call(t, s, "fail", `{}`), `{"content":[{"type":"text","text":"the tool failed"}],"isError":true}`)
	wantPart(t, log.String(), "secret")
}

func TestInvalidOutput(t *testing.T) {
	var log strings.Builder
	s := newServer(server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	server.Tool(s, "struct", "", func(context.Context, struct{}) (point, error) { return point{X: 10}, nil })
	server.Tool(s, "unchecked", "", func(context.Context, struct{}) (any, error) { return point{X: 10}, nil })
	server.Tool(s, "promised", "", func(context.Context, struct{}) (string, error) { return "x", nil },
		server.ToolOptions{OutputSchema: json.RawMessage(`{"type":"object"}`)})
	server.Tool(s, "nil", "", func(context.Context, struct{}) (*point, error) { return nil, nil })
	server.Tool(s, "unchecked-nil", "", func(context.Context, struct{}) (any, error) { return (*point)(nil), nil })
	server.Tool(s, "failed", "", func(context.Context, struct{}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true}, nil
	}, server.ToolOptions{OutputSchema: json.RawMessage(`{"type":"object"}`)})
	server.RawTool(s, mcp.Tool{Name: "broken", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"a":`)}, nil
	})
	fault := `{"content":[{"type":"text","text":"the tool's output was invalid: this is a fault of the server, not of the arguments"}],"isError":true}`
	want(t, call(t, s, "struct", `{}`), fault)
	wantPart(t, log.String(), "must be at most 9")
	want(t, call(t, s, "promised", `{}`), fault)
	want(t, call(t, s, "nil", `{}`), fault)
	wantPart(t, log.String(), "the handler returned a nil *server_test.point, which its output schema does not allow")
	wantPart(t, call(t, s, "unchecked-nil", `{}`), `"text":"null"`)
	wantPart(t, call(t, s, "unchecked", `{}`), `"structuredContent":{"x":10,"l":[]}`)
	want(t, call(t, s, "failed", `{}`), `{"content":[],"isError":true}`)
	want(t, call(t, s, "broken", `{}`), fault)
	wantPart(t, log.String(), "structuredContent: invalid JSON at byte 5")
}

func TestToolDescription(t *testing.T) {
	s := newServer()
	server.Tool(s, "greet", "Greets.", func(context.Context, greeting) (point, error) { return point{}, nil },
		server.ToolOptions{Title: "Greet", Annotations: mcp.ReadOnly, Meta: mcp.Meta{"k": "v"}, Icons: []mcp.Icon{{Src: "https://x/i.png"}}})
	server.RawTool(s, mcp.Tool{Name: "raw", InputSchema: json.RawMessage(`{ "type" : "object" }`)}, nil)
	want(t, serve(t, s, request(mcp.MethodListTools, `{}`)), `{"tools":[{"name":"greet","title":"Greet","description":"Greets.","icons":[{"src":"https://x/i.png"}],`+
		`"inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"What to say","minLength":1}},"required":["message"],"additionalProperties":false},`+
		`"outputSchema":{"type":"object","properties":{"x":{"type":"integer","maximum":9},"l":{"type":"array","items":{"type":"string"}}},"required":["x","l"]},`+
		`"annotations":{"readOnlyHint":true},"_meta":{"k":"v"}},{"name":"raw","inputSchema":{"type":"object"}}]}`)
}

func TestToolMistakes(t *testing.T) {
	raw := func(tool mcp.Tool) func() (server.Item, error) {
		return func() (server.Item, error) { return server.NewRawTool(tool, nil) }
	}
	object := json.RawMessage(`{"type":"object"}`)
	for name, c := range map[string]struct {
		make func() (server.Item, error)
		want string
	}{
		"empty name": {func() (server.Item, error) { return server.NewTool("", "", none) }, "1 to 128 characters"},
		"name":       {func() (server.Item, error) { return server.NewTool("a b", "", none) }, "1 to 128 characters"},
		"long name":  {raw(mcp.Tool{Name: strings.Repeat("x", 129), InputSchema: object}), "1 to 128 characters"},
		"input type": {func() (server.Item, error) {
			return server.NewTool("t", "", func(context.Context, string) (string, error) { return "", nil })
		}, "must have type object"},
		"input field": {func() (server.Item, error) {
			return server.NewTool("t", "", func(context.Context, struct{ F func() }) (string, error) { return "", nil })
		}, "F"},
		"output field": {func() (server.Item, error) {
			return server.NewTool("t", "", func(context.Context, struct{}) (struct{ C chan int }, error) { return struct{ C chan int }{}, nil })
		}, "C"},
		"no schema":     {raw(mcp.Tool{Name: "t"}), "input"},
		"dialect":       {raw(mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"$schema":"https://x/y","type":"object"}`)}), "https://x/y"},
		"output schema": {raw(mcp.Tool{Name: "t", InputSchema: object, OutputSchema: json.RawMessage(`{"type":1}`)}), "output"},
		"header":        {raw(mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}`)}), "x-mcp-header"},
	} {
		if _, err := c.make(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), `tool "a b"`) {
			t.Errorf("panicked with %v", p)
		}
	}()
	server.Tool(newServer(), "a b", "", none)
}

func TestDefaults(t *testing.T) {
	s := newServer()
	type in struct {
		Limit int      `json:"limit,omitzero" default:"10"`
		Page  *int     `json:"page" default:"1"`
		Tags  []string `json:"tags,omitempty" default:"[\"a\"]"`
		Plain string   `json:"plain,omitempty"`
	}
	server.Tool(s, "t", "", func(_ context.Context, in in) (string, error) {
		return fmt.Sprint(in.Limit, *in.Page, in.Tags, in.Plain), nil
	})
	wantPart(t, call(t, s, "t", `{}`), `"10 1 [a]"`)
	wantPart(t, call(t, s, "t", `{"limit":2,"page":3,"tags":["b"],"plain":"p"}`), `"2 3 [b]p"`)
	wantPart(t, call(t, s, "t", `{"limit":0}`), `"0 1 [a]"`)
}

func TestRawTool(t *testing.T) {
	s := newServer()
	server.RawTool(s, mcp.Tool{Name: "raw", InputSchema: json.RawMessage(`{"type":"object","required":["a"]}`)},
		func(_ context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(string(arguments))}}, nil
		})
	want(t, call(t, s, "raw", `{"a":1.0}`), `{"content":[{"type":"text","text":"{\"a\":1.0}"}]}`)
	want(t, call(t, s, "raw", `{}`), `{"content":[{"type":"text","text":"invalid arguments: missing required property \"a\""}],"isError":true}`)
}

func TestRequestFrom(t *testing.T) {
	s := newServer()
	req := as("ann", request(mcp.MethodCallTool, `{"name":"who"}`))
	server.Tool(s, "who", "", func(ctx context.Context, _ struct{}) (string, error) {
		derived, cancel := context.WithCancel(ctx)
		defer cancel()
		if server.RequestFrom(derived) != req {
			t.Error("another request")
		}
		return server.RequestFrom(ctx).Principal.ID, nil
	})
	wantPart(t, serve(t, s, req), `"ann"`)
	if server.RequestFrom(t.Context()) != nil {
		t.Error("a request without a handler")
	}
}
