package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

func promptCommand(f *app) *cobra.Command {
	a := newConnection(f)
	return a.command(&cobra.Command{
		ValidArgsFunction: a.completeWords(listPrompts, "name"),

		Use:   "prompt SERVER.PROMPT [KEY=VALUE]…",
		Short: "Fill in a prompt",
		Long: `Fill in a prompt and print its messages. All arguments are text.

` + naming,
		Example: `  dowel prompt everything.test_simple_prompt
  dowel prompt everything.test_prompt_with_arguments arg1=one arg2=two
  dowel prompt args-prompt city=Oslo -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t target, rest []string) error { return a.prompt(ctx, t, rest) })
}

func (a *connection) prompt(ctx context.Context, t target, rest []string) error {
	if len(rest) == 0 {
		return usagef("no prompt is named: write SERVER.PROMPT, or PROMPT where the server is named by --url or behind --")
	}
	name := rest[0]
	given, err := parseArguments(rest[1:])
	if err != nil {
		return err
	}
	return a.with(ctx, t, func(c *client.Client) error {
		p, _, err := find(ctx, c, listPrompts, "prompt", name, func(p *mcp.Prompt) string { return p.Name })
		if err == nil {
			err = checkPrompt(p, texts(given))
		}
		if err != nil {
			return seeing(err, t.words("prompts", ""))
		}
		raw, err := request(ctx, c, mcp.MethodGetPrompt, name, mcp.GetPromptParams{Name: name, Arguments: texts(given)}, a.callOptions())
		a.stderr.show("")
		if err != nil || a.json {
			return a.either(raw, err)
		}
		return a.messages(c, raw)
	})
}

// checkPrompt tells what is missing or misspelt before the server is asked.
func checkPrompt(p mcp.Prompt, given map[string]string) error {
	var errs []error
	var known []string
	declared := map[string]bool{}
	for _, argument := range p.Arguments {
		known, declared[argument.Name] = append(known, argument.Name), true
		if _, ok := given[argument.Name]; argument.Required && !ok {
			about := ""
			if argument.Description != "" {
				about = ": " + firstLine(argument.Description)
			}
			errs = append(errs, fmt.Errorf("argument %s is missing%s", argument.Name, about))
		}
	}
	for key := range given {
		if !declared[key] {
			errs = append(errs, fmt.Errorf("there is no argument %s%s", key, suggestion(key, known)))
		}
	}
	if errs == nil {
		return nil
	}
	return usageError{err: errors.Join(errs...)}
}

func (a *app) messages(c *client.Client, raw json.RawMessage) error {
	var r mcp.GetPromptResult
	if err := mcp.Decode(raw, &r); err != nil {
		return unreadable(c, mcp.MethodGetPrompt, err)
	}
	for _, m := range r.Messages {
		fmt.Fprintln(a.stdout, a.stdout.bold(line(string(m.Role))+":"))
		if err := a.blocks([]mcp.Content{m.Content}, nil); err != nil {
			return err
		}
	}
	return nil
}
