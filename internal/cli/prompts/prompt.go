package prompts

import (
	"context"
	"encoding/json"
	"fmt"

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

// NewPromptCommand returns the command prompt.
func NewPromptCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	return conn.Command(&cobra.Command{
		ValidArgsFunction: conn.CompleteWords(connect.ListPrompts, "name"),

		Use:   "prompt SERVER.PROMPT [KEY=VALUE]…",
		Short: "Fill in a prompt",
		Long: `Fill in a prompt and print its messages. All arguments are text.

` + connect.NamingHelp,
		Example: `  dowel prompt everything.test_simple_prompt
  dowel prompt everything.test_prompt_with_arguments arg1=one arg2=two
  dowel prompt args-prompt city=Oslo -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t connect.Target, rest []string) error { return runPrompt(ctx, conn, t, rest) })
}

func runPrompt(ctx context.Context, conn *connect.Connection, t connect.Target, rest []string) error {
	if len(rest) == 0 {
		return exit.Usagef("no prompt is named: write SERVER.PROMPT, or PROMPT with --url or a command after --")
	}
	name := rest[0]
	given, err := toolargs.ParseArguments(rest[1:])
	if err != nil {
		return err
	}
	return conn.Do(ctx, t, func(c *client.Client) error {
		if err := t.CheckHeldPrompt(ctx, c, name); err != nil {
			return err
		}
		p, _, err := connect.Find(ctx, c, connect.ListPrompts, "prompt", name, func(p *mcp.Prompt) string { return p.Name })
		if err == nil {
			err = toolargs.CheckPrompt(p, toolargs.Texts(given))
		}
		if err != nil {
			return exit.WithHelp(err, t.CommandLine("prompts", ""))
		}
		raw, err := connect.Request(ctx, c, mcp.MethodGetPrompt, name, mcp.GetPromptParams{Name: name, Arguments: toolargs.Texts(given)}, conn.CallOptions())
		conn.Stderr.SetStatus("")
		if err != nil || conn.JSON {
			return conn.WriteDocumentOr(raw, err)
		}
		return writeMessages(conn.Factory, c, raw)
	})
}

// writeMessages writes the messages of a result, each after its role.
func writeMessages(f *factory.Factory, c *client.Client, raw json.RawMessage) error {
	var r mcp.GetPromptResult
	if err := mcp.Decode(raw, &r); err != nil {
		return connect.Unreadable(c, mcp.MethodGetPrompt, err)
	}
	for _, m := range r.Messages {
		fmt.Fprintln(f.Stdout, f.Stdout.Bold(term.Line(string(m.Role))+":"))
		if err := display.WriteContent(f, []mcp.Content{m.Content}, nil); err != nil {
			return err
		}
	}
	return nil
}
