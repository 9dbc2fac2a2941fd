package resources

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// NewReadCommand returns the command read.
func NewReadCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	output := ""
	c := conn.Command(&cobra.Command{
		Use:   "read SERVER URI",
		Short: "Read a resource",
		Long: `Read a resource and print its contents: text unchanged, and a line that describes each binary content.

` + connect.NamingHelp,
		Example: `  dowel read everything test://static-text
  dowel read everything test://static-binary -o picture.png
  dowel read demo://resource/dynamic/text/7 -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t connect.Target, rest []string) error {
		return runRead(ctx, conn, t, rest, output)
	})
	c.Flags().StringVarP(&output, "output", "o", "", "save binary contents in this `file`, or the text if nothing is binary; - is stdout")
	return c
}

func runRead(ctx context.Context, conn *connect.Connection, t connect.Target, rest []string, output string) error {
	if len(rest) != 1 {
		return exit.Usagef("read takes one URI: write SERVER URI, or URI with --url or a command after --")
	}
	uri := rest[0]
	return conn.Do(ctx, t, func(c *client.Client) error {
		if err := t.CheckHeldResource(ctx, c, uri); err != nil {
			return err
		}
		raw, err := connect.Request(ctx, c, mcp.MethodReadResource, uri, mcp.ReadResourceParams{URI: uri}, conn.CallOptions())
		conn.Stderr.SetStatus("")
		if err != nil || conn.JSON && output == "" {
			return conn.WriteDocumentOr(raw, err)
		}
		var r mcp.ReadResourceResult
		if err := mcp.Decode(raw, &r); err != nil {
			return connect.Unreadable(c, mcp.MethodReadResource, err)
		}
		return writeContents(conn.Factory, raw, r.Contents, output)
	})
}

// writeContents writes or saves the contents of a resource. raw is the result for --json.
func writeContents(f *factory.Factory, raw []byte, contents []mcp.ResourceContents, output string) error {
	var content []mcp.Content
	for _, part := range contents {
		content = append(content, mcp.Embed(part))
	}
	save := display.NewSaver(output, content)
	if f.JSON {
		if err := f.WriteDocument(raw); err != nil {
			return err
		}
		return display.SaveContent(content, save)
	}
	for i := range content {
		if len(content) > 1 && save == nil {
			fmt.Fprintln(f.Stdout, f.Stdout.Dim("── "+term.Line(contents[i].URI)))
		}
		if err := display.WriteContent(f, content[i:i+1], save); err != nil {
			return err
		}
	}
	return nil
}
