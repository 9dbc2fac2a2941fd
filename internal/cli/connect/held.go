package connect

import (
	"context"
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/definitions"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
)

// heldChanges returns the server's changed definitions if its entry withholds them. The running
// dowel withholds the definitions of its servers itself.
func (t Target) heldChanges(ctx context.Context, c *client.Client) ([]client.DefinitionChange, error) {
	if t.howToAccept == "" || t.log == nil {
		return nil, nil
	}
	changes, err := c.CheckDefinitions(ctx, t.log)
	if err != nil {
		return nil, exit.ConnectError{Server: t.Name, Err: fmt.Errorf("its definitions cannot be compared with the accepted ones: %w", err)}
	}
	return changes, nil
}

// heldError says that an item is not offered because of a change.
func (t Target) heldError(change client.DefinitionChange, item string) error {
	return exit.ConnectError{Server: t.Name, Err: fmt.Errorf("%s is not offered: its definition has changed (%s): %s",
		item, change.Time.Local().Format("2006-01-02 15:04"), t.howToAccept)}
}

// CheckHeldTool returns an error if the server's entry withholds a tool with a changed definition.
func (t Target) CheckHeldTool(ctx context.Context, c *client.Client, name string) error {
	return t.checkHeldName(ctx, c, definitions.Tool, name)
}

// CheckHeldPrompt is [Target.CheckHeldTool] for a prompt.
func (t Target) CheckHeldPrompt(ctx context.Context, c *client.Client, name string) error {
	return t.checkHeldName(ctx, c, definitions.Prompt, name)
}

func (t Target) checkHeldName(ctx context.Context, c *client.Client, kind, name string) error {
	changes, err := t.heldChanges(ctx, c)
	for _, change := range changes {
		if change.Kind == kind && change.Name == name {
			return t.heldError(change, "the "+kind+" "+name)
		}
	}
	return err
}

// CheckHeldResource returns an error if the entry withholds the template of a resource that
// is not listed. A resource that another template has too is not withheld.
func (t Target) CheckHeldResource(ctx context.Context, c *client.Client, uri string) error {
	changes, err := t.heldChanges(ctx, c)
	at := slices.IndexFunc(changes, func(change client.DefinitionChange) bool {
		return change.Kind == definitions.Template && uritemplate.Matches(change.Name, uri)
	})
	if err != nil || at < 0 {
		return err
	}
	for _, l := range []struct {
		listing
		key     string
		isOwner func(name string) bool
	}{
		{ListResources, "uri", func(name string) bool { return name == uri }},
		{ListTemplates, "uriTemplate", func(name string) bool {
			isHeld := func(change client.DefinitionChange) bool {
				return change.Kind == definitions.Template && change.Name == name
			}
			return uritemplate.Matches(name, uri) && !slices.ContainsFunc(changes, isHeld)
		}},
	} {
		page, err := l.All(ctx, c)
		if err != nil {
			return err
		}
		for it := rawjson.Array(rawjson.Lookup(page, l.Member)); it.Next(); {
			if name, ok := rawjson.String(rawjson.Lookup(it.Value, l.key)); ok && l.isOwner(name) {
				return nil
			}
		}
	}
	return t.heldError(changes[at], "the resource template "+changes[at].Name)
}
