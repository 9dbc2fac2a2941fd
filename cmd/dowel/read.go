package main

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func readCommand(f *app) *cobra.Command {
	a := newConnection(f)
	output := ""
	c := a.command(&cobra.Command{
		Use:   "read SERVER URI",
		Short: "Read a resource",
		Long: `Read a resource and print its contents: text as it is, a line about what is binary.

` + naming,
		Example: `  dowel read everything test://static-text
  dowel read everything test://static-binary -o picture.png
  dowel read demo://resource/dynamic/text/7 -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t target, rest []string) error { return a.read(ctx, t, rest, output) })
	c.Flags().StringVarP(&output, "output", "o", "", "save what is binary, or else the text, in this `file`; - is stdout")
	return c
}

func (a *connection) read(ctx context.Context, t target, rest []string, output string) error {
	if len(rest) != 1 {
		return usagef("one URI is read at a time: write SERVER URI, or URI where the server is named by --url or behind --")
	}
	uri := rest[0]
	return a.with(ctx, t, func(c *client.Client) error {
		raw, err := request(ctx, c, mcp.MethodReadResource, uri, mcp.ReadResourceParams{URI: uri}, a.callOptions())
		a.stderr.show("")
		if err != nil || a.json && output == "" {
			return a.either(raw, err)
		}
		var r mcp.ReadResourceResult
		if err := mcp.Decode(raw, &r); err != nil {
			return unreadable(c, mcp.MethodReadResource, err)
		}
		return a.contents(raw, r.Contents, output)
	})
}

func (a *app) contents(raw []byte, contents []mcp.ResourceContents, output string) error {
	var content []mcp.Content
	for _, part := range contents {
		content = append(content, mcp.Embed(part))
	}
	save := newSaver(output, content)
	if a.json {
		if err := a.document(raw); err != nil {
			return err
		}
		return saveAll(content, save)
	}
	for i := range content {
		if len(content) > 1 && save == nil {
			fmt.Fprintln(a.stdout, a.stdout.dim("── "+line(contents[i].URI)))
		}
		if err := a.blocks(content[i:i+1], save); err != nil {
			return err
		}
	}
	return nil
}
