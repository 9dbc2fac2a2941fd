package prompts

import (
	"context"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// NewCompleteCommand returns the command complete.
func NewCompleteCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	return conn.Command(&cobra.Command{
		Use:   "complete SERVER.PROMPT [KEY=VALUE]… KEY=TYPED",
		Short: "Complete an argument of a prompt or resource template",
		Long: `Ask a server to complete the beginning of an argument, and print the values, best first.
The last KEY is the one to complete; the arguments before it are complete. A resource template can take the place of PROMPT.

` + connect.NamingHelp,
		Example: `  dowel complete everything.test_prompt_with_arguments arg1=
  dowel complete everything 'test://template/{id}/data' id=1
  dowel complete completable-prompt department=E -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t connect.Target, rest []string) error {
		return runComplete(ctx, conn, t, rest)
	})
}

func runComplete(ctx context.Context, conn *connect.Connection, t connect.Target, rest []string) error {
	if len(rest) < 2 {
		return exit.Usagef("nothing to complete: write a prompt or resource template, and KEY=TYPED")
	}
	ref := mcp.PromptRef(rest[0])
	if strings.Contains(rest[0], "://") || strings.Contains(rest[0], "{") {
		ref = mcp.ResourceRef(rest[0])
	}
	given, err := toolargs.ParseArguments(rest[1:])
	if err != nil {
		return err
	}
	last := given[len(given)-1]
	params := mcp.CompleteParams{Ref: ref, Argument: mcp.CompletionArgument{Name: last.Key, Value: last.Value}}
	if complete := toolargs.Texts(given[:len(given)-1]); len(complete) > 0 {
		params.Context = &mcp.CompletionContext{Arguments: complete}
	}
	return conn.Do(ctx, t, func(c *client.Client) error {
		raw, err := connect.Request(ctx, c, mcp.MethodComplete, rest[0], params, client.CallOptions{})
		if err != nil || conn.JSON {
			return conn.WriteDocumentOr(raw, err)
		}
		var r mcp.CompleteResult
		if err := mcp.Decode(raw, &r); err != nil {
			return connect.Unreadable(c, mcp.MethodComplete, err)
		}
		writeValues(conn.Factory, r.Completion)
		return nil
	})
}

// writeValues writes the values to stdout, and to stderr how many more exist.
func writeValues(f *factory.Factory, found mcp.Completion) {
	for _, value := range found.Values {
		fmt.Fprintln(f.Stdout, term.Line(value))
	}
	switch more := found.Total - len(found.Values); {
	case more > 0:
		fmt.Fprintln(f.Stderr, f.Stderr.Dim(fmt.Sprintf("and %d more", more)))
	case found.HasMore:
		fmt.Fprintln(f.Stderr, f.Stderr.Dim("and more"))
	}
}
