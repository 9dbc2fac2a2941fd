package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func completeCommand(f *app) *cobra.Command {
	a := newConnection(f)
	return a.command(&cobra.Command{
		Use:   "complete SERVER.PROMPT [KEY=VALUE]… KEY=TYPED",
		Short: "Ask how an argument of a prompt or resource template can go on",
		Long: `Ask a server how an argument can go on from what is typed of it, and print the values, best first.
The last KEY is the one to complete; those before it are settled. In place of PROMPT, a resource template can stand.

` + naming,
		Example: `  dowel complete everything.test_prompt_with_arguments arg1=
  dowel complete everything 'test://template/{id}/data' id=1
  dowel complete completable-prompt department=E -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t target, rest []string) error { return a.complete(ctx, t, rest) })
}

func (a *connection) complete(ctx context.Context, t target, rest []string) error {
	if len(rest) < 2 {
		return usagef("write what to complete: a prompt or resource template, and KEY=TYPED")
	}
	ref := mcp.PromptRef(rest[0])
	if strings.Contains(rest[0], "://") || strings.Contains(rest[0], "{") {
		ref = mcp.ResourceRef(rest[0])
	}
	given, err := parseArguments(rest[1:])
	if err != nil {
		return err
	}
	last := given[len(given)-1]
	params := mcp.CompleteParams{Ref: ref, Argument: mcp.CompletionArgument{Name: last.key, Value: last.value}}
	if settled := texts(given[:len(given)-1]); len(settled) > 0 {
		params.Context = &mcp.CompletionContext{Arguments: settled}
	}
	return a.with(ctx, t, func(c *client.Client) error {
		raw, err := request(ctx, c, mcp.MethodComplete, rest[0], params, client.CallOptions{})
		if err != nil || a.json {
			return a.either(raw, err)
		}
		var r mcp.CompleteResult
		if err := mcp.Decode(raw, &r); err != nil {
			return unreadable(c, mcp.MethodComplete, err)
		}
		a.values(r.Completion)
		return nil
	})
}

func (a *app) values(found mcp.Completion) {
	for _, value := range found.Values {
		fmt.Fprintln(a.stdout, line(value))
	}
	switch more := found.Total - len(found.Values); {
	case more > 0:
		fmt.Fprintln(a.stderr, a.stderr.dim(fmt.Sprintf("and %d more", more)))
	case found.HasMore:
		fmt.Fprintln(a.stderr, a.stderr.dim("and more"))
	}
}
