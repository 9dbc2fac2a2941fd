// Package tools is dowel tools: the tools of a server, or one of them in full.
package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// NewCommand returns the command tools.
func NewCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	return conn.Command(&cobra.Command{
		ValidArgsFunction: conn.CompleteWords(connect.ListTools, "name"),

		Annotations: map[string]string{connect.TakesAll: "yes"},

		Use:   "tools [SERVER[.TOOL]]",
		Short: "List a server's tools, or show one in full",
		Long: `List a server's tools: how to call each tool, what it does, and its effects as the server declares them.
Arguments in brackets may be left out. With a tool's name, show that tool in full. Without a server, list the tools of
all servers.

` + connect.NamingHelp,
		Example: `  dowel tools everything
  dowel tools everything.echo
  dowel tools everything --json | jq -r '.tools[].name'
  dowel tools -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t connect.Target, rest []string) error { return runTools(ctx, conn, t, rest) })
}

func runTools(ctx context.Context, conn *connect.Connection, t connect.Target, rest []string) error {
	if len(rest) > 1 {
		return exit.Usagef("one tool at a time: %s", strings.Join(rest, " "))
	}
	return conn.Do(ctx, t, func(c *client.Client) error {
		if len(rest) == 1 {
			return showTool(ctx, conn.Factory, c, rest[0])
		}
		page, err := connect.ListTools.All(ctx, c)
		err = connect.CheckMissing(conn.Factory, t, page, err)
		if err != nil || conn.JSON {
			return conn.WriteDocumentOr(page, err)
		}
		tools, err := connect.DecodeItems[mcp.Tool](c, connect.ListTools, page)
		for i := range tools {
			display.WriteTool(conn.Factory, &tools[i], i > 0)
		}
		if err == nil && len(tools) == 0 {
			conn.Warn("%s offers no tools", c.Server().Info.Name)
		}
		return err
	})
}

// showTool writes everything about one tool.
func showTool(ctx context.Context, f *factory.Factory, c *client.Client, name string) error {
	t, raw, err := connect.FindTool(ctx, c, name)
	if err != nil || f.JSON {
		return f.WriteDocumentOr(raw, err)
	}
	out := f.Stdout
	display.WriteHeading(f, term.Line(t.Name), display.Effects(&t))
	if t.Title != "" {
		fmt.Fprintln(out, term.Line(t.Title))
	}
	f.WriteText(t.Description)
	display.WriteArguments(f, toolargs.NewSpec(t.InputSchema))
	if len(t.OutputSchema) > 0 {
		fmt.Fprintf(out, "\n%s\n", out.Bold("returns"))
		display.WriteArguments(f, toolargs.NewSpec(t.OutputSchema))
	}
	return nil
}
