package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// read reads a resource of one piece.
func (p *pair) read(ctx context.Context, uri string) (c mcp.ResourceContents, err error) {
	res, err := p.c.ReadResource(ctx, uri)
	if err == nil && (len(res.Contents) != 1 || res.Contents[0].URI != uri) {
		err = fmt.Errorf("%+v", res)
	}
	if err != nil {
		return c, err
	}
	return res.Contents[0], nil
}

var resourceFeatures = []feature{
	{"read: text", func(ctx context.Context, p *pair) error {
		c, err := p.read(ctx, "test://static-text")
		return is(c.Text, "This is the content of the static text resource.", err)
	}},
	{"read: blob", func(ctx context.Context, p *pair) error {
		c, err := p.read(ctx, "test://static-binary")
		if err == nil && !strings.HasPrefix(string(c.Blob), "\x89PNG") {
			err = fmt.Errorf("%+v", c)
		}
		return err
	}},
	{"read: template", func(ctx context.Context, p *pair) error {
		c, err := p.read(ctx, "test://template/123/data")
		if err == nil && !strings.Contains(c.Text, "Data for ID: 123") {
			err = fmt.Errorf("%+v", c)
		}
		return err
	}},
	{"read: not found", func(ctx context.Context, p *pair) error {
		want := mcp.CodeResourceNotFound
		if p.down.revision.Modern() {
			want = jsonrpc.CodeInvalidParams
		}
		for _, uri := range []string{"test://no-such", "other://no-such"} {
			_, err := p.c.ReadResource(ctx, uri)
			if err := code(err, want); err != nil {
				return fmt.Errorf("%s: %w", uri, err)
			}
		}
		return nil
	}},
}

// awaitNotification waits for a notification of a change of uri.
func (p *pair) awaitNotification(ctx context.Context, method, uri string) error {
	for {
		select {
		case change := <-p.changes:
			if change.Method == method && change.URI == uri {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("there was no %s of %s", method, uri)
		}
	}
}

// changes has a tool change what the upstream offers, there and back.
func changes(tool, method string, there func(ctx context.Context, p *pair) (bool, error)) func(ctx context.Context, p *pair) error {
	return func(ctx context.Context, p *pair) error {
		for _, want := range []bool{true, false} {
			if _, err := p.tool(ctx, p.c, tool, nil); err != nil {
				return err
			}
			if err := p.awaitNotification(ctx, method, ""); err != nil {
				return err
			}
			got, err := there(ctx, p)
			if err != nil || got != want {
				return fmt.Errorf("after the change it is there: %t, %w", got, errors.Join(err))
			}
		}
		return nil
	}
}

// lists reports whether a list contains a name.
func lists(method, name string) func(ctx context.Context, p *pair) (bool, error) {
	return func(ctx context.Context, p *pair) (bool, error) {
		cursor := ""
		for {
			req := &mcp.Request{Method: method}
			if cursor != "" {
				req.Params = fmt.Appendf(nil, `{"cursor":%q}`, cursor)
			}
			resp, err := p.c.RoundTrip(ctx, req)
			if err != nil || strings.Contains(string(resp.Raw), name) {
				return err == nil, err
			}
			var page mcp.Page
			if err := json.Unmarshal(resp.Raw, &page); err != nil || page.NextCursor == nil {
				return false, err
			}
			cursor = *page.NextCursor
		}
	}
}

var changeFeatures = []feature{
	{"changes: of a resource", func(ctx context.Context, p *pair) error {
		for range 2 {
			if _, err := p.tool(ctx, p.c, "test_trigger_resource_update", nil); err != nil {
				return err
			}
			if err := p.awaitNotification(ctx, mcp.NotificationResourceUpdated, watchedURI); err != nil {
				return err
			}
		}
		return nil
	}},
	{"changes: subscribe anew", func(ctx context.Context, p *pair) error {
		// What changes right behind the acknowledgement is told.
		w, err := p.poor.Watch(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{watchedURI}})
		if err != nil {
			return err
		}
		defer w.Close()
		if _, err := p.tool(ctx, p.poor, "test_trigger_resource_update", nil); err != nil {
			return err
		}
		for change, err := range w.Changes() {
			if err != nil || change.URI != watchedURI {
				return fmt.Errorf("%+v, %w", change, errors.Join(err))
			}
			return nil
		}
		return errors.New("the change was not reported")
	}},
	{"changes: of tools", changes("test_trigger_tool_change", mcp.NotificationToolsChanged, lists(mcp.MethodListTools, "up__dynamic_tool"))},
	{"changes: of prompts", changes("test_trigger_prompt_change", mcp.NotificationPromptsChanged, lists(mcp.MethodListPrompts, "up__dynamic_prompt"))},
	{"changes: of resources", changes("test_trigger_resource_change", mcp.NotificationResourcesChanged, lists(mcp.MethodListResources, "test://dynamic-resource"))},
}

var wordFeatures = []feature{
	{"meta: of requests and results", func(ctx context.Context, p *pair) error {
		const sent = `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b","example.com/own":{"n":9007199254740993}}`
		resp, err := p.c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"up__meta","arguments":{},"_meta":` + sent + `}`)})
		if err != nil {
			return err
		}
		var res struct {
			Meta    map[string]json.RawMessage `json:"_meta"`
			Content []mcp.Content              `json:"content"`
		}
		if err := json.Unmarshal(resp.Raw, &res); err != nil {
			return err
		}
		if err := is(string(res.Meta["example.com/answer"]), `{"n":9007199254740993}`, nil); err != nil {
			return err
		}
		for _, want := range strings.Split(strings.Trim(sent, "{}"), ",") {
			if !strings.Contains(res.Content[0].Text, want) {
				return fmt.Errorf("%s is not in %s", want, res.Content[0].Text)
			}
		}
		return nil
	}},
}
