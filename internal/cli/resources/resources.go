// Package resources has dowel resources, which lists the resources and templates of a server, and
// dowel read, which reads one.
package resources

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// NewCommand returns the command resources.
func NewCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	return conn.Command(&cobra.Command{
		Use:   "resources SERVER",
		Short: "List a server's resources and resource templates",
		Long: `List a server's resources and, below them, its templates. Fill in the {parts} in braces.

` + connect.NamingHelp,
		Example: `  dowel resources everything
  dowel resources everything --json | jq -r '.resources[].uri'
  dowel resources -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t connect.Target, rest []string) error {
		return runResources(ctx, conn, t, rest)
	})
}

func runResources(ctx context.Context, conn *connect.Connection, t connect.Target, rest []string) error {
	if len(rest) > 0 {
		return exit.Usagef("%s is one word too many; dowel read reads a resource", rest[0])
	}
	return conn.Do(ctx, t, func(c *client.Client) error {
		page, err := connect.ListResources.All(ctx, c)
		err = connect.CheckMissing(conn.Factory, t, page, err)
		if err != nil {
			return err
		}
		templates, err := connect.ListTemplates.All(ctx, c)
		if err != nil {
			return err
		}
		if conn.JSON {
			member := rawjson.Lookup(templates, connect.ListTemplates.Member)
			return conn.WriteDocument(rawjson.Set(page, connect.ListTemplates.Member, member))
		}
		return writeLists(conn.Factory, c, page, templates)
	})
}

// writeLists writes resources and templates as text.
func writeLists(f *factory.Factory, c *client.Client, page, templatePage []byte) error {
	resources, err := connect.DecodeItems[mcp.Resource](c, connect.ListResources, page)
	if err != nil {
		return err
	}
	templates, err := connect.DecodeItems[mcp.ResourceTemplate](c, connect.ListTemplates, templatePage)
	if err != nil {
		return err
	}
	for _, r := range resources {
		sized := ""
		if r.Size != nil {
			sized = display.Bytes(int(*r.Size))
		}
		writeResource(f, r.URI, r.MIMEType, sized, r.Name, r.Description)
	}
	for _, t := range templates {
		writeResource(f, t.URITemplate, t.MIMEType, "template", t.Name, t.Description)
	}
	if len(resources)+len(templates) == 0 {
		f.Warn("%s offers no resources", c.Server().Info.Name)
	}
	return nil
}

// writeResource writes a resource or template. Arguments may be "".
func writeResource(f *factory.Factory, uri, mimeType, detail, name, description string) {
	words := slices.DeleteFunc([]string{detail, term.Line(mimeType)}, func(w string) bool { return w == "" })
	display.WriteHeading(f, term.Line(uri), strings.Join(words, ", "))
	about := slices.DeleteFunc([]string{term.Line(name), term.FirstLine(description)}, func(w string) bool { return w == "" })
	if len(about) > 0 {
		const indent = "  "
		fmt.Fprintf(f.Stdout, "%s%s\n", indent, display.FitLine(f, strings.Join(about, ": "), len(indent)))
	}
}
