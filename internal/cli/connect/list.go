package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// listing is a list method. It is read raw, so that --json shows exactly what a server sent, with
// fields of extensions.
type listing struct {
	method, Member string
}

// The lists of a server.
var (
	ListTools     = listing{mcp.MethodListTools, "tools"}
	ListResources = listing{mcp.MethodListResources, "resources"}
	ListTemplates = listing{mcp.MethodListResourceTemplates, "resourceTemplates"}
	ListPrompts   = listing{mcp.MethodListPrompts, "prompts"}
)

// Pages requests and yields one page after the other. It stops after the first error, which it
// yields.
func (l listing) Pages(ctx context.Context, c *client.Client) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var params mcp.ListParams
		seen := map[string]bool{}
		for {
			page, err := Request(ctx, c, l.method, "", params, client.CallOptions{})
			if !yield(page, err) || err != nil {
				return
			}
			cursor, more := rawjson.String(rawjson.Lookup(page, "nextCursor"))
			if !more {
				return
			}
			if seen[cursor] {
				yield(nil, Unreadable(c, l.method, fmt.Errorf("it repeats the cursor %q: the list has no end", cursor)))
				return
			}
			seen[cursor] = true
			params.Cursor = &cursor
		}
	}
}

// missingServer is a server that a list of the gateway lacks, with the reason.
type missingServer struct {
	Server string `json:"server"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

func (m missingServer) Error() string {
	if strings.HasSuffix(m.Reason, " needs a login") {
		return fmt.Sprintf("%s; log in: dowel login %s", m.Reason, m.Server)
	}
	return fmt.Sprintf("%s: %s; dowel doctor %s says more", m.Status, m.Reason, m.Server)
}

// decodeMissing returns the servers that a page of a gateway's list lacks, from its _meta.
func decodeMissing(page json.RawMessage) (all []missingServer) {
	for it := rawjson.Array(rawjson.Lookup(rawjson.Lookup(page, "_meta"), mcpwire.MetaMissing)); it.Next(); {
		var one missingServer
		if mcp.Decode(it.Value, &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

// CheckMissing looks for missing servers in a list of the gateway. If t itself is missing, it
// returns an error. It warns of any other missing server and returns err.
func CheckMissing(f *factory.Factory, t Target, page json.RawMessage, err error) error {
	for _, missing := range decodeMissing(page) {
		if missing.Server == t.Name && missing.Server != "" {
			return exit.ConnectError{Server: t.Name, Err: missing}
		}
		f.Warn("%s: %s: %s; dowel doctor %s says more", missing.Server, missing.Status, term.FirstLine(missing.Reason), missing.Server)
	}
	return err
}

// All returns the whole list as one page. If the server does not know the method, the list is
// empty.
func (l listing) All(ctx context.Context, c *client.Client) (json.RawMessage, error) {
	var first, items json.RawMessage
	for page, err := range l.Pages(ctx, c) {
		switch {
		case IsNotOffered(err):
			return fmt.Appendf(nil, `{%q:[]}`, l.Member), nil
		case err != nil:
			return nil, err
		case first == nil:
			first = page
		}
		for it := rawjson.Array(rawjson.Lookup(page, l.Member)); it.Next(); {
			if items != nil {
				items = append(items, ',')
			}
			items = append(items, it.Value...)
		}
	}
	items = slices.Concat([]byte{'['}, items, []byte{']'})
	return rawjson.Set(rawjson.Set(first, "nextCursor", nil), l.Member, items), nil
}

// IsNotOffered reports whether err means that the server does not know or declare the method.
func IsNotOffered(err error) bool {
	if errors.Is(err, errors.ErrUnsupported) {
		return true
	}
	answered := exit.ProtocolError(err)
	return answered != nil && answered.Code == jsonrpc.CodeMethodNotFound
}

// Find returns the item with the given name, decoded and raw. It requests pages until it finds the
// item. If the item does not exist, it returns a usage error that suggests existing names. kind
// names the kind of item in that error.
func Find[T any](ctx context.Context, c *client.Client, l listing, kind, name string, nameOf func(*T) string) (item T, raw json.RawMessage, err error) {
	var known []string
	var missing []missingServer
	for page, err := range l.Pages(ctx, c) {
		if IsNotOffered(err) {
			break
		}
		if err != nil {
			return item, nil, err
		}
		missing = decodeMissing(page)
		for it := rawjson.Array(rawjson.Lookup(page, l.Member)); it.Next(); {
			var candidate T
			if err := mcp.Decode(it.Value, &candidate); err != nil {
				return item, nil, Unreadable(c, l.method, err)
			}
			if nameOf(&candidate) == name {
				return candidate, it.Value, nil
			}
			known = append(known, nameOf(&candidate))
		}
	}
	if len(known) == 0 && len(missing) == 1 {
		return item, nil, exit.ConnectError{Server: missing[0].Server, Err: missing[0]}
	}
	return item, nil, exit.Usagef("there is no %s %s%s", kind, name, suggest.Hint(name, known))
}

// DecodeItems decodes the items of a page of the list l.
func DecodeItems[T any](c *client.Client, l listing, page json.RawMessage) ([]T, error) {
	var items []T
	if err := mcp.Decode(rawjson.Lookup(page, l.Member), &items); err != nil {
		return nil, Unreadable(c, l.method, err)
	}
	return items, nil
}

// FindTool returns the tool with the given name, decoded and raw; see [Find].
func FindTool(ctx context.Context, c *client.Client, name string) (mcp.Tool, json.RawMessage, error) {
	return Find(ctx, c, ListTools, "tool", name, func(t *mcp.Tool) string { return t.Name })
}

// ExplainMissingTool replaces the error of [FindTool] if the running dowel withholds the tool of a
// server: the new error says why.
func ExplainMissingTool(ctx context.Context, server, tool string, err error) error {
	ctx, cancel := context.WithTimeout(ctx, StatusTimeout)
	defer cancel()
	status, unavailable := factory.RunningDaemon().Status(ctx)
	if unavailable != nil {
		return err
	}
	for _, s := range status.Servers {
		for _, q := range s.Quarantined {
			if s.Name == server && q.Kind == "tool" && q.Name == tool {
				return exit.ConnectError{Server: server, Err: fmt.Errorf("the tool %s is not offered: %s", tool, q.Reason)}
			}
		}
	}
	return err
}
