// Package prompts has dowel prompts, which lists the prompts of a server, dowel prompt, which fills
// one in, and dowel complete, which completes an argument.
package prompts

import (
	"context"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// NewCommand returns the command prompts.
func NewCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	return conn.Command(&cobra.Command{
		Use:   "prompts SERVER",
		Short: "List a server's prompts",
		Long: `List a server's prompts with their arguments. Arguments in brackets may be left out.

` + connect.NamingHelp,
		Example: `  dowel prompts everything
  dowel prompts everything --json | jq -r '.prompts[].name'
  dowel prompts -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t connect.Target, rest []string) error {
		return runPrompts(ctx, conn, t, rest)
	})
}

func runPrompts(ctx context.Context, conn *connect.Connection, t connect.Target, rest []string) error {
	if len(rest) > 0 {
		return exit.Usagef("%s is one word too many; dowel prompt fills in a prompt", rest[0])
	}
	return conn.Do(ctx, t, func(c *client.Client) error {
		page, err := connect.ListPrompts.All(ctx, c)
		err = connect.CheckMissing(conn.Factory, t, page, err)
		if err != nil || conn.JSON {
			return conn.WriteDocumentOr(page, err)
		}
		prompts, err := connect.DecodeItems[mcp.Prompt](c, connect.ListPrompts, page)
		for _, p := range prompts {
			display.WritePrompt(conn.Factory, p)
		}
		if err == nil && len(prompts) == 0 {
			conn.Warn("%s offers no prompts", c.Server().Info.Name)
		}
		return err
	})
}
