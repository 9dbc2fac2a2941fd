package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// listing is a list of a server, read raw: so that JSON shows what the server sent, fields of extensions included.
type listing struct {
	method, member string
}

var (
	listTools     = listing{mcp.MethodListTools, "tools"}
	listResources = listing{mcp.MethodListResources, "resources"}
	listTemplates = listing{mcp.MethodListResourceTemplates, "resourceTemplates"}
	listPrompts   = listing{mcp.MethodListPrompts, "prompts"}
)

// pages iterates over the pages as they are asked for.
func (l listing) pages(ctx context.Context, c *client.Client) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var params mcp.ListParams
		seen := map[string]bool{}
		for {
			page, err := request(ctx, c, l.method, "", params, client.CallOptions{})
			if !yield(page, err) || err != nil {
				return
			}
			cursor, more := rawjson.String(rawjson.Lookup(page, "nextCursor"))
			if !more {
				return
			}
			if seen[cursor] {
				yield(nil, unreadable(c, l.method, fmt.Errorf("it repeats the cursor %q: the list has no end", cursor)))
				return
			}
			seen[cursor] = true
			params.Cursor = &cursor
		}
	}
}

// absent is a server of several whose things are missing from a list.
type absent struct {
	Server string `json:"server"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

func (g absent) Error() string {
	return fmt.Sprintf("it is %s: %s; dowel doctor %s says more", g.Status, g.Reason, g.Server)
}

// absentFrom returns the servers that a page of a gateway's list lacks.
func absentFrom(page json.RawMessage) (all []absent) {
	for it := rawjson.Array(rawjson.Lookup(rawjson.Lookup(page, "_meta"), gateway.MetaMissing)); it.Next(); {
		var one absent
		if mcp.Decode(it.Value, &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

// whole holds a list of a gateway to what the user has asked for: one server that is missing is an error, of several each is told
// of.
func (a *app) whole(t target, page json.RawMessage, err error) error {
	for _, gone := range absentFrom(page) {
		if gone.Server == t.name && gone.Server != "" {
			return connectError{t.name, gone}
		}
		a.warn("%s is %s: %s; dowel doctor %s says more", gone.Server, gone.Status, firstLine(gone.Reason), gone.Server)
	}
	return err
}

// all returns the whole list as one page. A server that does not have such lists has an empty one.
func (l listing) all(ctx context.Context, c *client.Client) (json.RawMessage, error) {
	var first, items json.RawMessage
	for page, err := range l.pages(ctx, c) {
		switch {
		case notOffered(err):
			return fmt.Appendf(nil, `{%q:[]}`, l.member), nil
		case err != nil:
			return nil, err
		case first == nil:
			first = page
		}
		for it := rawjson.Array(rawjson.Lookup(page, l.member)); it.Next(); {
			if items != nil {
				items = append(items, ',')
			}
			items = append(items, it.Value...)
		}
	}
	items = slices.Concat([]byte{'['}, items, []byte{']'})
	return rawjson.Set(rawjson.Set(first, "nextCursor", nil), l.member, items), nil
}

// notOffered reports whether the server does not know the method.
func notOffered(err error) bool {
	answered := protocolError(err)
	return answered != nil && answered.Code == jsonrpc.CodeMethodNotFound
}

// protocolError returns the error that a server answered with, nil if it did not.
func protocolError(err error) *mcp.Error {
	var answered *mcp.Error
	errors.As(err, &answered)
	return answered
}

// find returns the item with the name, decoded and raw, and asks for no more pages than it needs. The error of one that there is not
// holds the names that there are.
func find[T any](ctx context.Context, c *client.Client, l listing, kind, name string, nameOf func(*T) string) (item T, raw json.RawMessage, err error) {
	var known []string
	var gone []absent
	for page, err := range l.pages(ctx, c) {
		if notOffered(err) {
			break
		}
		if err != nil {
			return item, nil, err
		}
		gone = absentFrom(page)
		for it := rawjson.Array(rawjson.Lookup(page, l.member)); it.Next(); {
			var candidate T
			if err := mcp.Decode(it.Value, &candidate); err != nil {
				return item, nil, unreadable(c, l.method, err)
			}
			if nameOf(&candidate) == name {
				return candidate, it.Value, nil
			}
			known = append(known, nameOf(&candidate))
		}
	}
	if len(known) == 0 && len(gone) == 1 {
		return item, nil, connectError{gone[0].Server, gone[0]}
	}
	return item, nil, usagef("there is no %s %s%s", kind, name, suggestion(name, known))
}

// decodeItems decodes the items of a page.
func decodeItems[T any](c *client.Client, l listing, page json.RawMessage) ([]T, error) {
	var items []T
	if err := mcp.Decode(rawjson.Lookup(page, l.member), &items); err != nil {
		return nil, unreadable(c, l.method, err)
	}
	return items, nil
}
