package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// feature is a use of the protocol that a client may make through the gateway.
type feature struct {
	name string
	use  func(ctx context.Context, p *pair) error
}

// elicitations are the features that put a form to the user.
var elicitations = []string{
	"elicit: accept", "elicit: decline", "elicit: cancel", "elicit: url", "ask: several at once", "ask: one after the other",
	"ask: with state", "ask: in a prompt",
}

var features = slices.Concat(offerFeatures, callFeatures, askFeatures, resourceFeatures, changeFeatures, wordFeatures)

// handler and newMux keep net/http out of the way of names.
type handler = http.Handler

func newMux(routes map[string]handler) *http.ServeMux {
	mux := http.NewServeMux()
	for path, h := range routes {
		mux.Handle(path, h)
	}
	return mux
}

// tool calls a tool of the upstream and returns the text of its result. A failed tool is an error.
func (p *pair) tool(ctx context.Context, c *client.Client, name string, in any, opts ...client.CallOptions) (string, error) {
	return client.Call[string](ctx, c, "up__"+name, in, opts...)
}

// says calls a tool without arguments, and requires a text in its result.
func (p *pair) says(ctx context.Context, name, want string) error {
	got, err := p.tool(ctx, p.c, name, nil)
	return is(got, want, err)
}

func is(got, want string, err error) error {
	switch {
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

// code returns nil if err is a protocol error with the code.
func code(err error, want int) error {
	var answered *mcp.Error
	if !errors.As(err, &answered) || answered.Code != want {
		return fmt.Errorf("%w is not %d", errors.Join(err), want)
	}
	return nil
}

var offerFeatures = []feature{
	{"server: identity", func(_ context.Context, p *pair) error {
		if text := p.c.Server().Instructions; !strings.Contains(text, "# up") || !strings.Contains(text, "Handle with care.") {
			return fmt.Errorf("instructions: %q", text)
		}
		return is(p.c.Server().Info.Name, "dowel", nil)
	}},
	{"list: tools", func(ctx context.Context, p *pair) error {
		tools, err := client.All(p.c.Tools(ctx))
		if err != nil {
			return err
		}
		var names []string
		for _, tool := range tools {
			names = append(names, tool.Name)
		}
		for _, want := range []string{"up__echo", "up__hang", "up__test_x_mcp_header", "dowel__status"} {
			if !slices.Contains(names, want) {
				return fmt.Errorf("%s is not among %v", want, names)
			}
		}
		if unique := slices.Compact(slices.Sorted(slices.Values(names))); len(unique) != len(names) || len(names) < 2*gatewayPage {
			return fmt.Errorf("%v", names)
		}
		return nil
	}},
	{"list: prompts", func(ctx context.Context, p *pair) error {
		all, err := client.All(p.c.Prompts(ctx))
		if err == nil && (len(all) < 5 || all[0].Name != "up__test_simple_prompt") {
			err = fmt.Errorf("%v", all)
		}
		return err
	}},
	{"list: resources", func(ctx context.Context, p *pair) error {
		all, err := client.All(p.c.Resources(ctx))
		if err == nil && !slices.ContainsFunc(all, func(r mcp.Resource) bool { return r.URI == "test://static-text" && r.Name == "static-text" }) {
			err = fmt.Errorf("%v", all)
		}
		return err
	}},
	{"list: templates", func(ctx context.Context, p *pair) error {
		all, err := client.All(p.c.ResourceTemplates(ctx))
		if err == nil && (len(all) != 1 || all[0].URITemplate != "test://template/{id}/data") {
			err = fmt.Errorf("%v", all)
		}
		return err
	}},
	{"list: pages", func(ctx context.Context, p *pair) error {
		resp, err := p.c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodListTools})
		if err != nil {
			return err
		}
		var page mcp.ListToolsResult
		if err := json.Unmarshal(resp.Raw, &page); err != nil || len(page.Tools) != gatewayPage || page.NextCursor == nil {
			return fmt.Errorf("%w: %s", errors.Join(err), resp.Raw)
		}
		for _, cursor := range []string{`"no such"`, `"0"`, `"-1"`, `"99"`, `""`} {
			_, err := p.c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodListTools, Params: fmt.Appendf(nil, `{"cursor":%s}`, cursor)})
			if err := code(err, jsonrpc.CodeInvalidParams); err != nil {
				return fmt.Errorf("cursor %s: %w", cursor, err)
			}
		}
		return nil
	}},
	{"cache: hints", func(ctx context.Context, p *pair) error {
		for method, want := range map[string]mcp.CacheScope{mcp.MethodListTools: mcp.CachePublic, mcp.MethodListPrompts: mcp.CachePrivate, mcp.MethodReadResource: mcp.CachePublic} {
			req := &mcp.Request{Method: method}
			if method == mcp.MethodReadResource {
				req.Params = json.RawMessage(`{"uri":"test://static-text"}`)
			}
			resp, err := p.c.RoundTrip(ctx, req)
			switch {
			case err != nil:
				return err
			case resp.Cache == mcp.Cache{} || resp.Cache == mcp.Cache{Scope: mcp.CachePrivate}:
				return errors.New("stale at once, and private")
			case resp.Cache.Scope != want && !(resp.Cache.Scope == "" && want == mcp.CachePrivate), resp.Cache.TTL <= 0:
				return fmt.Errorf("%s: %+v", method, resp.Cache)
			}
		}
		return nil
	}},
	{"complete: prompt", func(ctx context.Context, p *pair) error {
		got, err := p.c.Complete(ctx, mcp.PromptRef("up__test_prompt_with_arguments"), "arg1", "par", nil)
		if err == nil && !slices.Equal(got.Values, []string{"paris", "park", "party"}) {
			err = fmt.Errorf("%v", got)
		}
		return err
	}},
	{"complete: template", func(ctx context.Context, p *pair) error {
		got, err := p.c.Complete(ctx, mcp.ResourceRef("test://template/{id}/data"), "id", "12", nil)
		if err == nil && !slices.Equal(got.Values, []string{"12", "123"}) {
			err = fmt.Errorf("%v", got)
		}
		return err
	}},
	{"prompt: get", func(ctx context.Context, p *pair) error {
		res, err := p.c.GetPrompt(ctx, "up__test_prompt_with_arguments", map[string]string{"arg1": "a", "arg2": "b"})
		if err != nil {
			return err
		}
		if err := is(res.Messages[0].Content.Text, "Prompt with arguments: arg1='a', arg2='b'", nil); err != nil {
			return err
		}
		for _, name := range []string{"up__test_prompt_with_image", "up__test_simple_prompt"} {
			if _, err := p.c.GetPrompt(ctx, name, nil); err != nil {
				return err
			}
		}
		_, err = p.c.GetPrompt(ctx, "up__no_such", nil)
		return code(err, jsonrpc.CodeInvalidParams)
	}},
}

// callWhole calls a tool without arguments and returns its whole result.
func (p *pair) callWhole(ctx context.Context, name string) (*mcp.CallToolResult, error) {
	return p.c.CallTool(ctx, mcp.CallToolParams{Name: "up__" + name, Arguments: json.RawMessage("{}")})
}

// content calls a tool, and requires a block of a type in its result.
func content(name, typ string) func(ctx context.Context, p *pair) error {
	return func(ctx context.Context, p *pair) error {
		res, err := p.callWhole(ctx, name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(res.Content, func(c mcp.Content) bool { return string(c.Type) == typ }) {
			return nil
		}
		var texts []string
		for _, c := range res.Content {
			texts = append(texts, c.String())
		}
		return fmt.Errorf("text instead: %s", strings.Join(texts, " "))
	}
}

// structured calls a tool, and requires structured content with a prefix.
func structured(name, begin string) func(ctx context.Context, p *pair) error {
	return func(ctx context.Context, p *pair) error {
		res, err := p.callWhole(ctx, name)
		switch {
		case err != nil:
			return err
		case len(res.Content) == 0 || !strings.HasPrefix(res.Content[0].Text, begin):
			return fmt.Errorf("%+v", res)
		case res.StructuredContent == nil:
			return fmt.Errorf("text alone: %s", res.Content[0].Text)
		}
		return is(string(res.StructuredContent[:len(begin)]), begin, nil)
	}
}

var callFeatures = []feature{
	{"call: text", func(ctx context.Context, p *pair) error {
		got, err := p.tool(ctx, p.c, "echo", map[string]string{"message": "hällo \u2028 </script>"})
		return is(got, "hällo \u2028 </script>", err)
	}},
	{"call: structured object", structured("structured_object", "{")},
	{"call: structured array", structured("structured_array", "[")},
	{"call: image", content("test_image_content", "image")},
	{"call: audio", content("test_audio_content", "audio")},
	{"call: resource link", content("resource_links", "resource_link")},
	{"call: embedded resource", content("test_embedded_resource", "resource")},
	{"call: several blocks", func(ctx context.Context, p *pair) error {
		res, err := p.callWhole(ctx, "test_multiple_content_types")
		if err == nil && len(res.Content) != 3 {
			err = fmt.Errorf("%v", res.Content)
		}
		return err
	}},
	{"call: tool error", func(ctx context.Context, p *pair) error {
		res, err := p.callWhole(ctx, "test_error_handling")
		if err == nil && (!res.IsError || res.Content[0].Text != "This tool intentionally returns an error for testing") {
			err = fmt.Errorf("%+v", res)
		}
		return err
	}},
	{"call: unknown tool", func(ctx context.Context, p *pair) error {
		_, err := p.callWhole(ctx, "no_such")
		return code(err, jsonrpc.CodeInvalidParams)
	}},
	{"call: invalid arguments", func(ctx context.Context, p *pair) error {
		res, err := p.callWhole(ctx, "echo")
		if err == nil && (!res.IsError || !strings.Contains(res.Content[0].Text, "message")) {
			err = fmt.Errorf("%+v", res)
		}
		return err
	}},
	{"call: mended name", func(ctx context.Context, p *pair) error {
		for _, name := range []string{"up.echo", "Up__Echo", "echo"} {
			got, err := client.Call[string](ctx, p.c, name, map[string]string{"message": "hi"})
			if err := is(got, "hi", err); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}},
	{"call: status", func(ctx context.Context, p *pair) error {
		got, err := client.Call[string](ctx, p.c, "dowel__status", nil)
		if err == nil && !strings.HasPrefix(got, "up: ready, ") {
			err = errors.New(got)
		}
		return err
	}},
	{"progress: steps", func(ctx context.Context, p *pair) error {
		var steps []float64
		_, err := p.tool(ctx, p.c, "slow", map[string]float64{"seconds": 0}, client.CallOptions{OnProgress: func(s mcp.ProgressParams) { steps = append(steps, s.Progress) }})
		if err == nil && (len(steps) < 3 || steps[0] != 0 || steps[len(steps)-1] != 20 || !slices.IsSorted(steps)) {
			err = fmt.Errorf("%v", steps) // those in between may be held back; that each is above the last is for the tap
		}
		return err
	}},
	{"progress: message", func(ctx context.Context, p *pair) error {
		var said []string
		_, err := p.tool(ctx, p.c, "slow", map[string]float64{"seconds": 0}, client.CallOptions{OnProgress: func(s mcp.ProgressParams) { said = append(said, s.Message) }})
		switch {
		case err != nil:
			return err
		case len(said) == 0:
			return errors.New("no progress")
		case said[len(said)-1] == "":
			return errors.New("without words")
		}
		return is(said[len(said)-1], "done", nil)
	}},
	{"log: at a level", func(ctx context.Context, p *pair) error {
		for _, tt := range []struct {
			level mcp.LoggingLevel
			want  int
		}{{mcp.LevelError, 1}, {mcp.LevelDebug, 4}, {mcp.LevelWarning, 2}} {
			var got []mcp.LoggingLevel
			_, err := p.tool(ctx, p.c, "levels", nil, client.CallOptions{LogLevel: tt.level, OnLog: func(m mcp.LoggingMessageParams) { got = append(got, m.Level) }})
			if err != nil {
				return err
			}
			if len(got) != tt.want || slices.ContainsFunc(got, func(l mcp.LoggingLevel) bool { return l.Severity() < tt.level.Severity() }) {
				return fmt.Errorf("at %s: %v", tt.level, got)
			}
		}
		return nil
	}},
	{"cancel", func(ctx context.Context, p *pair) error {
		ended := func() (n int) {
			text, _ := p.tool(ctx, p.c, "ended", nil)
			_, _ = fmt.Sscan(text, &n)
			return n
		}
		before := ended()
		gone, cancel := context.WithCancel(ctx)
		defer cancel()
		_, err := p.tool(gone, p.c, "hang", nil, client.CallOptions{OnProgress: func(mcp.ProgressParams) { cancel() }})
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("hang: %w", errors.Join(err))
		}
		for ended() == before {
			if ctx.Err() != nil {
				return errors.New("the call has not ended at the upstream")
			}
		}
		return nil
	}},
}
