package main

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func promptsCommand(f *app) *cobra.Command {
	a := newConnection(f)
	return a.command(&cobra.Command{
		Use:   "prompts SERVER",
		Short: "List a server's prompts",
		Long: `List a server's prompts with their arguments. Those in brackets may be left out.

` + naming,
		Example: `  dowel prompts everything
  dowel prompts everything --json | jq -r '.prompts[].name'
  dowel prompts -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t target, rest []string) error { return a.prompts(ctx, t, rest) })
}

func (a *connection) prompts(ctx context.Context, t target, rest []string) error {
	if len(rest) > 0 {
		return usagef("%s is one word too many; dowel prompt fills in a prompt", rest[0])
	}
	return a.with(ctx, t, func(c *client.Client) error {
		page, err := listPrompts.all(ctx, c)
		err = a.whole(t, page, err)
		if err != nil || a.json {
			return a.either(page, err)
		}
		prompts, err := decodeItems[mcp.Prompt](c, listPrompts, page)
		for _, p := range prompts {
			a.promptEntry(p)
		}
		if err == nil && len(prompts) == 0 {
			a.warn("%s offers no prompts", c.ServerInfo().Name)
		}
		return err
	})
}

func (a *app) promptEntry(p mcp.Prompt) {
	a.heading(line(p.Name), "")
	var words []string
	for _, argument := range p.Arguments {
		word := line(argument.Name) + "="
		if !argument.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	const indent = "  "
	for _, l := range wrap(words, a.stdout.columns()-len(indent)) {
		fmt.Fprintf(a.stdout, "%s%s\n", indent, a.stdout.cyan(l))
	}
	if about := firstLine(p.Description); about != "" {
		fmt.Fprintf(a.stdout, "%s%s\n", indent, a.fitted(about, len(indent)))
	}
}
