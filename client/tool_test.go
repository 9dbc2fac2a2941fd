package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

type sum struct {
	Sum int `json:"sum"`
}

func TestCallDecodesWhatIsWanted(t *testing.T) {
	const (
		structured = `{"content":[{"type":"text","text":"{\"sum\":5}"}],"structuredContent":{"sum":5}}`
		jsonText   = `{"content":[{"type":"text","text":"{\"sum\":5}"}]}`
		plainText  = `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`
		list       = `{"content":[],"structuredContent":[{"sum":1},{"sum":2}]}`
		image      = `{"content":[{"type":"image","data":"AAEC","mimeType":"image/png"}]}`
		empty      = `{"content":[]}`
	)
	call := func(result string, f func(*client.Client) (any, error)) (any, error) {
		return f(connect(t, tools(returns(result))))
	}
	as := func(f any) func(*client.Client) (any, error) {
		return func(c *client.Client) (any, error) {
			out := reflect.ValueOf(f).Call([]reflect.Value{reflect.ValueOf(c)})
			err, _ := out[1].Interface().(error)
			return out[0].Interface(), err
		}
	}
	ctx := context.Background()
	asString := as(func(c *client.Client) (string, error) { return client.Call[string](ctx, c, "t", nil) })
	asSum := as(func(c *client.Client) (sum, error) { return client.Call[sum](ctx, c, "t", nil) })
	asPointer := as(func(c *client.Client) (*sum, error) { return client.Call[*sum](ctx, c, "t", nil) })
	asList := as(func(c *client.Client) ([]sum, error) { return client.Call[[]sum](ctx, c, "t", nil) })
	asAny := as(func(c *client.Client) (any, error) { return client.Call[any](ctx, c, "t", nil) })
	asNothing := as(func(c *client.Client) (struct{}, error) { return client.Call[struct{}](ctx, c, "t", nil) })
	asRaw := as(func(c *client.Client) (string, error) {
		raw, err := client.Call[json.RawMessage](ctx, c, "t", nil)
		return string(raw), err
	})
	asContent := as(func(c *client.Client) (mcp.ContentType, error) {
		content, err := client.Call[mcp.Content](ctx, c, "t", nil)
		return content.Type, err
	})
	asContents := as(func(c *client.Client) (int, error) {
		contents, err := client.Call[[]mcp.Content](ctx, c, "t", nil)
		return len(contents), err
	})
	asResult := as(func(c *client.Client) (int, error) {
		res, err := client.Call[*mcp.CallToolResult](ctx, c, "t", nil)
		if err != nil {
			return 0, err
		}
		return len(res.Content), nil
	})
	for _, test := range []struct {
		name, result string
		call         func(*client.Client) (any, error)
		want         any
		err          string
	}{
		{"text", plainText, asString, "one\ntwo", ""},
		{"text beside structured content", structured, asString, `{"sum":5}`, ""},
		{"no text", empty, asString, "", ""},
		{"an image is not a string", image, asString, "", "no text"},
		{"structured", structured, asSum, sum{5}, ""},
		{"structured, by pointer", structured, asPointer, &sum{5}, ""},
		{"text that is JSON", jsonText, asSum, sum{5}, ""},
		{"text that is not JSON", plainText, asSum, sum{}, "no structured content"},
		{"structured list", list, asList, []sum{{1}, {2}}, ""},
		{"wrong structure", list, asSum, sum{}, "cannot be read"},
		{"any of structured", structured, asAny, map[string]any{"sum": 5.0}, ""},
		{"any of text", plainText, asAny, "one\ntwo", ""},
		{"nothing", plainText, asNothing, struct{}{}, ""},
		{"raw structured", list, asRaw, `[{"sum":1},{"sum":2}]`, ""},
		{"raw JSON text", jsonText, asRaw, `{"sum":5}`, ""},
		{"raw text", plainText, asRaw, `"one\ntwo"`, ""},
		{"content", image, asContent, mcp.ContentImage, ""},
		{"no content", empty, asContent, mcp.ContentType(""), "no content"},
		{"contents", plainText, asContents, 2, ""},
		{"whole", plainText, asResult, 2, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := call(test.result, test.call)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), "fake: tools/call t") {
					t.Fatalf("got error %v, want one that names the call and says %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
		})
	}
}

func TestCallEncodesArguments(t *testing.T) {
	var got string
	c := connect(t, tools(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		got = param(req, "arguments")
		return raw(`{"content":[]}`), nil
	}))
	var none *sum
	for _, test := range []struct {
		in   any
		want string
	}{
		{nil, `{}`},
		{none, `{}`},
		{sum{3}, `{"sum":3}`},
		{map[string]any{"b": 1, "a": []int(nil)}, `{"a":[],"b":1}`},
		{json.RawMessage(`{"n":9007199254740993, "u":"\u00e9"}`), `{"n":9007199254740993, "u":"\u00e9"}`},
		{json.RawMessage(nil), `{}`},
	} {
		if _, err := client.Call[string](context.Background(), c, "t", test.in); err != nil {
			t.Fatal(err)
		}
		if got != test.want {
			t.Errorf("%v went as %s, want %s", test.in, got, test.want)
		}
	}
	for _, in := range []any{3, "text", []int{1}, func() {}, json.RawMessage(`{"a"`), json.RawMessage(`[]`)} {
		if _, err := client.Call[string](context.Background(), c, "t", in); err == nil {
			t.Errorf("arguments %T were sent", in)
		}
	}
}

func TestToolError(t *testing.T) {
	c := connect(t, tools(returns(`{"content":[{"type":"text","text":"no such city"}],"isError":true}`)))
	_, err := client.Call[sum](context.Background(), c, "weather", nil)
	var failed *client.ToolError
	if !errors.As(err, &failed) || failed.Tool != "weather" || len(failed.Result.Content) != 1 || !failed.Result.IsError {
		t.Fatalf("got %#v", err)
	}
	if want := "fake: weather: no such city"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	res, err := c.CallTool(context.Background(), mcp.CallToolParams{Name: "weather"})
	if err != nil || !res.IsError {
		t.Errorf("CallTool: got %v, %v; want the failure as a result", res, err)
	}
}

func TestProtocolErrorsNameTheCall(t *testing.T) {
	c := connect(t, tools(func(context.Context, *mcp.Request) (*mcp.Result, error) {
		return nil, mcp.InvalidParams("unknown tool")
	}), client.Options{Name: "mine"})
	_, err := client.Call[string](context.Background(), c, "nope", nil)
	var answered *mcp.Error
	var call *client.CallError
	if !errors.As(err, &answered) || answered.Code != -32602 || !errors.As(err, &call) || call.Name != "nope" {
		t.Fatalf("got %#v", err)
	}
	if want := "mine: tools/call nope: unknown tool (-32602)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestOutputIsCheckedOnceTheSchemaIsKnown(t *testing.T) {
	h := tools(returns(`{"content":[],"structuredContent":{"sum":"five"}}`))
	h[mcp.MethodListTools] = returns(`{"tools":[{"name":"add","inputSchema":{"type":"object"},
		"outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}}}},
		{"name":"odd","inputSchema":{"type":"object"},"outputSchema":{"$schema":"urn:unheard-of","type":"object"}},
		{"name":"away","inputSchema":{"type":"object"},"outputSchema":{"$ref":"https://schemas.test/sum.json"}},
		{"name":"pattern","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"pattern":"(?=a)"}}}}]}`)
	ctx := context.Background()
	c := connect(t, h)
	if _, err := c.CallTool(ctx, mcp.CallToolParams{Name: "add"}); err != nil {
		t.Fatalf("before the schema is known: %v", err)
	}
	if _, err := client.All(c.Tools(ctx)); err != nil {
		t.Fatal(err)
	}
	res, err := c.CallTool(ctx, mcp.CallToolParams{Name: "add"})
	var wrong *client.OutputError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "/sum") || string(res.StructuredContent) != `{"sum":"five"}` {
		t.Fatalf("got %v, %v", res, err)
	}
	if _, err := client.Call[json.RawMessage](ctx, c, "add", nil); !errors.As(err, &wrong) {
		t.Errorf("Call: got %v", err)
	}
	for _, tool := range []string{"odd", "away"} {
		if _, err := client.Call[json.RawMessage](ctx, c, tool, nil); !errors.As(err, &wrong) || !errors.Is(err, schema.ErrUnsupported) ||
			!strings.Contains(err.Error(), "cannot be checked against its output schema") {
			t.Errorf("%s: an unknown dialect or reference: %v", tool, err)
		}
	}
	if _, err := client.Call[json.RawMessage](ctx, c, "pattern", nil); err != nil {
		t.Errorf("a schema that cannot be checked: %v", err)
	}
	if _, err := client.Call[json.RawMessage](ctx, c, "other", nil); err != nil {
		t.Errorf("an unlisted tool: %v", err)
	}

	lenient := connect(t, h, client.Options{NoOutputCheck: true})
	if _, err := client.All(lenient.Tools(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"add", "odd"} {
		if _, err := client.Call[json.RawMessage](ctx, lenient, tool, nil); err != nil {
			t.Errorf("NoOutputCheck: %v", err)
		}
	}
}
