package client

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/definitions"
	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// DefinitionLog keeps the definitions that one server has given: of its tools, prompts and resource
// templates, and its instructions. [Client.CheckDefinitions] compares them with the definitions
// that the user has accepted. The log stores one text, of at most 5 MiB or, for a server with very
// long names, a few times as much.
type DefinitionLog = definitions.Log

// DefinitionChange is a definition that differs from the accepted one, with the differences.
type DefinitionChange = definitions.Change

// CheckDefinitions reads the server's lists, records the definitions in the server's log, and
// returns the changes from the accepted definitions, sorted by kind and name. The definition that
// the log sees first is accepted; [AcceptDefinitions] accepts another one. The order of lists and
// of members, white space, and _meta are no difference.
//
//	changes, err := c.CheckDefinitions(ctx, log)
//	for _, change := range changes {
//		fmt.Println(change.Kind, change.Name, "has changed:", change.Lines)
//	}
//
// Call it after connecting, and after each change of a list ([Client.Watch]).
func (c *Client) CheckDefinitions(ctx context.Context, log DefinitionLog, opts ...CallOptions) ([]DefinitionChange, error) {
	server := c.Server()
	var all []definitions.Definition
	for _, l := range []struct {
		offered           bool
		method, kind, key string
	}{
		{server.Capabilities.Tools != nil, mcp.MethodListTools, definitions.Tool, "name"},
		{server.Capabilities.Prompts != nil, mcp.MethodListPrompts, definitions.Prompt, "name"},
		{server.Capabilities.Resources != nil, mcp.MethodListResourceTemplates, definitions.Template, "uriTemplate"},
	} {
		if !l.offered {
			continue
		}
		name := func(raw *json.RawMessage) string { name, _ := rawjson.String(rawjson.Lookup(*raw, l.key)); return name }
		list := listing[definitionPage, json.RawMessage]{client: c, method: l.method, opts: options.Merge(opts), items: (*definitionPage).items, key: name}
		for raw, err := range list.iterateItems(ctx) {
			if err != nil {
				return nil, err
			}
			all = append(all, definitions.New(l.kind, name(&raw), raw))
		}
	}
	if server.Instructions != "" {
		all = append(all, definitions.New(definitions.Instructions, "", rawjson.AppendString(nil, server.Instructions)))
	}
	record, err := definitions.Observe(log, all, false)
	if err != nil {
		return nil, err
	}
	return record.CheckAll(all), nil
}

// definitionPage is a page of any list, with its items as the server sent them.
type definitionPage struct {
	Tools             []json.RawMessage `json:"tools"`
	Prompts           []json.RawMessage `json:"prompts"`
	ResourceTemplates []json.RawMessage `json:"resourceTemplates"`
	NextCursor        *string           `json:"nextCursor"`
}

func (p *definitionPage) items() ([]json.RawMessage, *string) {
	return append(append(p.Tools, p.Prompts...), p.ResourceTemplates...), p.NextCursor
}

// AcceptDefinitions makes changes that the user has seen the accepted definitions in the server's
// log.
func AcceptDefinitions(log DefinitionLog, changes ...DefinitionChange) error {
	return definitions.Accept(log, changes...)
}
