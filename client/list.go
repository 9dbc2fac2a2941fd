package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Tools iterates over the server's tools, all pages, each asked for when it is needed. It ends with the first error.
func (c *Client) Tools(ctx context.Context, opts ...CallOptions) iter.Seq2[mcp.Tool, error] {
	return listing[mcp.ListToolsResult, mcp.Tool]{
		client: c, method: mcp.MethodListTools, opts: options.Merge(opts),
		items: func(r *mcp.ListToolsResult) ([]mcp.Tool, *string) {
			if !c.opts.NoOutputCheck {
				for i := range r.Tools {
					c.tools.learn(&r.Tools[i])
				}
			}
			return r.Tools, r.NextCursor
		},
		key: func(t *mcp.Tool) string { return t.Name },
	}.all(ctx)
}

// Resources iterates over the server's resources, like [Client.Tools].
func (c *Client) Resources(ctx context.Context, opts ...CallOptions) iter.Seq2[mcp.Resource, error] {
	return listing[mcp.ListResourcesResult, mcp.Resource]{
		client: c, method: mcp.MethodListResources, opts: options.Merge(opts),
		items: func(r *mcp.ListResourcesResult) ([]mcp.Resource, *string) { return r.Resources, r.NextCursor },
		key:   func(r *mcp.Resource) string { return r.URI },
	}.all(ctx)
}

// ResourceTemplates iterates over the server's resource templates, like [Client.Tools].
func (c *Client) ResourceTemplates(ctx context.Context, opts ...CallOptions) iter.Seq2[mcp.ResourceTemplate, error] {
	return listing[mcp.ListResourceTemplatesResult, mcp.ResourceTemplate]{
		client: c, method: mcp.MethodListResourceTemplates, opts: options.Merge(opts),
		items: func(r *mcp.ListResourceTemplatesResult) ([]mcp.ResourceTemplate, *string) {
			return r.ResourceTemplates, r.NextCursor
		},
		key: func(t *mcp.ResourceTemplate) string { return t.URITemplate },
	}.all(ctx)
}

// Prompts iterates over the server's prompts, like [Client.Tools].
func (c *Client) Prompts(ctx context.Context, opts ...CallOptions) iter.Seq2[mcp.Prompt, error] {
	return listing[mcp.ListPromptsResult, mcp.Prompt]{
		client: c, method: mcp.MethodListPrompts, opts: options.Merge(opts),
		items: func(r *mcp.ListPromptsResult) ([]mcp.Prompt, *string) { return r.Prompts, r.NextCursor },
		key:   func(p *mcp.Prompt) string { return p.Name },
	}.all(ctx)
}

// All collects a list:
//
//	tools, err := client.All(c.Tools(ctx))
func All[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// listing is a list method with what its pages hold.
type listing[R, T any] struct {
	client *Client
	method string
	opts   CallOptions
	items  func(*R) ([]T, *string)
	key    func(*T) string
}

// all yields the items of all pages. Where a cursor proves invalid, because the server has restarted or a cached page
// named it, the list is read once more from its beginning (server/utilities/pagination) without what was yielded.
func (l listing[R, T]) all(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		yielded := map[string]bool{}
		done, err := l.pages(ctx, func(item *T) bool {
			yielded[l.key(item)] = true
			return yield(*item, nil)
		})
		if !done && invalidCursor(err) {
			l.client.cache.drop(l.method, nil)
			done, err = l.pages(ctx, func(item *T) bool {
				return yielded[l.key(item)] || yield(*item, nil)
			})
		}
		if !done && err != nil {
			var none T
			yield(none, err)
		}
	}
}

// cursorError is the failure to get a page that a cursor named.
type cursorError struct{ error }

func (e cursorError) Unwrap() error { return e.error }

func invalidCursor(err error) bool {
	var at cursorError
	var answered *mcp.Error
	return errors.As(err, &at) && errors.As(err, &answered) && answered.Code == jsonrpc.CodeInvalidParams
}

// pages visits the items of all pages; done is true where the visitor wanted no more.
func (l listing[R, T]) pages(ctx context.Context, visit func(*T) bool) (done bool, err error) {
	var params json.RawMessage
	seen := map[string]bool{}
	for {
		page, err := l.page(ctx, params)
		if err != nil {
			if params != nil {
				err = cursorError{err}
			}
			return false, err
		}
		items, cursor := l.items(page)
		for i := range items {
			if !visit(&items[i]) {
				return true, nil
			}
		}
		if cursor == nil {
			return false, nil
		}
		if seen[*cursor] {
			return false, l.client.failure(l.method, "", fmt.Errorf("the server repeats the cursor %q: the list has no end", *cursor))
		}
		seen[*cursor] = true
		params = append(rawjson.AppendString([]byte(`{"cursor":`), *cursor), '}')
	}
}

func (l listing[R, T]) page(ctx context.Context, params json.RawMessage) (*R, error) {
	resp, err := l.client.do(ctx, l.method, "", params, l.opts)
	if err != nil {
		return nil, err
	}
	page := new(R)
	if err := l.client.read(resp, page); err != nil {
		return nil, l.client.failure(l.method, "", err)
	}
	return page, nil
}
