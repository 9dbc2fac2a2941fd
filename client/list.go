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

// Tools iterates over all pages of the server's tools and requests each page when the loop reaches
// it. It ends with the first error.
func (c *Client) Tools(ctx context.Context, opts ...CallOptions) iter.Seq2[mcp.Tool, error] {
	return listing[mcp.ListToolsResult, mcp.Tool]{
		client: c, method: mcp.MethodListTools, opts: options.Merge(opts),
		items: func(r *mcp.ListToolsResult) ([]mcp.Tool, *string) {
			if !c.opts.NoOutputCheck {
				for i := range r.Tools {
					c.outputSchemas.recordTool(&r.Tools[i])
				}
			}
			return r.Tools, r.NextCursor
		},
		key: func(t *mcp.Tool) string { return t.Name },
	}.iterateItems(ctx)
}

// Resources iterates over the server's resources, like [Client.Tools].
func (c *Client) Resources(ctx context.Context, opts ...CallOptions) iter.Seq2[mcp.Resource, error] {
	return listing[mcp.ListResourcesResult, mcp.Resource]{
		client: c, method: mcp.MethodListResources, opts: options.Merge(opts),
		items: func(r *mcp.ListResourcesResult) ([]mcp.Resource, *string) { return r.Resources, r.NextCursor },
		key:   func(r *mcp.Resource) string { return r.URI },
	}.iterateItems(ctx)
}

// ResourceTemplates iterates over the server's resource templates, like [Client.Tools].
func (c *Client) ResourceTemplates(ctx context.Context, opts ...CallOptions) iter.Seq2[mcp.ResourceTemplate, error] {
	return listing[mcp.ListResourceTemplatesResult, mcp.ResourceTemplate]{
		client: c, method: mcp.MethodListResourceTemplates, opts: options.Merge(opts),
		items: func(r *mcp.ListResourceTemplatesResult) ([]mcp.ResourceTemplate, *string) {
			return r.ResourceTemplates, r.NextCursor
		},
		key: func(t *mcp.ResourceTemplate) string { return t.URITemplate },
	}.iterateItems(ctx)
}

// Prompts iterates over the server's prompts, like [Client.Tools].
func (c *Client) Prompts(ctx context.Context, opts ...CallOptions) iter.Seq2[mcp.Prompt, error] {
	return listing[mcp.ListPromptsResult, mcp.Prompt]{
		client: c, method: mcp.MethodListPrompts, opts: options.Merge(opts),
		items: func(r *mcp.ListPromptsResult) ([]mcp.Prompt, *string) { return r.Prompts, r.NextCursor },
		key:   func(p *mcp.Prompt) string { return p.Name },
	}.iterateItems(ctx)
}

// All collects the items of a list. It returns the first error of the list instead.
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

// listing describes a list method and the contents of its pages.
type listing[R, T any] struct {
	client *Client
	method string
	opts   CallOptions
	items  func(*R) ([]T, *string)
	key    func(*T) string
}

// iterateItems yields the items of all pages. If a cursor proves invalid, because the server has
// restarted or the cursor came from a cached page, it reads the list once more from the beginning
// (server/utilities/pagination) and skips the items it already yielded.
func (l listing[R, T]) iterateItems(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		yielded := map[string]bool{}
		done, err := l.readPages(ctx, func(item *T) bool {
			yielded[l.key(item)] = true
			return yield(*item, nil)
		})
		if !done && isInvalidCursor(err) {
			l.client.cache.dropMethod(l.method, nil)
			done, err = l.readPages(ctx, func(item *T) bool {
				return yielded[l.key(item)] || yield(*item, nil)
			})
		}
		if !done && err != nil {
			var none T
			yield(none, err)
		}
	}
}

// cursorError is a failure to get the page of a cursor.
type cursorError struct{ error }

func (e cursorError) Unwrap() error { return e.error }

func isInvalidCursor(err error) bool {
	var at cursorError
	var answered *mcp.Error
	return errors.As(err, &at) && errors.As(err, &answered) && answered.Code == jsonrpc.CodeInvalidParams
}

// readPages calls yield for the items of all pages. done is true if yield stopped the iteration.
func (l listing[R, T]) readPages(ctx context.Context, yield func(*T) bool) (done bool, err error) {
	var params json.RawMessage
	seen := map[string]bool{}
	for {
		page, err := l.fetchPage(ctx, params)
		if err != nil {
			if params != nil {
				err = cursorError{err}
			}
			return false, err
		}
		items, cursor := l.items(page)
		for i := range items {
			if !yield(&items[i]) {
				return true, nil
			}
		}
		if cursor == nil {
			return false, nil
		}
		if seen[*cursor] {
			return false, l.client.callError(l.method, "", fmt.Errorf("the server repeats the cursor %q: the list would never end", *cursor))
		}
		seen[*cursor] = true
		params = append(rawjson.AppendString([]byte(`{"cursor":`), *cursor), '}')
	}
}

func (l listing[R, T]) fetchPage(ctx context.Context, params json.RawMessage) (*R, error) {
	resp, err := l.client.callMethod(ctx, l.method, "", params, l.opts)
	if err != nil {
		return nil, err
	}
	page := new(R)
	if err := l.client.decodeResponse(resp, page); err != nil {
		return nil, l.client.callError(l.method, "", err)
	}
	return page, nil
}
