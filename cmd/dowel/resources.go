package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func resourcesCommand(f *app) *cobra.Command {
	a := newConnection(f)
	return a.command(&cobra.Command{
		Use:   "resources SERVER",
		Short: "List a server's resources and resource templates",
		Long: `List a server's resources and, below them, its templates: {parts} in braces are for you to fill in.

` + naming,
		Example: `  dowel resources everything
  dowel resources everything --json | jq -r '.resources[].uri'
  dowel resources -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t target, rest []string) error { return a.resources(ctx, t, rest) })
}

func (a *connection) resources(ctx context.Context, t target, rest []string) error {
	if len(rest) > 0 {
		return usagef("%s is one word too many; dowel read reads a resource", rest[0])
	}
	return a.with(ctx, t, func(c *client.Client) error {
		page, err := listResources.all(ctx, c)
		err = a.whole(t, page, err)
		if err != nil {
			return err
		}
		templates, err := listTemplates.all(ctx, c)
		if err != nil {
			return err
		}
		if a.json {
			member := rawjson.Lookup(templates, listTemplates.member)
			return a.document(rawjson.Set(page, listTemplates.member, member))
		}
		return a.resourceLists(c, page, templates)
	})
}

func (a *app) resourceLists(c *client.Client, page, templatePage []byte) error {
	resources, err := decodeItems[mcp.Resource](c, listResources, page)
	if err != nil {
		return err
	}
	templates, err := decodeItems[mcp.ResourceTemplate](c, listTemplates, templatePage)
	if err != nil {
		return err
	}
	for _, r := range resources {
		sized := ""
		if r.Size != nil {
			sized = size(int(*r.Size))
		}
		a.resourceEntry(r.URI, r.MIMEType, sized, r.Name, r.Description)
	}
	for _, t := range templates {
		a.resourceEntry(t.URITemplate, t.MIMEType, "template", t.Name, t.Description)
	}
	if len(resources)+len(templates) == 0 {
		a.warn("%s offers no resources", c.ServerInfo().Name)
	}
	return nil
}

func (a *app) resourceEntry(uri, mimeType, detail, name, description string) {
	words := slices.DeleteFunc([]string{detail, line(mimeType)}, func(w string) bool { return w == "" })
	a.heading(line(uri), strings.Join(words, ", "))
	about := slices.DeleteFunc([]string{line(name), firstLine(description)}, func(w string) bool { return w == "" })
	if len(about) > 0 {
		const indent = "  "
		fmt.Fprintf(a.stdout, "%s%s\n", indent, a.fitted(strings.Join(about, ": "), len(indent)))
	}
}
